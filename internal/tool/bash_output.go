package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"omniagent/internal/event"
	"omniagent/internal/shell"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
)

const bashOutputExample = `{"bash_id": "bash_1"}`

// BashOutput reads what a command in the background prints.
func BashOutput(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "BashOutput", Kind: event.Other, With: "Bash",
			Description: "Returns what a command in the background has printed since it was last asked for, and " +
				"whether it still runs. With " +
				"filter only the lines that match the regular expression; the others count as read, too.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"bash_id":{"type":"string","description":"The id that Bash returned"},` +
				`"filter":{"type":"string","description":"A regular expression"}},"required":["bash_id"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			in := readInput("BashOutput", raw, bashOutputExample, []string{"bash_id", "filter"}, jobNames("bash_id"))
			id, pattern := in.text("bash_id", true), in.text("filter", false)
			var filter *regexp.Regexp
			if pattern != "" {
				var err error
				if filter, err = regexp.Compile(pattern); err != nil {
					in.problem("%q is no regular expression: %v", "filter", err)
				}
			}
			if err := in.err(); err != nil {
				return Action{}, err
			}
			return Action{
				// It reads what a command has printed that was allowed, so nobody has to be asked.
				Kind: event.Other, Title: "Read the output of " + text.Name(clip(id)), Input: in.json(),
				Run: func(context.Context, func(string)) Result {
					if env.Shell == nil {
						return noCommands()
					}
					job, err := env.Shell.Output(id, filter)
					if err != nil {
						return failed(err)
					}
					printed := printedText(job.Outcome)
					if printed == "" {
						printed = "(no new output)"
					}
					return Result{Text: jobState(job) + "\n" + printed, Masked: job.Outcome.Masked, Waits: job.Running}
				},
			}, nil
		},
	}
}

// jobNames maps what models write to the name of the member that has the id.
func jobNames(name string) map[string]string {
	names := map[string]string{}
	for _, other := range []string{"bash_id", "shell_id", "task_id", "id"} {
		if other != name {
			names[other] = name
		}
	}
	return names
}

// jobState is one line on how a command in the background is.
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
