package tool

import (
	"context"
	"encoding/json"

	"omniagent/internal/event"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
)

// KillShell ends a command in the background.
func KillShell(env *Env) Tool {
	s := specOf(toolspec.Tool{Name: "KillShell", Kind: event.Other, With: "Bash"})
	return Tool{
		Tool: s.Tool,
		Plan: func(raw json.RawMessage) (Action, error) {
			in := s.input(raw)
			id := in.text("shell_id", true)
			if err := in.err(); err != nil {
				return Action{}, err
			}
			return Action{
				// It only ends commands of this conversation, which were allowed: that needs no question, so it
				// does not count as a change.
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
