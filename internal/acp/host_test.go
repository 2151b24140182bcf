package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
	"omniagent/internal/setting"
)

type object = map[string]any

// played is an agent that plays a list of events for each message, and waits where one is a question.
type played struct {
	id     string
	spec   agent.Spec
	plays  [][]event.Event
	events *event.Queue

	mu       sync.Mutex
	answers  chan event.Reply
	sent     []string
	answered []event.Reply
	closed   bool
}

func (p *played) ID() string { return p.id }

func (p *played) Facts() event.Facts {
	return event.Facts{Agent: "played", Mode: p.spec.Terms.Mode, Model: p.spec.Shared.Model.Value}
}

func (p *played) Next(ctx context.Context) (event.Event, error) { return p.events.Next(ctx) }

func (p *played) Send(_ context.Context, blocks []event.Block) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, blocks[0].Text)
	p.id = "theirs"
	play := p.plays[min(len(p.sent), len(p.plays))-1]
	go func() {
		for _, e := range play {
			p.events.Put(e)
			if e.Kind == event.Question {
				a := <-p.answers
				p.mu.Lock()
				p.answered = append(p.answered, a)
				p.mu.Unlock()
			}
		}
	}()
	return nil
}

func (p *played) Answer(_ context.Context, _ string, a event.Reply) error {
	p.answers <- a
	return nil
}

func (p *played) Set(context.Context, agent.Change) error {
	return fault.New(fault.Unsupported, "it cannot be changed as it runs")
}

// Interrupt ends the turn as some agents do: with a failure.
func (p *played) Interrupt(context.Context) error {
	p.events.Put(event.Event{Kind: event.Failed, Terminal: true, Fault: fault.New(fault.AgentFailed, "aborted")})
	p.events.Put(event.Event{Kind: event.Ended, End: &event.End{Reason: "aborted"}})
	return nil
}

func (p *played) Close(context.Context) (agent.Outcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.events.Close()
	return agent.Outcome{}, nil
}

// bench is a host in this process, with a client at its pipes.
type bench struct {
	t       *testing.T
	host    *Host
	in      *io.PipeWriter
	lines   chan object
	code    chan int
	opened  chan *played
	refuses func(agent.Spec) error
}

func newBench(t *testing.T, keeper Keeper, plays ...[]event.Event) *bench {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	b := &bench{t: t, in: inW, lines: make(chan object, 1000), code: make(chan int, 1), opened: make(chan *played, 10)}
	b.host = &Host{
		Agent: "played", Keeper: keeper, In: inR, Out: outW, Log: t.Logf, Signals: make(chan os.Signal),
		Options: wire.Options{Mode: "prompt", Modes: []wire.Choice{{ID: "prompt", Name: "Ask"}, {ID: "yolo", Name: "All"}}, Models: []wire.Choice{{ID: "m1"}, {ID: "m2"}}, Model: "m1"},
		Spec:    WithMode(agent.Spec{}, setting.Prompt),
		Open: func(_ context.Context, _ string, s agent.Spec, _ agent.Services) (agent.Session, error) {
			if b.refuses != nil {
				if err := b.refuses(s); err != nil {
					return nil, err
				}
			}
			p := &played{spec: s, plays: plays, events: event.NewQueue(0), answers: make(chan event.Reply, 1)}
			b.opened <- p
			return p, nil
		},
	}
	go func() {
		in := bufio.NewReader(outR)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				close(b.lines)
				return
			}
			var m object
			if json.Unmarshal(line, &m) != nil {
				t.Errorf("no JSON: %q", line)
			}
			b.lines <- m
		}
	}()
	go func() {
		code := b.host.Run(context.Background())
		_ = outW.Close()
		b.code <- code
	}()
	t.Cleanup(func() { _ = inW.Close() })
	return b
}

func (b *bench) say(line string) {
	b.t.Helper()
	if _, err := io.WriteString(b.in, line+"\n"); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) until(match func(object) bool) object {
	b.t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case m, open := <-b.lines:
			if !open {
				b.t.Fatal("it ended")
			}
			if match(m) {
				return m
			}
		case <-late:
			b.t.Fatal("what was awaited does not come")
		}
	}
}

func (b *bench) reply(id int) object {
	b.t.Helper()
	return b.until(func(m object) bool { return m["method"] == nil && fmt.Sprint(m["id"]) == fmt.Sprint(id) })
}

func (b *bench) begin(capabilities string) (session string, p *played) {
	b.t.Helper()
	b.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":` + capabilities + `}}`)
	b.reply(1)
	b.say(`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":` + quoted(b.t.TempDir()) + `,"mcpServers":[]}}`)
	session = dig(b.reply(2), "result", "sessionId").(string)
	return session, <-b.opened
}

func (b *bench) prompt(id int, session, text string) {
	b.t.Helper()
	b.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, session, text))
}

func (b *bench) end() {
	b.t.Helper()
	_ = b.in.Close()
	go func() {
		for range b.lines {
			continue
		}
	}()
	select {
	case code := <-b.code:
		if code != 0 {
			b.t.Errorf("exit %d", code)
		}
	case <-time.After(20 * time.Second):
		b.t.Fatal("it does not end")
	}
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

func dig(v any, way ...any) any {
	for _, step := range way {
		switch s := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

func ledger(t *testing.T) Ledger {
	return Ledger{Dir: filepath.Join(t.TempDir(), "acp"), Agent: "played", Log: t.Logf}
}

func done(text string) event.Event {
	return event.Event{Kind: event.Ended, End: &event.End{OK: true, Text: text}}
}

func questions(several bool, n int) event.Event {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"question":"Which %d?","header":"H%d","multiSelect":%v,"options":[{"label":"red","description":"warm"},{"label":"blue","description":"cold"}]}`, i, i, several))
	}
	return event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q", Text: "it asks", Tool: &event.Call{
		ID: "call", Name: "AskUserQuestion", Kind: event.Other, Input: json.RawMessage(`{"questions":[` + strings.Join(list, ",") + `]}`),
	}}}
}

// TestForms: questions with answers of their own, as each client can show them. Whatever is no clear answer is a no.
func TestForms(t *testing.T) {
	t.Parallel()
	const forms = `{"elicitation":{"form":{}}}`
	for name, c := range map[string]struct {
		capabilities string
		asked        event.Event
		method       string // of the request; empty: there is none
		result       string
		want         string
	}{
		"one":           {forms, questions(false, 1), "elicitation/create", `{"action":"accept","content":{"question_0":"blue"}}`, `allow "Which 0?":"blue"`},
		"two":           {forms, questions(false, 2), "elicitation/create", `{"action":"accept","content":{"question_0":"blue","question_1":"red"}}`, `allow "Which 0?":"blue","Which 1?":"red"`},
		"several":       {forms, questions(true, 1), "elicitation/create", `{"action":"accept","content":{"question_0":["red","blue"]}}`, `allow "Which 0?":"red, blue"`},
		"half":          {forms, questions(false, 2), "elicitation/create", `{"action":"accept","content":{"question_0":"blue"}}`, "deny"},
		"not offered":   {forms, questions(false, 1), "elicitation/create", `{"action":"accept","content":{"question_0":"green"}}`, "deny"},
		"declined":      {forms, questions(false, 1), "elicitation/create", `{"action":"decline"}`, "deny"},
		"no form":       {`{}`, questions(false, 1), "session/request_permission", `{"outcome":{"outcome":"selected","optionId":"choice-1"}}`, `allow "Which 0?":"blue"`},
		"none of them":  {`{}`, questions(false, 1), "session/request_permission", `{"outcome":{"outcome":"selected","optionId":"deny"}}`, "deny"},
		"unknown":       {`{}`, questions(false, 1), "session/request_permission", `{"outcome":{"outcome":"selected","optionId":"choice-7"}}`, "deny"},
		"cancelled":     {`{}`, questions(false, 1), "session/request_permission", `{"outcome":{"outcome":"cancelled"}}`, "deny"},
		"two, no form":  {`{}`, questions(false, 2), "", "", "deny"},
		"own words":     {`{}`, event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q", Text: "Colour?", Options: []string{"red", "blue"}}}, "session/request_permission", `{"outcome":{"outcome":"selected","optionId":"choice-0"}}`, "red"},
		"own words, no": {`{}`, event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q", Text: "Colour?", Options: []string{"red", "blue"}}}, "session/request_permission", `{"outcome":{"outcome":"cancelled"}}`, "deny"},
		"free":          {forms, event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q", Text: "Name?"}}, "elicitation/create", `{"action":"accept","content":{"answer":"Ann"}}`, "Ann"},
		"free, no form": {`{}`, event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q", Text: "Name?"}}, "", "", "deny"},
		"not remembered": {
			`{}`,
			event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q", Tool: &event.Call{ID: "c", Name: "Bash"}}},
			"session/request_permission",
			`{"outcome":{"outcome":"selected","optionId":"always"}}`, "deny",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, ledger(t), []event.Event{c.asked, done("ok")})
			session, p := b.begin(c.capabilities)
			b.prompt(3, session, "go")
			if c.method != "" {
				q := b.until(func(m object) bool { return m["method"] != nil && m["id"] != nil })
				if q["method"] != c.method {
					t.Errorf("%v", q)
				}
				b.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":%s}`, q["id"], c.result))
			}
			if got := b.reply(3); dig(got, "result", "stopReason") != "end_turn" {
				t.Error(got)
			}
			p.mu.Lock()
			a := p.answered[0]
			p.mu.Unlock()
			got := a.Option
			if a.Input != nil {
				var in struct {
					Questions []any
					Answers   json.RawMessage
				}
				if json.Unmarshal(a.Input, &in) != nil || len(in.Questions) == 0 {
					t.Errorf("%s", a.Input)
				}
				got += " " + strings.Trim(string(in.Answers), "{}")
			}
			if got != c.want {
				t.Errorf("%s instead of %s", got, c.want)
			}
			b.end()
		})
	}
}

// TestLedger: what another agent said is kept, told again, gone on with under its own id, and open to the user alone.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := ledger(t)
	l.Mask = func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "s3cret", "***")) }
	play := []event.Event{
		{Kind: event.Thinking, Text: "hm", Delta: true},
		{Kind: event.Text, Text: "Hel", Delta: true},
		{Kind: event.Text, Text: "lo s3cret", Delta: true},
		{Kind: event.Text, Text: "Hello s3cret"}, // the whole, again
		{Kind: event.ToolCall, Call: &event.Call{ID: "c", Name: "shell", Kind: event.Shell, Command: "ls"}},
		{Kind: event.ToolResult, Result: &event.Result{ID: "c", Output: "a.txt"}},
		{Kind: event.Text, Text: "Bye."},
		done("Bye."),
	}
	b := newBench(t, l, play)
	session, _ := b.begin(`{}`)
	b.prompt(3, session, "first message")
	said := ""
	b.until(func(m object) bool {
		if dig(m, "params", "update", "sessionUpdate") == "agent_message_chunk" {
			said += fmt.Sprint(dig(m, "params", "update", "content", "text")) + "|"
		}
		return fmt.Sprint(m["id"]) == "3"
	})
	if said != "Hel|lo s3cret|Bye.|" {
		t.Error(said)
	}
	b.end()
	data, err := os.ReadFile(l.file(session))
	info, _ := os.Stat(l.file(session))
	if err != nil || strings.Contains(string(data), "s3cret") || info.Mode().Perm()&0o077 != 0 {
		t.Fatalf("%v, %v\n%s", err, info.Mode(), data)
	}
	if other := (Ledger{Dir: l.Dir, Agent: "another"}); !isMissing(other.Find(context.Background(), session)) {
		t.Error("it is found for another agent")
	}

	b = newBench(t, l, play)
	b.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	b.say(`{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`)
	if listed := b.reply(2); dig(listed, "result", "sessions", 0, "title") != "first message" {
		t.Error(listed)
	}
	b.say(`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"cwd":` + quoted(t.TempDir()) + `,"mcpServers":[],"sessionId":"` + session + `"}}`)
	var kinds []string
	b.until(func(m object) bool {
		if kind, ok := dig(m, "params", "update", "sessionUpdate").(string); ok {
			kinds = append(kinds, kind)
		}
		return fmt.Sprint(m["id"]) == "3"
	})
	if got := strings.Join(kinds, " "); got != "session_info_update user_message_chunk agent_thought_chunk agent_message_chunk tool_call tool_call_update agent_message_chunk" {
		t.Error(got)
	}
	if p := <-b.opened; p.spec.Resume != "theirs" || p.spec.Fresh != "" {
		t.Errorf("%+v", p.spec)
	}
	again := newBench(t, l, play)
	again.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	again.say(`{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"cwd":` + quoted(t.TempDir()) + `,"mcpServers":[],"sessionId":"` + session + `"}}`)
	if got := again.reply(2); dig(got, "error", "data", "code") != string(fault.LockHeld) {
		t.Error("a session has two writers:", got)
	}
	again.end()
	b.say(`{"jsonrpc":"2.0","id":4,"method":"session/fork","params":{"cwd":` + quoted(t.TempDir()) + `,"mcpServers":[],"sessionId":"` + session + `"}}`)
	if forked := dig(b.reply(4), "result", "sessionId"); forked == session || forked == nil {
		t.Error(forked)
	}
	if p := <-b.opened; p.spec.Resume != "theirs" || !p.spec.Terms.Fork {
		t.Errorf("%+v", p.spec)
	}
	b.say(`{"jsonrpc":"2.0","id":5,"method":"session/delete","params":{"sessionId":"` + session + `"}}`)
	if got := b.reply(5); got["error"] != nil {
		t.Error(got)
	}
	if _, err := os.Stat(l.file(session)); err == nil {
		t.Error("it is still there")
	}
	b.end()
}

func isMissing(_ Kept, err error) bool {
	return fault.Of(err) != nil && fault.Of(err).Code == fault.NotFoundCode
}

// TestReopen: what an agent cannot change as it runs is changed between two turns, by going on anew.
func TestReopen(t *testing.T) {
	t.Parallel()
	b := newBench(t, ledger(t), []event.Event{done("ok")})
	session, first := b.begin(`{}`)
	b.prompt(3, session, "go")
	b.reply(3)
	b.say(`{"jsonrpc":"2.0","id":4,"method":"session/set_mode","params":{"sessionId":"` + session + `","modeId":"yolo"}}`)
	if got := b.reply(4); got["error"] != nil {
		t.Fatal(got)
	}
	second := <-b.opened
	if !first.closed || second.spec.Resume != "theirs" || second.spec.Terms.Mode != setting.Yolo || second.spec.Shared.Approval.Value != "yolo" {
		t.Errorf("%v, %+v", first.closed, second.spec)
	}
	b.prompt(5, session, "again")
	b.reply(5)
	if len(second.sent) != 1 {
		t.Error(second.sent)
	}
	b.refuses = func(s agent.Spec) error {
		if s.Shared.Model.Value == "m2" {
			return fault.New(fault.Unsupported, "no such model")
		}
		return nil
	}
	b.say(`{"jsonrpc":"2.0","id":6,"method":"session/set_config_option","params":{"sessionId":"` + session + `","configId":"model","value":"m2"}}`)
	if got := b.reply(6); dig(got, "error", "code") != float64(wire.InvalidParams) {
		t.Error(got)
	}
	third := <-b.opened
	b.prompt(7, session, "as before")
	if got := b.reply(7); dig(got, "result", "stopReason") != "end_turn" || third.spec.Terms.Mode != setting.Yolo || len(third.sent) != 1 {
		t.Error(got, third.spec, third.sent)
	}
	b.end()
}
