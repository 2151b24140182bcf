package conversation

import (
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// TestAssembly: the ways in which agents report events become one.
func TestAssembly(t *testing.T) {
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
	in := func(parent string, e event.Event) event.Event { e.Parent = parent; return e }
	one := 1
	for _, tt := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"a whole alone", []event.Event{text("ab", false), ended(true, "")}, "text ab+; text ab; end success ab"},
		{"the whole repeats the pieces", []event.Event{
			text("a", true), text("b", true), text("ab", false),
			ended(true, "stop"),
		}, "text a+; text b+; text ab; end success ab (stop)"},
		{
			"the whole says more",
			[]event.Event{text("a", true), text("abc", false), ended(true, "")},
			"text a+; text bc+; text abc; end success abc",
		},
		{
			"the whole says something else",
			[]event.Event{text("a", true), text("xyz", false), ended(true, "")},
			"text a+; text a*; text xyz+; text xyz; end success xyz",
		},
		{
			"an empty piece",
			[]event.Event{text("", true), text("", false), ended(true, "")},
			"failed NO_ANSWER*; end error_during_execution ",
		},
		{"no whole", []event.Event{text("a", true), ended(true, "")}, "text a+; text a*; end success a"},
		{"no whole in front of a call", []event.Event{
			text("a", true), call("1"), result("1"), text("b", true),
			ended(true, ""),
		}, "text a+; text a*; tool_call 1; tool_result 1 o; text b+; text b*; end success b"},
		{"a sub-agent speaks in between", []event.Event{
			text("a", true), in("1", text("x", true)), text("ab", false),
			ended(true, ""),
		}, "text a+; text x+; text b+; text ab; text x*; end success ab"},
		{
			"torn characters",
			[]event.Event{text("a\xff", true), ended(true, "")},
			"text a\uFFFD+; text a\uFFFD*; end success a\uFFFD",
		},
		{
			"a call in between",
			[]event.Event{text("a", true), call("1"), result("1"), text("a", false), ended(true, "")},
			"text a+; text a*; tool_call 1; tool_result 1 o; text a+; text a; end success a",
		},
		{
			"a call that is reported twice",
			[]event.Event{call("1"), call("1"), result("1"), ended(true, "")},
			"tool_call 1; notice a call that was reported twice; tool_result 1 o; end success ",
		},
		{
			"no result",
			[]event.Event{call("1"), call("2"), result("1"), ended(false, "x")},
			"tool_call 1; tool_call 2; tool_result 1 o; tool_result 2 " + noResult +
				"!*; end error_during_execution (x)",
		},
		{
			"a command that may go on",
			[]event.Event{
				{Kind: event.ToolCall, Call: &event.Call{ID: "1", Kind: event.Shell}},
				text("a", false),
				ended(true, ""),
			},
			"tool_call 1; text a+; text a; tool_result 1 " + noEnd + "!*; end success a",
		},
		{
			"no result of what was denied",
			[]event.Event{
				call("1"),
				{Kind: event.Denied, Denial: &event.Denial{CallID: "1", Tool: "x", ByUser: true}},
				ended(false, ""),
			},
			"tool_call 1; denied ; tool_result 1 " + wasRefused + "!*; end error_during_execution ",
		},
		{
			"the sub-agent's first",
			[]event.Event{call("1"), in("1", call("2")), ended(false, "")},
			"tool_call 1; tool_call 2; tool_result 2 " + noResult + "!*; tool_result 1 " + noResult +
				"!*; end error_during_execution ",
		},
		{
			"no call",
			[]event.Event{result("1"), text("a", false), ended(true, "")},
			"notice a result without its call; text a+; text a; end success a",
		},
		{
			"a code that says no",
			[]event.Event{
				call("1"),
				{Kind: event.ToolResult, Result: &event.Result{ID: "1", ExitCode: &one}},
				ended(true, ""),
			},
			"tool_call 1; tool_result 1 !; end success ",
		},
		{
			"overcome",
			[]event.Event{failed(fault.ContextFull), text("a", false), ended(true, "")},
			"text a+; text a; end success a it is CONTEXT_FULL",
		},
		{"not overcome", []event.Event{
			failed(fault.ContextFull), failed(fault.AgentFailed), text("a", false),
			ended(false, "stop"),
		}, "text a+; text a; failed CONTEXT_FULL; end error_during_execution (stop)"},
		{"the better word comes later", []event.Event{
			failed(fault.AgentFailed), failed(fault.AuthRequired),
			ended(false, ""),
		}, "failed AUTH_REQUIRED; end error_during_execution "},
		{
			"interrupted",
			[]event.Event{failed(fault.Interrupted), ended(false, "aborted_tools")},
			"end cancelled (aborted_tools)",
		},
		{"interrupted, codex", []event.Event{ended(false, "interrupted")}, "end cancelled (interrupted)"},
		{"limits", []event.Event{ended(false, "max_turns")}, "end error_max_turns (max_turns)"},
		{
			"the next turn",
			[]event.Event{failed(fault.APIError), ended(false, ""), text("b", false), ended(true, "")},
			"failed API_ERROR; end error_during_execution ; text b+; text b; end success b",
		},
	} {
		var a assembly
		var words []string
		for _, e := range tt.events {
			for _, e := range a.put(e) {
				words = append(words, word(e))
			}
		}
		if got := strings.Join(words, "; "); got != tt.want {
			t.Errorf("%s:\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

// word renders an event: + is a piece, ! a failure, * an event of ours; the agent's own reason is in brackets.
func word(e event.Event) string {
	word := string(e.Kind) + " "
	switch {
	case e.Call != nil:
		word += e.Call.ID
	case e.Result != nil:
		word += e.Result.ID + " " + e.Result.Output
		if e.Result.Failed {
			word += "!"
		}
	case e.Fault != nil:
		word += string(e.Fault.Code)
	case e.End != nil:
		word += strings.Join(append([]string{e.End.Reason, e.End.Text}, e.End.Notes...), " ")
		if e.End.AgentReason != "" {
			word = strings.TrimSpace(word) + " (" + e.End.AgentReason + ")"
		}
	default:
		word += e.Text
		if e.Delta {
			word += "+"
		}
	}
	if e.Synthetic {
		word += "*"
	}
	return word
}

// TestLongText: a text that goes on for ever in pieces becomes several wholes, so that memory is bounded.
func TestLongText(t *testing.T) {
	var a assembly
	piece := strings.Repeat("x", longestWhole/4)
	wholes := 0
	for range 9 {
		for _, e := range a.put(event.Event{Kind: event.Text, Text: piece, Delta: true}) {
			if !e.Delta {
				if wholes++; len(e.Text) != longestWhole {
					t.Errorf("%d bytes", len(e.Text))
				}
			}
		}
	}
	if wholes != 2 {
		t.Errorf("%d wholes", wholes)
	}
}
