package stream

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// TestCourse: what agents tell in a way of their own is told in one.
func TestCourse(t *testing.T) {
	text := func(s string, delta bool) event.Event { return event.Event{Kind: event.Text, Text: s, Delta: delta} }
	call := func(id string) event.Event {
		return event.Event{Kind: event.ToolCall, Call: &event.Call{ID: id, Kind: event.Shell, Command: "ls"}}
	}
	result := func(id string) event.Event {
		return event.Event{Kind: event.ToolResult, Result: &event.Result{ID: id, Output: "o"}}
	}
	failed := func(code fault.Code) event.Event {
		return event.Event{Kind: event.Failed, Terminal: true, Fault: fault.New(code, "it is %s", code)}
	}
	ended := func(ok bool, reason string) event.Event {
		return event.Event{Kind: event.Ended, End: &event.End{OK: ok, Reason: reason}}
	}
	for _, tt := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"the whole repeats the pieces", []event.Event{text("a", true), text("b", true), text("ab", false), ended(true, "stop")}, "text a+; text b+; text ; end success ab"},
		{"the whole says more", []event.Event{text("a", true), text("abc", false), ended(true, "")}, "text a+; text bc+; text ; end success abc"},
		{"the whole says something else", []event.Event{text("a", true), text("xyz", false), ended(true, "")}, "text a+; text xyz; end success xyz"},
		{"a call in between", []event.Event{text("a", true), call("1"), result("1"), text("a", false), ended(true, "")}, `text a+; tool_call 1 {"command":"ls"}; tool_result 1 o; text a; end success a`},
		{"no result", []event.Event{call("1"), call("2"), result("1"), ended(false, "x")}, `tool_call 1 {"command":"ls"}; tool_call 2 {"command":"ls"}; tool_result 1 o; tool_result 2 ` + noResult + "!; end error_during_execution "},
		{"no call", []event.Event{result("1"), ended(true, "")}, "notice a result without its call; end success "},
		{"overcome", []event.Event{failed(fault.ContextFull), text("a", false), ended(true, "")}, "text a; end success a it is CONTEXT_FULL"},
		{"not overcome", []event.Event{failed(fault.ContextFull), failed(fault.AgentFailed), text("a", false), ended(false, "stop")}, "text a; failed CONTEXT_FULL; end error_during_execution "},
		{"the better word comes later", []event.Event{failed(fault.AgentFailed), failed(fault.AuthRequired), ended(false, "")}, "failed AUTH_REQUIRED; end error_during_execution "},
		{"interrupted", []event.Event{failed(fault.Interrupted), ended(false, "aborted_tools")}, "end cancelled "},
		{"interrupted, codex", []event.Event{ended(false, "interrupted")}, "end cancelled "},
		{"limits", []event.Event{ended(false, "max_turns")}, "end error_max_turns "},
		{"the next turn", []event.Event{failed(fault.APIError), ended(false, ""), text("b", false), ended(true, "")}, "failed API_ERROR; end error_during_execution ; text b; end success b"},
	} {
		var c course
		var words []string
		for _, e := range tt.events {
			for _, e := range c.put(e) {
				words = append(words, toldWord(e))
			}
		}
		if got := strings.Join(words, "; "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	odd := (&event.Call{Input: json.RawMessage(`[1]`), Path: "p"}).Object()
	if string(odd) != `{"file_path":"p","input":[1]}` {
		t.Errorf("%s", odd)
	}
}

func toldWord(e event.Event) string {
	word := string(e.Kind) + " "
	switch {
	case e.Call != nil:
		word += e.Call.ID + " " + string(e.Call.Input)
	case e.Result != nil:
		word += e.Result.ID + " " + e.Result.Output
		if e.Result.Failed {
			word += "!"
		}
	case e.Fault != nil:
		word += string(e.Fault.Code)
	case e.End != nil:
		word += strings.Join(append([]string{e.End.Reason, e.End.Text}, e.End.Notes...), " ")
	default:
		word += e.Text
		if e.Delta {
			word += "+"
		}
	}
	return word
}

// TestOneAtATime: a message that comes too early for the agent waits for its turn; an interruption ends those that wait as well.
func TestOneAtATime(t *testing.T) {
	for _, interrupted := range []bool{false, true} {
		var out board
		s := &single{events: event.NewQueue(0)}
		frames := make(chan Said, 3)
		h := New(&out, &Yume{}, Lines)
		h.Session, h.Frames, h.Stays = s, frames, true
		h.Log, h.Detail = func(f string, a ...any) { t.Errorf(f, a...) }, func(string, ...any) {}
		for _, m := range []string{"one", "two", "three"} {
			frames <- Said{Frame: Frame{User: []event.Block{{Text: m}}}}
		}
		s.full = func() {
			if interrupted {
				frames <- Said{Frame: Frame{Do: h.interrupt}}
			} else {
				s.end(true)
			}
			close(frames)
		}
		if code := h.Run(t.Context()); code != 0 {
			t.Errorf("exit code %d", code)
		}
		all := strings.Join(out.lines(), "\n")
		if n := strings.Count(all, `"type":"message_stop"`); n != 3 || interrupted != (strings.Join(s.took, " ") == "one") || interrupted != strings.Contains(all, "cancelled") {
			t.Errorf("%q\n%s", s.took, all)
		}
	}
}

// single is an agent that takes a message at a time. It ends the first turn when it is told to, and the others at once.
type single struct {
	agent.Session
	events *event.Queue
	took   []string
	busy   bool
	full   func() // all three have been tried
}

func (s *single) ID() string                                    { return "s" }
func (s *single) Facts() event.Facts                            { return event.Facts{} }
func (s *single) Next(ctx context.Context) (event.Event, error) { return s.events.Next(ctx) }
func (s *single) Interrupt(context.Context) error               { s.end(false); return nil }
func (s *single) Close(context.Context) (agent.Outcome, error) {
	s.events.Close()
	return agent.Outcome{}, nil
}

func (s *single) Send(_ context.Context, blocks []event.Block) error {
	if s.busy {
		s.full()
		return fault.New(fault.LockHeld, "it still works")
	}
	s.took = append(s.took, blocks[0].Text)
	if s.busy = true; len(s.took) > 1 {
		s.end(true)
	}
	return nil
}

func (s *single) end(ok bool) {
	s.busy = false
	reason := "stop"
	if !ok {
		reason = "interrupted"
	}
	s.events.Put(event.Event{Kind: event.Ended, End: &event.End{OK: ok, Reason: reason}})
}
