package order_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/order"
)

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write the golden files anew")
	flag.Parse()
	os.Exit(m.Run())
}

// TestCaptures: what each agent has ever printed in a capture is, in both dialects, a stream that keeps the rules; one
// of each is there to be read.
func TestCaptures(t *testing.T) {
	for _, tt := range []struct {
		driver agent.Driver
		files  string
		most   string // the capture to read
		least  int    // how many there are
	}{
		{claude.New(), "output/*.jsonl", "streamjson-tools", 20},
		{codex.New(), "output/*.jsonl", "tools", 6},
		{gemini.New(), "stream*.jsonl", "stream-tools", 8},
		{copilot.New(), "json/*.jsonl", "tools", 8},
		{opencode.New(), "*.jsonl", "json-tools", 5},
	} {
		name := tt.driver.Name()
		files, _ := filepath.Glob(filepath.Join("../../agents", name, "testdata", tt.files))
		if len(files) < tt.least {
			t.Errorf("%s has %d captures", name, len(files))
		}
		for _, file := range files {
			capture := strings.TrimSuffix(filepath.Base(file), ".jsonl")
			t.Run(name+"/"+capture, func(t *testing.T) {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				facts := event.Facts{Agent: name, Mode: setting.Prompt, Dir: "/w"}
				for _, cut := range []int{len(data), len(data) / 2} { // and as if it had died in the middle
					flat, nested, err := order.Told(order.Read(tt.driver.Decode(setting.StreamJSON), data[:cut],
						agent.Exit{}), facts)
					if err != nil {
						t.Fatal(err)
					}
					if err := order.Flat(flat); err != nil {
						t.Errorf("flat, %d of %d: %v\n%s", cut, len(data), err, strings.Join(flat, "\n"))
					}
					if err := order.Nested(nested); err != nil {
						t.Errorf("nested, %d of %d: %v\n%s", cut, len(data), err, strings.Join(nested, "\n"))
					}
					if capture == tt.most && cut == len(data) {
						golden(t, name+".flat", flat)
						golden(t, name+".nested", nested)
					}
				}
			})
		}
	}
}

func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	path, got := filepath.Join("testdata", name+".golden"), order.Golden(lines)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%s: %v\n--- want\n%s--- got\n%s", path, err, want, got)
	}
}

// TestRules: each rule by a stream that breaks it, and nothing else.
func TestRules(t *testing.T) {
	const (
		begin  = `{"type":"system","subtype":"init","session_id":"s","uuid":"1"}`
		ask    = `{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"c","name":"n","input":{}}]},"session_id":"s","uuid":"2"}`
		answer = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]},"session_id":"s","uuid":"3"}`
		end    = `{"type":"result","subtype":"success","is_error":false,"result":"","usage":{"input_tokens":0},"permission_denials":[],"session_id":"s","uuid":"4"}`
	)
	good := []string{begin, ask, answer, end}
	if err := order.Nested(good); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		why, lines string
	}{
		{"is not an init", ask + answer + end},
		{"a second init", begin + strings.Replace(begin, `"1"`, `"9"`, 1) + end},
		{"has no result", begin + ask + end},
		{"the one result", begin + ask + answer + strings.Replace(answer, `"3"`, `"9"`, 1) + end},
		{"the one result", begin + answer + ask + end},
		{"identifier of its own", begin + ask + strings.Replace(answer, `"3"`, `"2"`, 1) + end},
		{"unknown type", begin + `{"type":"text","session_id":"s","uuid":"5"}` + end},
		{"last turn", begin + ask + answer},
		{"is not an init", begin + end + strings.Replace(end, `"4"`, `"5"`, 1)},
		{"an id", begin + strings.Replace(ask, `"id":"m",`, "", 1) + answer + end},
		{"unknown subtype", begin + strings.Replace(end, "success", "stop", 1)},
		{"how it went", begin + strings.Replace(end, "success", "error_max_turns", 1)},
	} {
		lines := strings.Split(strings.ReplaceAll(tt.lines, "}{", "}\n{"), "\n")
		if err := order.Nested(lines); err == nil || !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}

// TestQuestions: a question stands directly behind its call, also where the call was kept back, and is about a call
// that waits.
func TestQuestions(t *testing.T) {
	call := func(id string) event.Event {
		return event.Event{Kind: event.ToolCall, Call: &event.Call{ID: id, Name: "n"}}
	}
	result := func(id string) event.Event {
		return event.Event{Kind: event.ToolResult, Result: &event.Result{ID: id}}
	}
	ask := func(id string) event.Event {
		return event.Event{Kind: event.Question, Ask: &event.Ask{
			ID: "w" + id, Text: "may it?", Options: []string{"allow", "deny"}, Tool: &event.Call{ID: id, Name: "n"},
		}}
	}
	ended := event.Event{Kind: event.Ended, End: &event.End{OK: true}}
	flat, _, err := order.Told([]event.Event{
		call("a"), call("b"), call("c"), ask("a"), ask("b"), ask("c"), result("c"),
		result("a"), result("b"), ended,
	}, event.Facts{})
	if err == nil {
		err = order.Flat(flat)
	}
	all := strings.Join(flat, "\n")
	for _, want := range []string{
		`"id":"a","name":"n","input":{}}` + "\n" +
			`{"type":"system","subtype":"permission_request","tool_use_id":"a","question_id":"q1.1","text":"may it?","options":["allow","deny"]}`,
		`"id":"b","name":"n","input":{}}` + "\n" +
			`{"type":"system","subtype":"permission_request","tool_use_id":"b","question_id":"q1.2"`,
	} {
		// c has its result before anybody could hear of its question
		if !strings.Contains(all, want) || strings.Contains(all, "q1.3") {
			t.Errorf("%v: no %s in\n%s", err, want, all)
		}
	}
	const (
		begin = `{"type":"system","subtype":"init"}`
		use   = `{"type":"tool_use","id":"a","name":"n","input":{}}`
		q     = `{"type":"system","subtype":"permission_request","tool_use_id":"a","question_id":"q","text":"","options":[]}`
		back  = `{"type":"tool_result","tool_use_id":"a","content":"x"}`
		end   = `{"type":"result","is_error":false}` + `{"type":"message_stop"}`
	)
	for lines, want := range map[string]string{
		begin + use + q + back + end: "",
		begin + use + q + q + back +
			end: "not one question",
		begin + q + use + back +
			end: "about no call",
		begin + use + back + q +
			end: "about no call",
		begin + use + `{"type":"system","subtype":"steered"}` + q + back +
			end: "does not follow",
		begin + use + strings.Replace(q, `,"options":[]`, "", 1) + back +
			end: "not one question",
		begin + `{"type":"system","subtype":"permission_request","question_id":"q","options":[]}` + end: "",
	} {
		err := order.Flat(strings.Split(strings.ReplaceAll(lines, "}{", "}\n{"), "\n"))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
