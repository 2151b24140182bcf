package tool

import (
	"context"
	"encoding/json"

	"omniagent/internal/event"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
)

const killShellExample = `{"shell_id": "bash_1"}`

// KillShell ends a command in the background.
func KillShell(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "KillShell", Kind: event.Other, With: "Bash",
			Description: "Ends a command in the background, and all that it has started.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"shell_id":{"type":"string","description":"The id that Bash returned"}},"required":["shell_id"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			in := readInput("KillShell", raw, killShellExample, []string{"shell_id"}, jobNames("shell_id"))
			id := in.text("shell_id", true)
			if err := in.err(); err != nil {
				return Action{}, err
			}
			return Action{
				// It ends nothing but commands of this conversation, which were allowed: that needs no question, so it
				// is no change.
				Kind: event.Other, Title: "End " + text.Name(clip(id)), Input: in.json(),
				Run: func(context.Context, func(string)) Result {
					if env.Shell == nil {
						return noCommands()
					}
					job, err := env.Shell.Kill(id)
					if err != nil {
						return failed(err)
					}
					return Result{Text: jobState(job)}
				},
			}, nil
		},
	}
}
