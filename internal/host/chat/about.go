package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
)

// shortCommand is the width of the widest command that the title of a question shows.
const shortCommand = 60

// about describes the call of a question: what would be done, in our words; the command as it will run; what the agent
// says about it; and last our reason. The command is shown completely, because its description may be wrong, and a
// shell also runs what a terminal hides.
func (c *Chat) about(one *Question, q *event.Ask) {
	call := q.Tool
	one.call = call.ID
	path := text.Name(c.near(call.Path))
	command := text.ForDecision(call.Command)
	switch one.Change = changeOf(call); {
	case one.Change != nil:
		one.Title = text.Name(call.Name) + " " + text.Name(c.near(one.Change.Path))
		one.Detail = c.replaced(one.Change)
		one.Change.Path = c.near(one.Change.Path)
	case command != "" && !strings.Contains(command, "\n") && cells.Width(command) <= shortCommand:
		one.Title = "Run " + command
	case command != "":
		one.Title, one.Detail = "Run this command", bars(command)
	case call.Path != "":
		one.Title, one.Detail = text.Name(call.Name)+" "+path, bars(members(call))
	default:
		one.Title, one.Detail = "Use "+text.Name(call.Name), bars(members(call))
	}
	one.Why = text.Cut(text.Name(text.ForDecision(q.Reason)), 4*shortCommand) // it may quote the command
	if part := text.ForDecision(q.Part); q.Reason != "" && part != command && call.Command != "" && part != "" {
		one.Why += ": " + text.OneLine(part, 2*shortCommand)
	}
	if words := said(q); words != "" && words != one.Title {
		one.Said = c.agentName() + " says: " + words
	}
}

// agentName returns the name of the agent for a question.
func (c *Chat) agentName() string {
	if with := c.Conversation(); with != nil {
		return text.Name(with.Facts().Agent)
	}
	return "the agent"
}

// said returns the agent's own description of a call.
func said(q *event.Ask) string {
	var in struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(q.Tool.Input, &in)
	var all []string
	for _, words := range []string{in.Description, q.Text} {
		words = strings.TrimSpace(words)
		known := words == "" || words == q.Tool.Path || words == q.Tool.Command || words == q.Tool.Name ||
			words == firstLine(q.Tool.Command) || strings.Contains(q.Tool.Command, words)
		if !known && !slices.Contains(all, words) && (q.Reason == "" || words == in.Description) {
			all = append(all, words)
		}
	}
	return text.ForDecision(strings.Join(all, "\n"))
}

// members returns the input of a call, one member on each line, without those that the question shows.
func members(call *event.Call) string {
	var in map[string]json.RawMessage
	if json.Unmarshal(call.Input, &in) != nil {
		return text.ForDecision(string(call.Input))
	}
	var lines []string
	for name, raw := range in {
		var words string
		if json.Unmarshal(raw, &words) != nil {
			var compact bytes.Buffer
			if json.Compact(&compact, raw) == nil {
				words = compact.String()
			}
		}
		if words == call.Path && words != "" || name == "description" {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s: %s", name, words))
	}
	slices.Sort(lines)
	return text.ForDecision(strings.Join(lines, "\n"))
}

// bar begins each row of the agent's words, so that none of them looks like a line of ours.
const bar = "│ "

// bars begins each line with bar.
func bars(s string) string {
	if s == "" {
		return ""
	}
	return bar + strings.ReplaceAll(s, "\n", "\n"+bar)
}

// rows returns the lines of a question between its title and its hint, wrapped at a width; 0: not wrapped.
func (q *Question) rows(width int) (rows []string) {
	barred := func(s string) {
		for _, line := range clean(s) {
			rest, has := strings.CutPrefix(line, bar)
			if !has || width == 0 {
				rows = append(rows, line)
				continue
			}
			for _, row := range cells.Wrap(rest, max(width-2, 1)) {
				rows = append(rows, bar+row)
			}
		}
	}
	barred(bars(q.Said))
	barred(q.Detail)
	return rows
}
