package tool

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
)

const taskExample = `{"description": "find the parser", "prompt": "Find the file in which expressions are parsed. Report its path and the names of its functions."}`

// TaskName is the tool that hands work to a sub-agent, and GeneralHelper the kind that there always is.
const (
	TaskName      = "Task"
	GeneralHelper = "general-purpose"
)

// Named says whether a name that somebody wrote means a tool: its own, or the server that it is of.
func Named(written, name string) bool {
	return written == name || written == "*" ||
		strings.HasPrefix(written, "mcp__") && strings.HasPrefix(name, strings.TrimSuffix(written, "__*")+"__")
}

// kinds tells the model which sub-agents there are.
func kinds(helpers []Helper) (json.RawMessage, error) {
	said := "general-purpose; there is no other"
	if len(helpers) > 0 {
		said = "Which sub-agent; general-purpose if left out"
		for _, h := range helpers {
			said += "\n- " + h.Name + ": " + h.Description
		}
	}
	return text.JSON(said)
}

// HandOver is the tool Task: it hands a piece of work to a sub-agent.
func HandOver(env *Env) Tool {
	known, err := kinds(env.Helpers)
	if err != nil {
		known = json.RawMessage(`""`)
	}
	return Tool{
		Tool: toolspec.Tool{
			Name: TaskName, Kind: event.Agent,
			Description: "Hands one self-contained piece of work to a sub-agent, which has the same tools and knows " +
				"nothing of this conversation. Its last " +
				"message comes back. Use it for searches over many files whose details are not needed here. Say all " +
				"that it has to know, and what to report.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"description":{"type":"string","description":"The work in three to five words"},` +
				`"prompt":{"type":"string","description":"What to do, and what to report; ` +
				`only the description reaches the sub-agent if this is left out"},` +
				`"subagent_type":{"type":"string","description":` + string(known) +
				`}},"required":["description"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			in := readInput("Task", raw, taskExample, []string{"description", "prompt", "subagent_type"}, nil)
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
			if err := in.err(); err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Agent, Title: "Hand over: " + text.Name(clip(description)), Input: in.json(),
				Run: func(ctx context.Context, _ func(string)) Result {
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
		},
	}
}
