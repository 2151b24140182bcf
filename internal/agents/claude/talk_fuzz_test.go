package claude

import (
	"bytes"
	"encoding/json"
	"testing"

	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

// FuzzTalk: whatever the CLI says, nothing breaks, a message has at most one end, and what we say is lines of JSON.
func FuzzTalk(f *testing.F) {
	out, _ := captured(f)
	f.Add(out, 100)
	f.Add([]byte(askLine+`{"type":"control_cancel_request","request_id":"r1"}`), 3)
	f.Add([]byte(
		`{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","input":{"hook_event_name":"PreToolUse","tool_name":"Bash"}}}`+"\n"), 9)
	f.Add([]byte(
		`{"type":"control_request","request_id":"h","request":{"subtype":"mcp_message","server_name":"s","message":{"id":[1]}}}`+"\n"), 9)
	f.Add([]byte(
		`{"type":"control_request","request_id":"h","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{},{}]}}}`+"\n"), 9)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		w := greeted(t, talkOptions{mode: setting.AskAll, hooks: true, servers: []string{"s"}})
		if len(data) > 0 {
			cut = ((cut % len(data)) + len(data)) % len(data)
		} else {
			cut = 0
		}
		ends := 0
		take := func(step live.Step) {
			for _, line := range step.Lines {
				if !json.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
					t.Fatalf("%q", line)
				}
			}
			for _, e := range step.Events {
				if e.Kind == event.Ended && !e.Unprompted {
					ends++
				}
				if e.Kind == event.Question {
					_, _ = w.Do(live.Command{Answer: &event.Reply{Question: e.Ask.ID, Option: event.Allow}})
				}
			}
			for _, n := range step.Needs {
				answered, _ := w.Do(live.Command{HostAnswer: &live.HostAnswer{Need: n.ID}})
				for _, line := range answered.Lines {
					if !json.Valid(line) {
						t.Fatalf("%q", line)
					}
				}
			}
		}
		take(w.Feed(data[:cut]))
		take(w.Feed(data[cut:]))
		take(live.Step{Events: w.End(agent.Exit{})})
		if ends > 1 {
			t.Fatalf("%d ends for one message", ends)
		}
	})
}

// TestInput of a call is as it came on the wire, byte for byte.
func TestInput(t *testing.T) {
	const input = `{ "command" : "ls <é\u00e9>" ,"command":"x", "n": 1.0 }`
	w := greeted(t, talkOptions{})
	for _, said := range []string{
		`{"type":"assistant","message":{"id":"a1","content":[{"type":"tool_use","id":"t1","name":"Bash","input":` +
			input + `}]}}`,
		`{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":` +
			input + `}}`,
	} {
		e := w.Feed([]byte(said + "\n")).Events[0]
		call := e.Call
		if e.Ask != nil {
			call = e.Ask.Tool
		}
		if string(call.Input) != input {
			t.Errorf("%s", call.Input)
		}
	}
}
