package eidolon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/xnl"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
)

// TestRecord: the files are whole after each event, and say the same.
func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	r, err := OpenRecord(dir, "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Begin(event.Facts{Agent: "native", Provider: "p", Vendor: "v", Model: "m", Dir: "/w"}, []string{"be", "good"})
	usage := &event.Usage{Input: 3, Output: 4}
	call := model.Block{Kind: model.Call, ID: "c1", Name: "TodoWrite", Input: []byte(
		`{"todos":[{"content":" a ","status":"in_progress","activeForm":"b"},{"content":"c","status":"completed"}]}`)}
	steps := []struct {
		record session.Record
		roles  string // in history.xnl after it
	}{
		{logged(event.Event{Kind: event.Prompted, Turn: 1, Blocks: []event.Block{
			{Name: "@file:/w/a", Text: "@file:/w/a\nx"}, {Text: "look \"here\""},
		}}), "system system system user"},
		{said(model.User, words("look \"here\"")), "system system system user"}, // the model gets what was said
		{logged(event.Event{Kind: event.TurnBegan, Turn: 1}), "system system system user"},
		{logged(event.Event{Kind: event.Text, Delta: true, Text: "I "}), "system system system user"},
		{logged(event.Event{Kind: event.Text, Text: "I look."}), "system system system user"},
		{logged(event.Event{Kind: event.Thinking, Text: "hm"}), "system system system user"},
		{said(model.Assistant, words("I look."), call), "system system system user assistant"},
		{logged(event.Event{Kind: event.ToolCall, Call: &event.Call{
			ID: call.ID, Name: call.Name, Input: call.Input,
		}}), "system system system user assistant"},
		{
			logged(event.Event{Kind: event.ToolResult, Result: &event.Result{ID: "c1", Output: "ok"}}),
			"system system system user assistant",
		},
		{
			said(model.User, model.Block{Kind: model.Result, ID: "c1", Name: call.Name, Text: "ok"}),
			"system system system user assistant tool",
		},
		{logged(event.Event{Kind: event.ToolCall, Call: &event.Call{
			ID: "c2", Name: call.Name, Input: []byte(`{"todos":[{"content":"refused"}]}`),
		}}), "system system system user assistant tool"},
		{
			logged(event.Event{Kind: event.ToolResult, Result: &event.Result{ID: "c2", Failed: true}}),
			"system system system user assistant tool",
		},
		{said(model.Assistant, words("Done.")), "system system system user assistant tool assistant"},
		{
			logged(event.Event{Kind: event.Ended, End: &event.End{OK: true, Usage: usage}}),
			"system system system user assistant tool assistant",
		},
		{
			logged(event.Event{Kind: event.Prompted, Blocks: []event.Block{{Text: "more"}}}),
			"system system system user assistant tool assistant user",
		},
		{
			logged(event.Event{Kind: event.Ended, End: &event.End{}}),
			"system system system user assistant tool assistant user",
		},
	}
	for _, s := range steps {
		if err := r.Add(session.Entry{Record: s.record}); err != nil {
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
			t.Errorf("%s, want %s", got, s.roles)
		}
		var messages []map[string]any
		if err := json.Unmarshal([]byte(file(t, dir, "history.json")), &messages); err != nil {
			t.Errorf("after %v: %v", s.record, err)
		}
		ended := kindOf(s.record) == event.Ended
		if ended && len(messages) != len(nodes) {
			t.Errorf("%d messages in JSON, %d in XNL", len(messages), len(nodes))
		}
	}
	history := file(t, dir, "history.xnl")
	for _, want := range []string{
		"<user {\n  content = \"look \\\"here\\\"\"\n}>\n", "  content = \"I look.\"\n", `name = "TodoWrite"`,
		"rawToolCallsStr", `toolCallId = "c1"`, `reasoning_content = "hm"`,
	} {
		if !strings.Contains(history, want) {
			t.Errorf("%q is missing in\n%s", want, history)
		}
	}
	if got := file(t, dir, "todos.json"); !strings.Contains(got, `"total": 2`) || !strings.Contains(got, `"id": "1"`) ||
		!strings.Contains(got, `"content": "a"`) {
		t.Error(got)
	}
	log := file(t, dir, "app.log")
	if n := strings.Count(log, "] todos total=2\n"); n != 1 || strings.Contains(log, "todos total=1") {
		t.Errorf("the lists of tasks in\n%s", log)
	}
	for _, want := range []string{"messages=4\n", "messages=6\n"} { // one for each answer
		if !strings.Contains(log, "request provider=v apiKind=anthropic model=m "+want) {
			t.Errorf("%q is missing in\n%s", want, log)
		}
	}
	if n := strings.Count(log, "] request "); n != 2 {
		t.Errorf("%d requests in\n%s", n, log)
	}
}

func logged(e event.Event) session.Record { return session.Logged{Event: &e} }

func kindOf(r session.Record) event.Kind {
	if l, is := r.(session.Logged); is {
		return l.Event.Kind
	}
	return ""
}

func said(role model.Role, blocks ...model.Block) session.Record {
	return session.Message{Message: model.Message{Role: role, Blocks: blocks}}
}

func words(text string) model.Block { return model.Block{Kind: model.Text, Text: text} }

func file(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRecordContinues: what was written behind the last whole turn is written again, and nothing twice.
func TestRecordContinues(t *testing.T) {
	dir := t.TempDir()
	var records []session.Entry
	add := func(r session.Record) {
		number := int64(len(records) + 1)
		if l, is := r.(session.Logged); is {
			l.Event.Seq = number
		}
		records = append(records, session.Entry{Number: number, Record: r})
	}
	for turn := range 3 {
		add(logged(event.Event{Kind: event.Prompted, Blocks: []event.Block{{Text: fmt.Sprint("message ", turn)}}}))
		add(said(model.Assistant, words("answer")))
		add(logged(event.Event{Kind: event.Ended, End: &event.End{OK: true}}))
	}
	write := func(upTo int) string {
		r, err := OpenRecord(dir, "openai")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, e := range records[r.Seq():upTo] {
			if err := r.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		return file(t, dir, "history.xnl")
	}
	for _, upTo := range []int{5, 8, 9} { // in the middle of a turn, too
		write(upTo)
	}
	continued, json := file(t, dir, "history.xnl"), file(t, dir, "history.json")
	if err := os.Truncate(filepath.Join(dir, "history.xnl"), 10); err != nil { // by somebody
		t.Fatal(err)
	}
	whole := write(9)
	if whole != continued || strings.Count(whole, "<user") != 3 || json != file(t, dir, "history.json") {
		t.Errorf("%s\nis not\n%s", continued, whole)
	}
}
