package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/eidolon"
	"omniagent/internal/talk/conversation"
)

// longestHandover limits the summary of a conversation for another agent, in characters.
const longestHandover = 8000

// handedOver is the name of the block with the summary.
const handedOver = "@handover"

// handover returns a summary of a conversation for another agent: the task, decisions, changed files, open tasks and
// the last answers. It is made from the journal, without a model. It returns "" if nothing was asked.
func handover(ctx context.Context, with *conversation.Conversation) (string, error) {
	h := summary{writes: map[string]string{}, questions: map[string]string{}}
	if err := with.Recorded(ctx, 1, func(e event.Event) { h.add(e) }); err != nil {
		return "", err
	}
	return h.text(with.Facts()), nil
}

// summary collects the parts of a handover.
type summary struct {
	earlier   string   // the handover that the agent itself got
	asked     []string // messages of the person
	decisions []string
	files     []string
	todos     []string
	answers   []string // the last text of each turn

	writes    map[string]string // the paths of calls that write, by their ids
	questions map[string]string // by their ids
	lists     eidolon.Lists
	answer    string
}

func (h *summary) add(e event.Event) {
	if e.Parent != "" { // of a sub-agent
		return
	}
	switch e.Kind {
	case event.Prompted, event.Steered:
		for _, b := range e.Blocks {
			if b.Name == handedOver {
				h.earlier = b.Text
			}
		}
		if words := lastText(e.Blocks); words != "" {
			h.asked = append(h.asked, words)
		}
	case event.Text:
		if !e.Delta && e.Text != "" {
			h.answer = e.Text
		}
	case event.ToolCall:
		if e.Call.Kind == event.Write {
			h.writes[e.Call.ID] = e.Call.Path
		}
		h.lists.RecordCall(e.Call)
	case event.ToolResult:
		if tasks, ok := h.lists.After(e.Result); ok {
			h.todos = nil
			for _, t := range tasks {
				if t.Status != "completed" {
					h.todos = append(h.todos, t.Content+" ("+t.Status+")")
				}
			}
		}
		path := h.writes[e.Result.ID]
		if e.Result.Change != nil {
			path = e.Result.Change.Path
		}
		if path != "" && !e.Result.Failed && !slices.Contains(h.files, path) {
			h.files = append(h.files, path)
		}
	case event.Question:
		h.questions[e.Ask.ID] = firstLine(e.Ask.Text)
	case event.Replied:
		if asked, ok := h.questions[e.Reply.Question]; ok && !e.Reply.Automatic {
			h.decisions = append(h.decisions, strings.TrimSpace(asked+" -> "+e.Reply.Option+" "+e.Reply.Text))
		}
	case event.Ended:
		if h.answer != "" {
			h.answers = append(h.answers, h.answer)
		}
		h.answer = ""
	}
}

// text returns the summary. It keeps the first message and the last ones, and leaves out those in between first.
func (h *summary) text(f event.Facts) string {
	if len(h.asked) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "This conversation began with another agent, %s. What follows was made of its record.\n", f.Agent)
	section := func(title string, most int, items ...string) {
		if len(items) == 0 {
			return
		}
		b.WriteString("\n" + title + ":\n")
		for i, item := range items {
			share := max(most/len(items), 120)
			if i == len(items)-1 {
				share = max(share, most/2)
			}
			b.WriteString("- " + strings.ReplaceAll(short(item, share), "\n", "\n  ") + "\n")
		}
	}
	if h.earlier == "" {
		section("The task, as it was first put", 1500, h.asked[0])
	} else {
		section("What this agent was handed over itself", 1000, h.earlier)
		section("What it was asked first", 500, h.asked[0])
	}
	if later := h.asked[1:]; len(later) > 0 {
		section("What was asked since", 1500, last(later, 6)...)
	}
	section("What was decided", 700, last(h.decisions, 8)...)
	section("Files that were changed", 900, last(h.files, 20)...)
	section("Open tasks", 800, last(h.todos, 10)...)
	section("The last answers", 2200, last(h.answers, 2)...)
	return strings.TrimSuffix(short(b.String(), longestHandover), "\n")
}

func last(all []string, n int) []string { return all[max(0, len(all)-n):] }

// short cuts a text to a number of characters.
func short(s string, most int) string {
	s = text.Visible(strings.TrimSpace(s))
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
