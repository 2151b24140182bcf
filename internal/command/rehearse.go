package command

import (
	"crypto/rand"
	"encoding/hex"
	"os"

	"omniagent/internal/agent"
	"omniagent/internal/fault"
	"omniagent/internal/modelserver"
)

// rehearse starts the scripted model for one run.
func rehearse(script, _, home string) (agent.Rehearsal, func(), error) {
	text := []byte(`[]`)
	if script != "" {
		var err error
		if text, err = os.ReadFile(script); err != nil {
			return agent.Rehearsal{}, nil, fault.New(fault.ArgError, "--rehearse: the script cannot be read").Because(err).Hint("--rehearse alone answers every prompt with ok")
		}
	}
	backend, err := modelserver.ParseScript(text)
	if err != nil {
		return agent.Rehearsal{}, nil, fault.New(fault.ArgError, "--rehearse: %s is no script", script).Because(err).Hint("--rehearse alone answers every prompt with ok")
	}
	var key [16]byte
	_, _ = rand.Read(key[:]) // it never fails
	options := modelserver.Options{Key: "sk-" + hex.EncodeToString(key[:]), Hurry: true}
	server, err := modelserver.Start(backend, options)
	if err != nil {
		return agent.Rehearsal{}, nil, err
	}
	return agent.Rehearsal{URL: server.URL(), Key: options.Key, Model: "rehearsal", Home: home}, func() { _ = server.Close() }, nil
}
