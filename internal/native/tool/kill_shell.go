package tool

import (
	"context"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// KillShell returns a tool that ends a background command.
func KillShell(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "KillShell", Kind: event.Other, With: "Bash"})
	return s.plan(func(in *input) (Action, error) {
		id := in.text("shell_id", true)
		return Action{
			// It only ends commands of this conversation, which were allowed. That needs no question, so it does not
			// count as a change.
			Title: "End " + text.Name(clip(id)),
			Run: func(context.Context) Result {
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
	})
}
