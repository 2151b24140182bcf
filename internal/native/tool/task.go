package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// TaskName is the tool that gives work to a sub-agent. GeneralHelper is the kind that always exists.
const (
	TaskName      = "Task"
	GeneralHelper = "general-purpose"
)

// Named reports whether a written name matches a tool, or its server.
func Named(written, name string) bool {
	return written == name || written == "*" ||
		strings.HasPrefix(written, "mcp__") && strings.HasPrefix(name, strings.TrimSuffix(written, "__*")+"__")
}

// kinds describes, for the model, the sub-agents in addition to the general one.
func kinds(helpers []Helper) (json.RawMessage, error) {
	description := "Which sub-agent; general-purpose if left out"
	for _, h := range helpers {
		description += "\n- " + h.Name + ": " + h.Description
	}
	return text.JSON(description)
}

// HandOver returns the Task tool, which gives work to a sub-agent.
func HandOver(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Task", Kind: event.Agent})
	if known, err := kinds(env.Helpers); err == nil && len(env.Helpers) > 0 {
		s.Input = bytes.Replace(s.Input, []byte(`"general-purpose; there is no other"`), known, 1)
	}
	return s.plan(func(in *input) (Action, error) {
		description, kind := in.text("description", false), in.text("subagent_type", false)
		prompt := in.text("prompt", false)
		if strings.TrimSpace(prompt) == "" {
			prompt = description
		}
		if strings.TrimSpace(prompt) == "" && len(in.problems) == 0 {
			in.problem("%q is missing: it must say what to do", "prompt")
		}
		if len(env.Helpers) > 0 && kind != "" && kind != GeneralHelper &&
			!slices.ContainsFunc(env.Helpers, func(h Helper) bool { return h.Name == kind }) {
			names := []string{GeneralHelper}
			for _, h := range env.Helpers {
				names = append(names, h.Name)
			}
			in.problem("there is no sub-agent %q: there are %s", clip(kind), strings.Join(names, ", "))
		}
		return Action{
			Title: "Hand over: " + text.Name(clip(description)),
			Run: func(ctx context.Context) Result {
				answer, err := env.Task(ctx, description, kind, prompt)
				switch {
				case err != nil && answer != "":
					return Result{Text: "The sub-agent did not finish: " + err.Error() +
						"\nIts last words were:\n" + answer, Failed: true}
				case err != nil:
					return Result{Text: "The sub-agent did not finish: " + err.Error(), Failed: true}
				}
				return Result{Text: answer}
			},
		}, nil
	})
}
