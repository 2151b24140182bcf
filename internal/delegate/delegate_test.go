package delegate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// played is a session that says what is written down, and then nothing until it is interrupted.
type played struct {
	events *event.Queue
	spec   agent.Spec
	said   []event.Event
	stays  bool // the turn does not end by itself
	send   error

	mu          sync.Mutex
	answered    int
	interrupted int
	closed      int
	outcome     agent.Outcome
}

func (p *played) ID() string                                    { return "s1" }
func (p *played) Facts() event.Facts                            { return event.Facts{} }
func (p *played) Next(ctx context.Context) (event.Event, error) { return p.events.Next(ctx) }
func (p *played) Set(context.Context, agent.Change) error       { return nil }
func (p *played) Answer(context.Context, string, event.Reply) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered++
	return nil
}

func (p *played) Send(context.Context, []event.Block) error {
	if p.send != nil {
		return p.send
	}
	for _, e := range p.said {
		p.events.Put(e)
	}
	if !p.stays {
		p.events.Put(event.Event{Kind: event.Ended, End: &event.End{OK: true}})
	}
	return nil
}

func (p *played) Interrupt(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interrupted++; p.stays {
		p.events.Put(event.Event{Kind: event.Ended, End: &event.End{Reason: "interrupted"}})
	}
	return nil
}

func (p *played) Close(context.Context) (agent.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed++
	p.events.Close()
	return p.outcome, nil
}

// asked asks a server about an agent that behaves like that.
func asked(t *testing.T, p *played, arguments string) (got answer, o outcome) {
	t.Helper()
	p.events = event.NewQueue(0)
	s := &server{
		slots: make(chan struct{}, maxAtOnce), sessions: map[string]conversation{},
		o: Options{
			Ceiling: Yolo, Roots: []string{t.TempDir()}, Timeout: time.Minute, Depth: 1, Env: []string{"A=b", agent.DepthVariable + "=7"},
			Agents: func() ([]Agent, error) { return []Agent{{Name: "x", Installed: true, Modes: Modes()}}, nil },
			Open: func(_ context.Context, _ string, spec agent.Spec, _ agent.Services) (agent.Session, error) {
				p.spec = spec
				return p, nil
			},
		},
	}
	o = s.ask(t.Context(), json.RawMessage(arguments), func(string) {})
	got, _ = o.Structured.(answer)
	if p.closed != 1 && o.Structured != nil {
		t.Errorf("closed %d times", p.closed)
	}
	return got, o
}

const plainAsk = `{"agent":"x","prompt":"p"}`

// TestQuestion comes back, and nobody answers it.
func TestQuestion(t *testing.T) {
	p := &played{stays: true, said: []event.Event{
		{Kind: event.Text, Text: "I wonder.", Delta: true},
		{Kind: event.Question, Ask: &event.Ask{ID: "q", Text: "Which one?", Options: []string{"a", "b"}}},
	}}
	got, o := asked(t, p, plainAsk)
	if got.Status != needsInput || got.Question == nil || got.Question.Text != "Which one?" || o.Failed || p.answered != 0 || p.interrupted != 1 {
		t.Errorf("%+v, answered %d, interrupted %d", got, p.answered, p.interrupted)
	}
	if !strings.Contains(o.Content[0].Text, "Which one? (a, b)") {
		t.Errorf("%q", o.Content[0].Text)
	}
}

// TestSpec: the agent gets the mode and the depth that the call stands for.
func TestSpec(t *testing.T) {
	p := &played{}
	asked(t, p, `{"agent":"x","prompt":"p","mode":"edit","model":"m"}`)
	env := strings.Join(p.spec.Env, " ")
	if p.spec.Terms.Mode != setting.AutoEdit || string(p.spec.Shared.Approval.Value) != "auto-edit" || p.spec.Shared.Model.Value != "m" || env != "A=b OMNIAGENT_DEPTH=2" {
		t.Errorf("%+v", p.spec)
	}
	p = &played{}
	asked(t, p, plainAsk)
	if p.spec.Terms.Mode != setting.Prompt || string(p.spec.Shared.Approval.Value) != "prompt" {
		t.Errorf("%+v", p.spec)
	}
}

// TestChanged: what is not known is not claimed.
func TestChanged(t *testing.T) {
	call := func(id string, kind event.ToolKind) event.Event {
		return event.Event{Kind: event.ToolCall, Call: &event.Call{ID: id, Kind: kind}}
	}
	result := func(id string, failed bool) event.Event {
		return event.Event{Kind: event.ToolResult, Result: &event.Result{ID: id, Failed: failed}}
	}
	denied := event.Event{Kind: event.Denied, Denial: &event.Denial{CallID: "1", Tool: "t"}}
	for name, row := range map[string]struct {
		said []event.Event
		want string
	}{
		"nothing":             {nil, "false"},
		"read":                {[]event.Event{call("1", event.Read), result("1", false)}, "false"},
		"written":             {[]event.Event{call("1", event.Write), result("1", false)}, "true"},
		"not written":         {[]event.Event{call("1", event.Write), result("1", true)}, "false"},
		"written and unsure":  {[]event.Event{call("2", event.Shell), result("2", true), call("1", event.Write), result("1", false)}, "true"},
		"command":             {[]event.Event{call("1", event.Shell), result("1", false)}, "null"},
		"denied command":      {[]event.Event{call("1", event.Shell), denied, result("1", true)}, "false"},
		"denied, another ran": {[]event.Event{call("1", event.Shell), denied, result("1", true), call("2", event.MCP)}, "null"},
		"never ended":         {[]event.Event{call("1", event.Write)}, "null"},
		"concluded by us":     {[]event.Event{{Kind: event.Ended, Synthetic: true, End: &event.End{OK: true}}}, "null"},
	} {
		got, _ := asked(t, &played{said: row.said}, plainAsk)
		if raw, _ := json.Marshal(got.Changed); string(raw) != row.want {
			t.Errorf("%s: %s, want %s", name, raw, row.want)
		}
	}
}

// TestEndings: no failure looks like success.
func TestEndings(t *testing.T) {
	for name, row := range map[string]struct {
		p      *played
		status string
		code   string
		failed bool
	}{
		"done":         {&played{said: []event.Event{{Kind: event.Text, Text: "yes"}}}, done, "", false},
		"no answer":    {&played{}, failed, "NO_ANSWER", true},
		"not sent":     {&played{send: fault.New(fault.PromptTooLong, "too long")}, failed, "PROMPT_TOO_LONG", true},
		"lost":         {&played{said: []event.Event{{Kind: event.Failed, Terminal: true, Fault: fault.New(fault.AuthRequired, "no key")}, {Kind: event.Ended, End: &event.End{}}}}, failed, "AUTH_REQUIRED", true},
		"denied later": {&played{said: []event.Event{{Kind: event.Text, Text: "ok"}}, outcome: agent.Outcome{Evidence: agent.Evidence{Denials: []event.Denial{{Tool: "Bash"}}}}}, blocked, "", false},
		"exit code":    {&played{said: []event.Event{{Kind: event.Text, Text: "ok"}}, outcome: agent.Outcome{Exit: agent.Exit{Code: 7}}}, failed, "AGENT_FAILED", true},
		"long":         {&played{said: []event.Event{{Kind: event.Text, Text: strings.Repeat("ü", maxText)}}}, done, "", false},
	} {
		got, o := asked(t, row.p, plainAsk)
		code := ""
		if got.Error != nil {
			code = got.Error.Code
		}
		if got.Status != row.status || code != row.code || o.Failed != row.failed {
			t.Errorf("%s: %+v %v", name, got, o.Failed)
		}
		if len(got.Text) > maxText || got.Cut != (name == "long") {
			t.Errorf("%s: %d bytes, cut %v", name, len(got.Text), got.Cut)
		}
	}
}

// TestNobodyReads: a client that reads nothing keeps the server from nothing but from speaking, and its end is the server's.
func TestNobodyReads(t *testing.T) {
	in, feed := io.Pipe()
	unread, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), in, out, Options{Ceiling: Read, Roots: []string{t.TempDir()}, Timeout: time.Minute, Log: t.Logf})
	}()
	go func() {
		w := bufio.NewWriter(feed)
		for range 1000 {
			_, _ = w.WriteString(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
		}
		_ = w.Flush()
	}()
	_ = unread.CloseWithError(errors.New("gone"))
	select {
	case err := <-ended:
		if err == nil {
			t.Error("that it could not write is not told")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a reader that has left")
	}
	_ = feed.Close()
}

// TestDepthVariable: what is no number is as deep as it gets.
func TestDepthVariable(t *testing.T) {
	for value, want := range map[string]int{"": 0, "0": 0, "1": 1, "2": 2, "3": 2, "-5": 2, "x": 2} {
		if got := Depth(func(string) (string, bool) { return value, true }); got != want {
			t.Errorf("%q: %d", value, got)
		}
	}
}
