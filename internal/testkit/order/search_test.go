package order

import (
	"encoding/json"
	"strings"
	"testing"

	"omniagent/internal/core/event"
)

// TestSearchInAnAnswer: a search that a model API makes in the middle of an answer is told in order, in both dialects.
func TestSearchInAnAnswer(t *testing.T) {
	input := json.RawMessage(`{"query":"go"}`)
	flat, nested, err := Told([]event.Event{
		{Kind: event.TurnBegan},
		{Kind: event.Text, Text: "I look. ", Delta: true},
		{Kind: event.ToolCall, Call: &event.Call{ID: "s1", Name: "WebSearch", Kind: event.Web, Input: input}},
		{Kind: event.ToolResult, Result: &event.Result{ID: "s1", Name: "WebSearch", Output: "Go https://go.dev"}},
		{Kind: event.Text, Text: "found", Delta: true},
		{Kind: event.Answered, Model: "m", Answer: &event.Answer{ID: "a", Usage: &event.Usage{Output: 1}}},
		{Kind: event.Ended, End: &event.End{OK: true, Text: "I look. found"}},
	}, event.Facts{Agent: "native", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		lines []string
		check func([]string) error
	}{"flat": {flat, Flat}, "nested": {nested, Nested}} {
		all := strings.Join(c.lines, "\n")
		if err := c.check(c.lines); err != nil || !strings.Contains(all, "WebSearch") ||
			!strings.Contains(all, "go.dev") || !strings.Contains(all, `"I look. found"`) {
			t.Errorf("%s: %v\n%s", name, err, all)
		}
	}
}
