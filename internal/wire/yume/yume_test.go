package yume_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/wire/yume"
)

// TestParser reads what the GUI's own parser reads, to the same effect.
func TestParser(t *testing.T) {
	data, err := os.ReadFile("testdata/parser.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID       string           `json:"id"`
		Lines    []string         `json:"lines"`
		Messages []map[string]any `json:"messages"`
		Expect   map[string]any   `json:"expect"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		var d yume.Decoder
		events := d.Feed([]byte(strings.Join(c.Lines, "\n") + "\n"))
		for _, m := range c.Messages {
			if m == nil { // the line says nothing by itself
				continue
			}
			found := false
			for _, e := range events {
				switch m["type"] {
				case "text":
					found = found || e.Kind == event.Text && e.Text == m["content"]
				case "system":
					found = found || e.Kind == event.Started && e.Session == m["session_id"]
				case "raw":
					found = found || e.Kind == event.Notice && strings.Contains(string(e.Raw), m["raw_type"].(string))
				}
			}
			if ends := m["type"] == "usage" || m["type"] == "message_stop"; ends != (len(events) == 0) || !ends &&
				!found {
				t.Errorf("%s: %+v of %v", c.ID, events, m)
			}
		}
		if c.Expect["num_turns"] != nil {
			end := events[0].End
			if !end.OK || *end.Turns != 3 || *end.Usage.CostUSD != 0.05 || end.Usage.Cached != 200 ||
				end.Usage.Written != 100 || end.Usage.Input != 1300 {
				t.Errorf("%s: %+v", c.ID, end)
			}
		}
		if c.Expect["compact_metadata.trigger"] != nil &&
			(events[0].Compaction.Trigger != "auto" || events[0].Compaction.Before != 50000) {
			t.Errorf("%s: %+v", c.ID, events)
		}
	}
}

// samples are events of every kind.
func samples() []event.Event {
	turns, cost := 2, 0.5
	return []event.Event{
		{Kind: event.TurnBegan, Session: "s"},
		{Kind: event.Thinking, Text: "hm", Delta: true},
		{Kind: event.Text, Text: "Hel", Delta: true},
		{Kind: event.Text, Text: "Hel", Delta: true},
		{
			Kind: event.ToolCall,
			Call: &event.Call{ID: "c1", Name: "Bash", Input: json.RawMessage(`{"command":"a<b && c"}`)},
		},
		{Kind: event.Denied, Denial: &event.Denial{CallID: "c1", Tool: "Bash", Reason: "no"}},
		{Kind: event.ToolResult, Result: &event.Result{ID: "c1", Failed: true, Output: "no\xff"}},
		{Kind: event.ToolCall, Call: &event.Call{ID: "c2", Name: "Task"}},
		{Kind: event.Text, Text: "inside", Parent: "c2", Delta: true},
		{Kind: event.ToolResult, Result: &event.Result{ID: "c2", Output: "ok"}},
		{Kind: event.Retry, Retry: &event.Repetition{Attempt: 1}},
		{Kind: event.Compacted, Compaction: &event.Compaction{Trigger: "auto", Before: 9}},
		{Kind: event.Text, Text: strings.Repeat("é", 60_000), Delta: true},
		{Kind: event.Ended, Model: "m", End: &event.End{
			OK: true, Text: "done", Reason: "success", Turns: &turns,
			Usage: &event.Usage{Input: 10, Cached: 4, Written: 1, Output: 3, CostUSD: &cost},
		}},
	}
}

func encoded(events []event.Event) []string {
	e := yume.Encoder{Mode: "default"}
	lines := e.Begin("s", event.Facts{Model: "m", Dir: "/w", Tools: []string{"Bash"}})
	for _, ev := range events {
		lines = append(lines, e.Event(ev)...)
	}
	var all []string
	for _, line := range lines {
		all = append(all, string(line))
	}
	return all
}

// TestRoundTrip: what is written is read again as what it was, cut anywhere.
func TestRoundTrip(t *testing.T) {
	lines := encoded(samples())
	seen := map[string]bool{}
	for _, line := range lines {
		if !json.Valid([]byte(line)) || !utf8.ValidString(line) || strings.ContainsAny(line, "\n\x1b") ||
			len(line) > 100_000 || seen[line] && strings.Contains(line, `"text"`) {
			t.Errorf("%.200s", line)
		}
		seen[line] = true
	}
	stream := strings.Join(lines, "\n") + "\n"
	if strings.Contains(stream, `\u003c`) {
		t.Error("commands are written so that a person cannot read them")
	}
	var whole yume.Decoder
	want := whole.Feed([]byte(stream))
	text := ""
	for _, e := range want {
		if e.Kind == event.Text && e.Parent == "" {
			text += e.Text
		}
	}
	end := want[len(want)-1].End
	if text != "HelHel"+strings.Repeat("é", 60_000) || !end.OK || end.Usage.Input != 10 || end.Usage.Cached != 4 ||
		end.Usage.Written != 1 || *end.Usage.CostUSD != 0.5 {
		t.Errorf("%.100s, %+v", text, end)
	}
	short := encoded(append(samples()[:12:12], samples()[13]))
	stream = strings.Join(short, "\n") + "\n"
	var d yume.Decoder
	want = d.Feed([]byte(stream))
	for at := range len(stream) {
		var cut yume.Decoder
		got := cut.Feed([]byte(stream[:at]))
		got = append(got, cut.Feed([]byte(stream[at:]))...)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d: %+v", at, got)
		}
		var torn yume.Decoder
		events := append(torn.Feed([]byte(stream[:at])), torn.End(agent.Exit{})...)
		if last := events[len(events)-1]; last.Kind != event.Ended {
			t.Fatalf("torn at %d: the end is missing: %+v", at, last)
		}
	}
}

// TestEnds: each way in which a turn can end.
func TestEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		events []event.Event
		want   []string // parts of the lines, in order
	}{
		"login": {
			[]event.Event{
				{
					Kind: event.Failed, Terminal: true, Fault: fault.New(fault.AuthRequired, "no key").Hint("set it"),
				},
				{Kind: event.Ended, End: &event.End{Reason: "error_during_execution"}},
			},
			[]string{`"subtype":"error"`, `"result":"Error: no key (set it)"`, "message_stop"},
		},
		"after text": {
			[]event.Event{
				{Kind: event.Text, Text: "a", Delta: true},
				{Kind: event.Failed, Terminal: true, Fault: fault.New(fault.AuthRequired, "no key")},
				{
					Kind: event.Ended,
					End:  &event.End{Reason: "error_during_execution"},
				},
			},
			[]string{
				`"text"`, `{"type":"error","message":"no key","code":"AUTH_REQUIRED"}`, `"is_error":true`,
				"message_stop",
			},
		},
		"interrupted": {
			[]event.Event{{Kind: event.Ended, End: &event.End{Reason: "cancelled"}}},
			[]string{`{"type":"interrupt"}`, `"subtype":"cancelled"`, "message_stop"},
		},
		"turns": {
			[]event.Event{{Kind: event.Ended, End: &event.End{Reason: "error_max_turns"}}},
			[]string{`"result":"Error: the limit of model turns is reached"`, "message_stop"},
		},
		"no usage": {
			[]event.Event{{
				Kind: event.Ended,
				End:  &event.End{OK: true, Reason: "success", Usage: &event.Usage{}},
			}},
			[]string{`"result"`, "message_stop"},
		},
		"estimated": {
			[]event.Event{{
				Kind: event.Ended,
				End: &event.End{
					OK: true, Reason: "success", Usage: &event.Usage{Input: 1, Output: 1, Estimated: true},
				},
			}},
			[]string{`"usage_estimated":true`, `"usage_estimated":true`, "message_stop"},
		},
	} {
		lines := encoded(tt.events)[1:]
		if len(lines) != len(tt.want) {
			t.Errorf("%s: %q", name, lines)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: %s lacks %s", name, lines[i], want)
			}
		}
		if strings.Contains(strings.Join(lines, ""), `"usage":{"input_tokens":0,"output_tokens":0`) {
			t.Errorf("%s: a usage of zero", name)
		}
	}
}

func TestFrames(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"user","content":"hi"}`:                           "user hi",
		`{"type":"user","message":{"role":"user","content":"hi"}}`: "user hi",
		`{"type":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"media_type":"image/png","data":"aGk="}}]}`: "user a image/png 2",
		`{"type":"interrupt"}`:                                            "interrupt",
		`{"type":"set_permission_mode","mode":"auto"}`:                    "mode yolo",
		`{"type":"tool_approval","id":"c","approved":false,"reason":"r"}`: "approval c deny r",
		`{"type":"tool_approval","id":"q1.1","option":"always"}`:          "approval q1.1 always ",
		`{"type":"user","content":"hi","steer":true}`:                     "steer hi",
		`{"type":"set_permission_mode","mode":"yolo"}`:                    "mode yolo",
		`{"type":"set_permission_mode","mode":"plan"}`:                    "mode plan",
		`{"type":"set_permission_mode","mode":"everything"}`:              "wrong",
		`{"type":"tool_approval","id":"c"}`:                               "wrong",
		`{"type":"user","content":" "}`:                                   "wrong",
		`{"type":"user","content":[{"type":"video"}]}`:                    "wrong",
		`{"type":"user"}`:  "wrong",
		`{"type":"dance"}`: "wrong",
		`{}`:               "wrong",
		`[1]`:              "wrong",
		`nothing`:          "wrong",
	} {
		f, err := yume.Parse([]byte(line))
		got := "wrong"
		switch {
		case err != nil:
		case f.User != nil:
			got = map[bool]string{false: "user", true: "steer"}[f.Steer]
			for _, b := range f.User {
				if b.Media != "" {
					got += fmt.Sprintf(" %s %d", b.Media, len(b.Data))
				} else {
					got += " " + b.Text
				}
			}
		case f.Interrupt:
			got = "interrupt"
		case f.Mode != "":
			got = "mode " + string(f.Mode)
		case f.Approval != nil:
			got = fmt.Sprintf("approval %s %v %s", f.Approval.ID, f.Approval.Option, f.Approval.Reason)
		}
		if got != want {
			t.Errorf("%s: %s (%v)", line, got, err)
		}
	}
}

// TestLongLines: an agent that never ends a line, or writes lines of no object, costs no memory, and is told of once.
func TestLongLines(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{
		"a line without an end": {strings.Repeat("x", 64<<20+1)},
		"lines of no object":    slices.Repeat([]string{"{" + strings.Repeat("x", 9_999) + "\n"}, 11),
	} {
		var d yume.Decoder
		failed := 0
		for _, part := range parts {
			for _, e := range d.Feed([]byte(part)) {
				if e.Kind == event.Failed {
					failed++
				}
			}
		}
		after := d.Feed([]byte("\n" + `{"type":"text","content":"hi"}` + "\n"))
		if failed != 1 || len(after) != 1 || after[0].Text != "hi" {
			t.Errorf("%s: %d errors; what follows: %+v", name, failed, after)
		}
	}
}

// FuzzDecode: no stream makes the decoder panic or forget its end.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(strings.Join(encoded(samples()[:8]), "\n")))
	f.Add([]byte("$\n{\"type\":\n\"text\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d yume.Decoder
		events := append(d.Feed(data), d.End(agent.Exit{})...)
		ended := false
		for _, e := range events {
			ended = ended || e.Kind == event.Ended
		}
		if !ended {
			t.Errorf("%+v", events)
		}
		_, _ = yume.Parse(data)
	})
}

// TestSideBySide: calls that run at the same time are told one behind the other, and what a sub-agent does stays with
// its call.
func TestSideBySide(t *testing.T) {
	call := func(id, parent string) event.Event {
		return event.Event{Kind: event.ToolCall, Parent: parent, Call: &event.Call{ID: id, Name: "n"}}
	}
	result := func(id, parent string) event.Event {
		return event.Event{Kind: event.ToolResult, Parent: parent, Result: &event.Result{ID: id}}
	}
	lines := encoded([]event.Event{
		call("a", ""), call("b", ""), call("c", ""), call("a1", "a"), call("b1", "b"), result("b1", "b"), result("c",
			""),
		{Kind: event.Denied, Denial: &event.Denial{CallID: "b", Tool: "n"}},
		result("b", ""), result("a1", "a"),
		{Kind: event.Text, Text: "between", Delta: true},
		result("a", ""),
		{Kind: event.Ended, End: &event.End{OK: true, Reason: "success"}},
	})
	var got []string
	for _, line := range lines[1:] {
		var m struct {
			Type, ID string
			Of       string `json:"tool_use_id"`
		}
		_ = json.Unmarshal([]byte(line), &m)
		got = append(got, strings.TrimSpace(m.Type+" "+m.ID+m.Of))
	}
	want := "tool_use a; tool_use a1; tool_result a1; tool_result a; tool_use b; tool_use b1; tool_result b1; " +
		"tool_result b; tool_use c; tool_result c; text t1; result; message_stop"
	if strings.Join(got, "; ") != want ||
		!strings.Contains(lines[len(lines)-2],
			`"permission_denials":[{"tool_name":"n","tool_use_id":"b","tool_input":{}}]`) {
		t.Errorf("%s\n%s", strings.Join(got, "; "), lines[len(lines)-2])
	}
}
