package command

import (
	"cmp"
	"errors"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/sys/workspace"
)

const maxScript = 16 << 20

// notScript is the fault of a script.
func notScript(format string, args ...any) *fault.Fault {
	return fault.New(fault.ArgError, format, args...).
		Hint("--rehearse alone has a script of its own; what one holds: omniagent help script")
}

// rehearse starts the scripted model for one run. usual is the script where no file is named; empty: it says ok. It
// does not ask its first questions, of the number answered, and goes on after asked of the others.
func rehearse(script, usual, home string, answered, asked int) (agent.Rehearsal, func(), error) {
	text := []byte(cmp.Or(usual, `[]`))
	if script != "" {
		var err error
		if text, err = readScript(script); err != nil {
			return agent.Rehearsal{}, nil, err
		}
	}
	backend, err := modelserver.ParseScript(text)
	if err != nil {
		return agent.Rehearsal{}, nil, notScript("--rehearse: %s is not a script", script).Because(err)
	}
	options := modelserver.Options{Key: "sk-" + ident.Hex(16), Hurry: true}
	server, err := modelserver.Start(backend.Answered(answered).After(asked), options)
	if err != nil {
		return agent.Rehearsal{}, nil, err
	}
	return agent.Rehearsal{
		URL: server.URL(), Key: options.Key, Model: "rehearsal", Home: home,
	}, func() { _ = server.Close() }, nil
}

// readScript only reads a regular file. Signals are not handled yet, so it must not block, and /dev/zero has no end.
func readScript(path string) ([]byte, error) {
	data, err := workspace.ReadFile(path, maxScript)
	switch {
	case errors.Is(err, fault.Unsafe), errors.Is(err, fault.FieldTooLarge):
		return nil, notScript("--rehearse: %s is not a file of at most 16 MiB", path)
	case err != nil:
		return nil, notScript("--rehearse: the script cannot be read").Because(err)
	}
	return data, nil
}
