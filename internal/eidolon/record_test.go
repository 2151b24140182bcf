package eidolon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/event"
	"omniagent/internal/xnl"
)

// TestRecord: the files are whole after each event, and say the same.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	r, err := OpenRecord(dir, "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Begin(event.Facts{Agent: "native", Provider: "p", Model: "m", Dir: "/w"})
	usage := &event.Usage{Input: 3, Output: 4}
	steps := []struct {
		event event.Event
		roles string // in history.xnl after it
	}{
		{event.Event{Kind: event.Prompted, Turn: 1, Blocks: []event.Block{
			{Name: "@file:/w/a", Text: "@file:/w/a\nx"}, {Text: "look \"here\""},
		}}, "system user"},
		{event.Event{Kind: event.TurnBegan, Turn: 1}, "system user"},
		{event.Event{Kind: event.Text, Delta: true, Text: "I "}, "system user"},
		{event.Event{Kind: event.Text, Text: "I look."}, "system user"},
		{event.Event{Kind: event.Answered, Answer: &event.Answer{}}, "system user"},
		{
			event.Event{Kind: event.ToolCall, Call: &event.Call{ID: "c1", Name: "TodoWrite", Input: []byte(
				`{"todos":[{"content":" a ","status":"in_progress","activeForm":"b"},{"content":"c","status":"completed"}]}`)}},
			"system user",
		},
		{
			event.Event{Kind: event.ToolResult, Result: &event.Result{ID: "c1", Output: "ok"}},
			"system user assistant tool",
		},
		{event.Event{Kind: event.Text, Text: "Done."}, "system user assistant tool"},
		{
			event.Event{Kind: event.Ended, End: &event.End{OK: true, Usage: usage}},
			"system user assistant tool assistant",
		},
		{
			event.Event{Kind: event.Prompted, Blocks: []event.Block{{Text: "more"}}},
			"system user assistant tool assistant user",
		},
		{event.Event{Kind: event.Ended, End: &event.End{}}, "system user assistant tool assistant user"},
	}
	for _, s := range steps {
		if err := r.Add(s.event); err != nil {
			t.Fatal(err)
		}
		history := file(t, dir, "history.xnl")
		nodes, _, err := xnl.Parse(history)
		if err != nil {
			t.Fatalf("%v in %s", err, history)
		}
		var roles []string
		for _, n := range nodes {
			roles = append(roles, n.Tag)
		}
		if got := strings.Join(roles, " "); got != s.roles {
			t.Errorf("after %s: %s, want %s", s.event.Kind, got, s.roles)
		}
		var messages []map[string]any
		if err := json.Unmarshal([]byte(file(t, dir, "history.json")), &messages); err != nil {
			t.Errorf("after %s: %v", s.event.Kind, err)
		}
		if s.event.Kind == event.Ended && len(messages) != len(nodes) {
			t.Errorf("%d messages in JSON, %d in XNL", len(messages), len(nodes))
		}
	}
	history := file(t, dir, "history.xnl")
	for _, want := range []string{
		"<user {\n  content = \"look \\\"here\\\"\"\n}>\n", "  content = \"I look.\"\n", `name = "TodoWrite"`,
		"rawToolCallsStr", `toolCallId = "c1"`,
	} {
		if !strings.Contains(history, want) {
			t.Errorf("%q is missing in\n%s", want, history)
		}
	}
	if got := file(t, dir, "todos.json"); !strings.Contains(got, `"total": 2`) || !strings.Contains(got, `"id": "1"`) ||
		!strings.Contains(got, `"content": "a"`) {
		t.Error(got)
	}
	if got := file(t, dir, "app.log"); !strings.Contains(got,
		"request provider=p apiKind=anthropic model=m messages=2") {
		t.Error(got)
	}
}

func file(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
