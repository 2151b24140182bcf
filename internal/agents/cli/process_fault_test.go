package cli_test

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// TestOrderOfJudgement: of two that hold the one that stands first here decides, whatever else holds.
func TestOrderOfJudgement(t *testing.T) {
	order := []struct {
		name string
		code fault.Code // empty: success
		hold func(*agent.Exit, *agent.Evidence)
	}{
		{"our signal", fault.Interrupted, func(x *agent.Exit, _ *agent.Evidence) { x.EndedBy = "SIGTERM" }},
		{"our timeout", fault.TimedOut, func(x *agent.Exit, _ *agent.Evidence) { x.EndedBy = "timeout" }},
		{
			"not started", fault.NotInstalled,
			func(x *agent.Exit, _ *agent.Evidence) { x.Failed = fault.New(fault.NotInstalled, "it is not there") },
		},
		{"its own 3", fault.Blocked, func(x *agent.Exit, _ *agent.Evidence) { x.Code = 3 }},
		{
			"an error that ended the turn", fault.APIError,
			func(_ *agent.Exit, e *agent.Evidence) { e.Fault = fault.New(fault.APIError, "x") },
		},
		{"its usage code", fault.AgentUsage, func(x *agent.Exit, _ *agent.Evidence) { x.Code = 42 }},
		{"a signal", fault.AgentFailed, func(x *agent.Exit, _ *agent.Evidence) { x.Code, x.Signal = -1, "SIGSEGV" }},
		{"another code", fault.AgentFailed, func(x *agent.Exit, _ *agent.Evidence) { x.Code = 9 }},
		{
			"a denial", fault.Blocked,
			func(_ *agent.Exit, e *agent.Evidence) { e.Denials = []event.Denial{{Tool: "Bash"}} },
		},
		{"no answer", fault.NoAnswer, func(_ *agent.Exit, e *agent.Evidence) { e.Answered = agent.No }},
		{"an answer", "", func(_ *agent.Exit, e *agent.Evidence) { e.Answered = agent.Yes }},
		{"nothing known", "", func(*agent.Exit, *agent.Evidence) {}},
	}
	for i, first := range order {
		for _, second := range order[i:] {
			var x agent.Exit
			var e agent.Evidence
			second.hold(&x, &e)
			first.hold(&x, &e) // a code has room for one
			got := cli.ProcessFault(x, e, 2, 42)
			if first.code == "" && got != nil || first.code != "" && (got == nil || got.Code != first.code) {
				t.Errorf("%s and %s: %v, want %s", first.name, second.name, got, first.code)
			}
		}
	}
}

func TestWhatIsSaidOfTheEnd(t *testing.T) {
	denied := agent.Evidence{Denials: []event.Denial{{Tool: "Bash"}, {Tool: "Write"}, {Tool: "Bash"}}}
	tests := []struct {
		exit   agent.Exit
		e      agent.Evidence
		text   string
		detail map[string]any
	}{
		{agent.Exit{EndedBy: "SIGHUP"}, denied, "the agent was ended by SIGHUP", map[string]any{"signal": "SIGHUP"}},
		{agent.Exit{Code: 3}, agent.Evidence{}, "the agent says that policy blocked it", nil},
		{
			agent.Exit{Code: 3},
			denied, "the agent was not allowed to use Bash, nor 2 more",
			map[string]any{"denied": []string{"Bash", "Write", "Bash"}},
		},
		{
			agent.Exit{},
			agent.Evidence{Denials: denied.Denials[:1]},
			"the agent was not allowed to use Bash",
			map[string]any{"denied": []string{"Bash"}},
		},
		{
			agent.Exit{Code: 2},
			agent.Evidence{},
			"the agent rejected its arguments (exit code 2)",
			map[string]any{"agent_exit_code": 2},
		},
		{
			agent.Exit{Code: -1, Signal: "SIGBUS"},
			agent.Evidence{},
			"the agent was ended by SIGBUS",
			map[string]any{"agent_signal": "SIGBUS"},
		},
		{
			agent.Exit{Code: 7},
			agent.Evidence{},
			"the agent ended with exit code 7",
			map[string]any{"agent_exit_code": 7},
		},
		{agent.Exit{Failed: errors.New("broken")}, agent.Evidence{}, "broken", nil},
	}
	for _, tt := range tests {
		f := cli.ProcessFault(tt.exit, tt.e, 2)
		if f == nil || f.Error() != tt.text || !reflect.DeepEqual(f.Detail, tt.detail) {
			t.Errorf("%+v: %v, %v", tt.exit, f, f.Detail)
		}
	}
}

func TestEvidence(t *testing.T) {
	lost := fault.New(fault.APIError, "lost")
	usage := &event.Usage{Input: 1}
	failed := event.Event{Kind: event.Failed, Fault: lost, Terminal: true}
	end := func(ok bool) event.Event { return event.Event{Kind: event.Ended, End: &event.End{OK: ok}} }
	tests := []struct {
		name   string
		events []event.Event
		want   agent.Evidence
	}{
		{"nothing", nil, agent.Evidence{Answered: agent.No, DenialsKnown: true}},
		{
			"thinking alone",
			[]event.Event{{Kind: event.Thinking, Text: "x"}},
			agent.Evidence{Answered: agent.No, DenialsKnown: true},
		},
		{
			"the last of each",
			[]event.Event{{Session: "a", Model: "m"}, {Session: "b"}, {Kind: event.Text, Model: "n"}},
			agent.Evidence{Session: "b", Model: "n", Answered: agent.Yes, DenialsKnown: true},
		},
		{"a tool call", []event.Event{{Kind: event.ToolCall}}, agent.Evidence{Answered: agent.Yes, DenialsKnown: true}},
		{
			"denials",
			[]event.Event{
				{Kind: event.Denied, Denial: &event.Denial{Tool: "a"}},
				{Kind: event.Denied, Denial: &event.Denial{Tool: "b"}},
			},
			agent.Evidence{Answered: agent.No, DenialsKnown: true, Denials: []event.Denial{{Tool: "a"}, {Tool: "b"}}},
		},
		{
			"an error on the way",
			[]event.Event{{Kind: event.Failed, Fault: lost}},
			agent.Evidence{Answered: agent.No, DenialsKnown: true},
		},
		{
			"an error that ends it",
			[]event.Event{failed, end(false)},
			agent.Evidence{Answered: agent.No, DenialsKnown: true, Fault: lost},
		},
		{
			"an error that was overcome",
			[]event.Event{failed, end(true)},
			agent.Evidence{Answered: agent.No, DenialsKnown: true},
		},
		{
			"an error after the end",
			[]event.Event{end(true), failed},
			agent.Evidence{Answered: agent.No, DenialsKnown: true, Fault: lost},
		},
		{
			"usage",
			[]event.Event{{Kind: event.Ended, End: &event.End{Usage: usage}}, end(false)},
			agent.Evidence{Answered: agent.No, DenialsKnown: true, Usage: usage},
		},
	}
	for _, tt := range tests {
		if got := cli.EvidenceOf(tt.events); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", tt.want))
		}
	}
	p := cli.Program{UsageCodes: []int{5}}
	if f := p.Classify(agent.Exit{Code: 5}, nil); f == nil || f.Code != fault.AgentUsage {
		t.Errorf("%v", f)
	}
	if f := p.Classify(agent.Exit{}, []event.Event{{Kind: event.Text}, end(true)}); f != nil {
		t.Errorf("%v", f)
	}
}

// TestLongNameOfATool: what an agent calls its tool does not fill the error.
func TestLongNameOfATool(t *testing.T) {
	f := cli.DenialFault([]event.Denial{{Tool: strings.Repeat("x", 10_000)}})
	if n := strings.Count(f.Error(), "x"); n != 200 {
		t.Errorf("%d bytes of it: %v", n, f)
	}
}

// TestHintAfterADenial: --approval is advised only where it lifts one of the denials.
func TestHintAfterADenial(t *testing.T) {
	lifted, rule, person := event.Denial{Tool: "A"}, event.Denial{Tool: "B", Firm: true},
		event.Denial{Tool: "C", ByUser: true}
	for _, tt := range []struct {
		denials []event.Denial
		lifts   bool
	}{
		{[]event.Denial{lifted}, true},
		{[]event.Denial{rule, lifted}, true},
		{[]event.Denial{rule}, false},
		{[]event.Denial{person}, false},
		{[]event.Denial{rule, person}, false},
	} {
		f := cli.DenialFault(tt.denials)
		if hint := cmp.Or(f.Suggestion, f.Code.Entry().NextStep); strings.Contains(hint, "set --approval") != tt.lifts {
			t.Errorf("%+v: %s", tt.denials, hint)
		}
	}
}
