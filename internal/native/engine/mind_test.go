package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/anthropic"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/testkit/hermetic"
)

// mind is a Mind whose events are recorded.
type mind struct {
	*engine.Mind

	mu     sync.Mutex
	events []event.Event
	facts  event.Facts // at the beginning, with what Changed events made of them
	see    func(event.Event)
	cancel context.CancelFunc
}

// tell records an event, and shows it to the test.
func (m *mind) tell(e event.Event) {
	m.mu.Lock()
	m.events = append(m.events, e)
	if e.Kind == event.Changed {
		m.facts.Merge(*e.Facts)
	}
	see := m.see
	m.mu.Unlock()
	if see != nil {
		see(e)
	}
}

// interrupt cancels the turn that runs.
func (m *mind) interrupt() {
	m.mu.Lock()
	cancel := m.cancel
	m.mu.Unlock()
	cancel()
}

// asking is a conversation with somebody who answers.
func asking() agent.Services { return agent.Services{CanAsk: true} }

// hooked is a conversation with a hook.
func hooked(h agent.Hook) agent.Services { return agent.Services{Hook: h} }

// scripted is a model that says what a script says.
func scripted(t *testing.T, script string) (model.Client, *modelserver.Server) {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(s, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return anthropic.New(anthropic.Options{
		Base: server.URL(), Key: "k", Model: "m", Profile: model.Profile{Window: 200_000},
	}), server
}

// kit is a tool of a test.
func kit(name string, a tool.Action) tool.Tool {
	return tool.Tool{
		ToolSpec: event.ToolSpec{Name: name, Description: name, Input: json.RawMessage(`{"type":"object"}`)},
		Plan: func(input json.RawMessage) (tool.Action, error) {
			a.Input = input
			return a, nil
		},
	}
}

// reads is an action that only reads, and returns a text.
func reads(text string) tool.Action {
	return tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		return tool.Result{Text: text}
	}}
}

// fails is an action that only reads, and fails.
func fails(text string) tool.Action {
	return tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		return tool.Result{Text: text, Failed: true}
	}}
}

// script is what a model answers, one step after the other.
func script(steps ...string) string { return "[" + strings.Join(steps, ",") + "]" }

// call is a step, or one of several calls in a step.
func call(name, input string) string { return `{"call":{"name":"` + name + `","input":` + input + `}}` }

// together is a step of several calls.
func together(calls ...string) string { return `{"calls":[` + strings.Join(calls, ",") + `]}` }

// task is a call of a sub-agent.
func task() string { return call("Task", `{"description":"d","prompt":"p"}`) }

// ok is the step that ends a turn.
func ok() string { return `{"say":"ok"}` }

func begin(t *testing.T, o engine.Options, tools ...tool.Tool) *mind {
	t.Helper()
	m := &mind{}
	o.Services.Tell = m.tell
	o.Rules.Known = tool.Ours().Specs()
	o.Tools = func(task tool.Task) []tool.Tool {
		return append(tools, tool.HandOver(&tool.Env{Task: task}))
	}
	m.Mind = engine.New(o)
	m.facts = m.Facts()
	t.Cleanup(func() {
		if _, err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// turn has a text answered; each event is shown to see.
func turn(t *testing.T, m *mind, text string, see func(event.Event)) []event.Event {
	t.Helper()
	return say(t, m, []event.Block{{Text: text}}, see)
}

// say has a message answered, and checks what holds for every turn: one end, which is the last event; a result for each
// call; and that what was told of changes is what holds.
func say(t *testing.T, m *mind, message []event.Block, see func(event.Event)) []event.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hermetic.Patience)
	defer cancel()
	m.mu.Lock()
	m.events, m.see, m.cancel = nil, see, cancel
	m.mu.Unlock()
	if err := m.Turn(ctx, message); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.events
	kinds := map[event.Kind]int{}
	for _, e := range all {
		kinds[e.Kind]++
	}
	if n := len(all); kinds[event.Ended] != 1 || all[n-1].Kind != event.Ended || kinds[event.TurnBegan] != 1 {
		t.Fatalf("%v: %s", kinds, told(all))
	}
	if kinds[event.ToolCall] != kinds[event.ToolResult] {
		t.Errorf("%v: %s", kinds, told(all))
	}
	now := m.Facts()
	if m.facts.Mode != now.Mode || m.facts.Model != now.Model || m.facts.Window != now.Window ||
		fmt.Sprint(m.facts.Tools) != fmt.Sprint(now.Tools) {
		t.Errorf("what was told is %+v, and what holds is %+v", m.facts, now)
	}
	return all
}

// answer answers a question that was just asked.
func answer(t *testing.T, m *mind, e event.Event, r event.Reply) {
	t.Helper()
	r.Question = e.Ask.ID
	if err := m.Answer(r); err != nil {
		t.Error(err)
	}
}

func told(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		switch e.Kind {
		case event.ToolCall:
			fmt.Fprintf(&b, "call %s; ", e.Call.Name)
		case event.ToolResult:
			fmt.Fprintf(&b, "result %v; ", e.Result.Failed)
		case event.Denied:
			fmt.Fprintf(&b, "denied %s; ", e.Denial.Reason)
		case event.Failed:
			fmt.Fprintf(&b, "failed %s; ", e.Fault.Code)
		case event.Ended:
			fmt.Fprintf(&b, "ended %s %q", e.End.Reason, e.End.Text)
		}
	}
	return b.String()
}

// TestAbilities are true of what a Mind was made of.
func TestAbilities(t *testing.T) {
	client, _ := scripted(t, `[]`)
	want := agent.Abilities{Steer: true, Mode: true, Images: true}
	if got := begin(t, engine.Options{Client: client}).Abilities(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	want.Model = true
	other := func(string) (engine.Model, error) { return engine.Model{Client: client}, nil }
	if got := begin(t, engine.Options{Client: client, Other: other}).Abilities(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
