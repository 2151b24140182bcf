package chat

import (
	"strings"
	"testing"
	"unicode/utf8"

	"omniagent/internal/core/event"
)

// TestHandedOverTwice: a third agent hears of the first one too, and what it gets stays short.
func TestHandedOverTwice(t *testing.T) {
	for _, size := range []int{1, 20000} {
		h := summary{writes: map[string]string{}, questions: map[string]string{}}
		filler := strings.Repeat("x ", size)
		h.add(event.Event{Kind: event.Prompted, Blocks: []event.Block{
			{Name: handedOver, Text: "The task:\n- build a bridge\n" + filler}, {Text: "go on " + filler},
		}})
		h.add(event.Event{Kind: event.Text, Text: "I went on. " + filler})
		h.add(event.Event{Kind: event.Ended, End: &event.End{OK: true}})
		for _, id := range []string{"agreed", "refused"} {
			h.add(event.Event{Kind: event.ToolCall, Call: &event.Call{
				ID: id, Name: "TodoWrite", Input: []byte(`{"todos":[{"content":"` + id + ` task"}]}`),
			}})
			h.add(event.Event{Kind: event.ToolResult, Result: &event.Result{ID: id, Failed: id == "refused"}})
		}
		got := h.text(event.Facts{Agent: "codex"})
		for _, want := range []string{"another agent, codex", "build a bridge", "go on", "I went on.", "agreed task"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is missing in %.500s", want, got)
			}
		}
		if n := utf8.RuneCountInString(got); n > longestHandover {
			t.Errorf("%d characters", n)
		}
	}
}
