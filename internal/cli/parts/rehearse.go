package parts

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/native"
	"omniagent/internal/sys/workspace"
)

const maxScript = 16 << 20

// notScript returns the fault for a script that cannot be used.
func notScript(format string, args ...any) *fault.Fault {
	return fault.New(fault.ArgError, format, args...).
		Hint("--rehearse alone has a script of its own; what one holds: omniagent help script")
}

// Rehearse starts a scripted model. script is a file; without one the model plays the script usual, or says ok if that
// is empty too. The model leaves out the first questions of the script, answered of them, because the run that this one
// retries has their answers. It begins after the next ones, asked of them, which this run has asked already. The
// function that Rehearse returns ends the model.
func Rehearse(script, usual, home string, answered, asked int) (agent.Rehearsal, func(), error) {
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

// readScript reads a regular file and refuses anything else: signals are not handled yet, so a FIFO must not block it,
// and /dev/zero has no end.
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

// OnScript changes a request and its environment so that a scripted model answers, if the call has --rehearse. stop
// ends the model and removes its files.
func OnScript(c *contract.Call, e *launch.Env, r *launch.Request, usual string) (stop func(), err error) {
	if !c.Bool("rehearse") {
		return func() {}, nil
	}
	home := RehearsalHome(c, ident.Hex(12))
	rehearsal, end, err := Rehearse(c.Path("script"), usual, home, 0, 0)
	if err != nil {
		return nil, err
	}
	e.Keep = false
	if err := onRehearsal(&rehearsal, e, r); err != nil {
		end()
		return nil, err
	}
	return func() { end(); _ = os.RemoveAll(home) }, nil
}

// RehearsalHome returns the home directory of an agent that rehearses. It is not in the temporary directory, because
// the sandbox of codex cannot run a command with a home there.
func RehearsalHome(c *contract.Call, name string) string {
	return filepath.Join(c.Paths.State, "rehearsal", name)
}

// onRehearsal changes a request and its environment so that the model of a rehearsal answers.
func onRehearsal(by *agent.Rehearsal, e *launch.Env, r *launch.Request) error {
	r.Spec.Rehearsal = by
	if r.Agent == native.Name {
		lookup := e.Native.Model.Lookup
		e.Native.Model.Lookup = func(name string) (string, bool) {
			if name == "OPENAI_API_KEY" {
				return by.Key, true
			}
			return lookup(name)
		}
		r.Provider, r.Base = "openai", by.URL+"/v1"
		r.Spec.Shared.Model = setting.AsTyped(by.Model)
		return nil
	}
	if err := os.MkdirAll(by.Home, 0o700); err != nil {
		return fault.New(fault.PermissionDenied, "there is no place for the home of a rehearsal").Because(err).
			Hint("set HOME or XDG_STATE_HOME")
	}
	return nil
}
