package run

import (
	"cmp"
	"slices"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// mostChecks limits the commands in a result to the last ones.
const mostChecks = 20

// tools counts the calls of each tool.
func tools(e Ending) []ToolUse {
	var all []ToolUse
	for _, t := range e.Tools {
		i := slices.IndexFunc(all, func(u ToolUse) bool { return u.Name == t.Name })
		if i < 0 {
			all, i = append(all, ToolUse{Name: t.Name}), len(all)
		}
		all[i].Calls++
		if t.Failed {
			all[i].Failed++
		}
	}
	slices.SortFunc(all, func(a, b ToolUse) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// checks lists the commands that the agent ran, in order.
func checks(e Ending) []Check {
	calls := []*ToolCall{}
	for _, t := range e.Tools {
		if t.Kind == event.Shell && t.Ended && t.Command != "" {
			calls = append(calls, t)
		}
	}
	slices.SortFunc(calls, func(a, b *ToolCall) int { return cmp.Compare(a.Number, b.Number) })
	calls = calls[max(0, len(calls)-mostChecks):]
	var all []Check
	for _, t := range calls {
		ok := !t.Failed && (t.ExitCode == nil || *t.ExitCode == 0)
		all = append(all, Check{text.OneLine(t.Command, 200), ok, t.ExitCode})
	}
	return all
}
