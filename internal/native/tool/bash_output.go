package tool

import (
	"cmp"
	"context"
	"fmt"
	"regexp"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/walls/shell"
)

// BashOutput returns a tool that reads the output of a background command.
func BashOutput(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "BashOutput", Kind: event.Other, With: "Bash"})
	return s.plan(func(in *input) (Action, error) {
		id, pattern := in.text("bash_id", true), in.text("filter", false)
		var filter *regexp.Regexp
		if pattern != "" {
			var err error
			if filter, err = regexp.Compile(pattern); err != nil {
				in.problem("%q is not a regular expression: %v", "filter", err)
			}
		}
		return Action{
			// The command was allowed, so reading its output needs no question.
			Title: "Read the output of " + text.Name(clip(id)),
			Run: func(context.Context) Result {
				if env.Shell == nil {
					return noCommands()
				}
				job, err := env.Shell.Output(id, filter)
				if err != nil {
					return failed(err)
				}
				printed := cmp.Or(printedText(job.Outcome), "(no new output)")
				return Result{Text: jobState(job) + "\n" + printed, Masked: job.Outcome.Masked, Waits: job.Running}
			},
		}, nil
	})
}

// jobState returns the state of a background command in one line.
func jobState(job shell.Job) string {
	o := job.Outcome
	switch {
	case job.Running:
		return job.ID + " is running."
	case o.Reason == shell.Stopped:
		return job.ID + " was ended."
	case o.Signal != "":
		return fmt.Sprintf("%s was ended by %s.", job.ID, o.Signal)
	}
	return fmt.Sprintf("%s exited with code %d.", job.ID, o.Exit)
}
