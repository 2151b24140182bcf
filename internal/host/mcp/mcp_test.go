package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/anthropic"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/scripted"
)

// bench is a server whose agent x is the engine, with a model that says what a script says.
type bench struct {
	*server
	store session.Store
	spec  agent.Spec // with which the last conversation was opened
	model *modelserver.Server
	calls atomic.Int64 // of the agent's tools
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	b := &bench{store: session.Open(t.TempDir()), model: scripted.Model(t, script)}
	b.server = &server{
		slots: make(chan struct{}, maxAtOnce), sessions: map[string]startedSession{},
		o: Options{
			Ceiling: Yolo, Reads: setting.Prompt, Roots: []string{t.TempDir()}, Timeout: time.Minute, Most: MaxTimeout,
			Depth: 1,
			Env:   []string{"A=b", agent.DepthVariable + "=7"},
			Agents: func() ([]Agent, error) {
				return []Agent{{Name: "x", Installed: true, Modes: Modes(), GoesOn: true}}, nil
			},
			Open: b.open,
		},
	}
	return b
}

// open opens a conversation as a host's opener does.
func (b *bench) open(ctx context.Context, _ string, s agent.Spec, sv agent.Services) (*conversation.Conversation,
	error,
) {
	b.spec = s
	var journal *session.Session
	var err error
	if s.Resume != "" {
		journal, err = b.store.Resume(ctx, s.Resume)
	} else {
		journal, err = b.store.Create(ctx, session.Begin{Provider: "p", Model: "m"})
	}
	if err != nil {
		return nil, err
	}
	client := anthropic.New(anthropic.Options{
		Base: b.model.URL(), Key: "k", Model: "m", Profile: model.Profile{Window: 200_000},
	})
	sv.Grace = 500 * time.Millisecond
	return conversation.Open(ctx, conversation.Options{
		Journal: journal, Recorded: true, Spec: s, Services: sv,
		Mind: func(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
			return engine.New(engine.Options{
				ID: journal.ID(), Client: client, Services: sv, Mode: s.Terms.Mode, Journal: journal,
				Tools: func(tool.Task) []tool.Tool { return b.tools(sv) },
			}), nil
		},
	})
}

// tools returns one of each kind, and the one that asks a person.
func (b *bench) tools(sv agent.Services) []tool.Tool {
	kit := func(name string, a tool.Action) tool.Tool {
		return tool.Tool{
			ToolSpec: event.ToolSpec{Name: name, Description: name, Input: json.RawMessage(`{"type":"object"}`)},
			Plan: func(input json.RawMessage) (tool.Action, error) {
				a.Input, a.Title = input, name
				if a.Run == nil {
					a.Run = func(context.Context) tool.Result {
						b.calls.Add(1)
						return tool.Result{Text: name, Failed: strings.HasPrefix(name, "Bad")}
					}
				}
				return a, nil
			},
		}
	}
	stays := func(ctx context.Context) tool.Result {
		<-ctx.Done()
		return tool.Result{Text: "interrupted", Failed: true}
	}
	all := []tool.Tool{
		kit("Look", tool.Action{Kind: event.Read}),
		kit("Change", tool.Action{Kind: event.Write, Changes: true}),
		kit("BadChange", tool.Action{Kind: event.Write, Changes: true}),
		kit("Shell", tool.Action{Kind: event.Shell, Changes: true, Command: "x"}),
		kit("Stay", tool.Action{Kind: event.Read, Run: stays}),
	}
	if sv.CanAsk {
		question := tool.Ours().In(&tool.Env{Person: true, Todos: &tool.Todos{}})
		for _, t := range question {
			if t.Name == tool.QuestionName {
				all = append(all, t)
			}
		}
	}
	return all
}

// asks calls ask_agent.
func (b *bench) asks(t *testing.T, arguments string) (got answer, o outcome) {
	t.Helper()
	o = b.ask(t.Context(), json.RawMessage(arguments), func(string) {})
	got, _ = o.Structured.(answer)
	return got, o
}

func called(name string) string { return `{"call":{"name":"` + name + `","input":{}}}` }

const (
	plainAsk = `{"agent":"x","prompt":"p"}`
	askAll   = `{"agent":"x","prompt":"p","mode":"yolo"}`
)

// TestQuestion comes back, and nobody answers it. The next call answers it, in the same session.
func TestQuestion(t *testing.T) {
	b := newBench(t, `[{"say":"I wonder."},{"call":{"name":"AskUserQuestion","input":{"questions":[{"question":"Which one?","header":"One",
		"options":[{"label":"a","description":"the first"},{"label":"b","description":"the other"}],"multiSelect":false}]}}},{"say":"never"}]`)
	got, o := b.asks(t, plainAsk)
	if got.Status != needsInput || got.Question == nil || !strings.Contains(got.Question.Text, "Which one?") ||
		o.Failed || got.Session == nil {
		t.Fatalf("%+v", got)
	}
	if !strings.Contains(o.Content[0].Text, "Which one?\n- a: the first") ||
		strings.Contains(o.Content[0].Text, "allow") {
		t.Errorf("%q", o.Content[0].Text)
	}
	entry, err := b.store.Reader(*got.Session, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer entry.Close()
	for {
		record, err := entry.Next(t.Context())
		if err != nil {
			break
		}
		if e := record.Event(); e != nil && e.Kind == event.Replied {
			t.Errorf("it was answered: %+v", e.Reply)
		}
	}
}

// TestGoesOn: the session of an answer is the name of the conversation.
func TestGoesOn(t *testing.T) {
	b := newBench(t, `[{"say":"heard ${input}"}]`)
	first, _ := b.asks(t, plainAsk)
	second, _ := b.asks(t, `{"agent":"x","prompt":"again","session":"`+*first.Session+`"}`)
	if *second.Session != *first.Session || second.Text != "heard again" {
		t.Errorf("%+v", second)
	}
	if _, o := b.asks(t, `{"agent":"x","prompt":"again","session":"other"}`); !o.Failed ||
		!strings.Contains(o.Content[0].Text, "not begun here") {
		t.Errorf("%+v", o)
	}
}

// TestSpec: the agent gets the mode and the depth that the call stands for.
func TestSpec(t *testing.T) {
	for mode, want := range map[string]setting.Approval{
		"": setting.Prompt, "prompt": setting.Prompt,
		"edit": setting.AutoEdit, "auto": setting.Yolo,
	} {
		b := newBench(t, `[{"say":"ok"}]`)
		got, _ := b.asks(t, `{"agent":"x","prompt":"p","model":"m","mode":"`+mode+`"}`)
		env := strings.Join(b.spec.Env, " ")
		if b.spec.Terms.Mode != want || b.spec.Shared.Approval.Value != want || b.spec.Shared.Model.Value != "m" ||
			env != "A=b OMNIAGENT_DEPTH=2" {
			t.Errorf("%+v %+v", got, b.spec)
		}
	}
	b := newBench(t, `[]`)
	if _, o := b.asks(t, `{"agent":"x","prompt":"p","mode":"plan"}`); !o.Failed ||
		!strings.Contains(o.Content[0].Text, "there is no mode") {
		t.Errorf("%+v", o)
	}
}

// TestChanged: what is not known is not claimed.
func TestChanged(t *testing.T) {
	for name, row := range map[string]struct {
		script, ask, want string
	}{
		"nothing":             {"", plainAsk, "false"},
		"read":                {called("Look"), plainAsk, "false"},
		"written":             {called("Change"), askAll, "true"},
		"not written":         {called("BadChange"), askAll, "false"},
		"written and unsure":  {called("Shell") + "," + called("Change"), askAll, "true"},
		"command":             {called("Shell"), askAll, "null"},
		"denied command":      {called("Shell"), plainAsk, "false"},
		"no such tool":        {called("Nothing"), plainAsk, "null"},
		"denied, and refused": {called("Change") + "," + called("Shell"), plainAsk, "false"},
	} {
		script := "[" + row.script + `,{"say":"ok"}]`
		if row.script == "" {
			script = `[{"say":"ok"}]`
		}
		got, _ := newBench(t, script).asks(t, row.ask)
		if raw, _ := json.Marshal(got.Changed); string(raw) != row.want {
			t.Errorf("%s: %s, want %s: %+v", name, raw, row.want, got)
		}
	}
}

// TestEndings: no failure looks like success.
func TestEndings(t *testing.T) {
	for name, row := range map[string]struct {
		script, ask  string
		status, code string
		failed       bool
	}{
		"done":   {`[{"say":"yes"}]`, plainAsk, done, "", false},
		"lost":   {`[{"error":401}]`, plainAsk, failed, "AUTH_REQUIRED", true},
		"denied": {`[` + called("Change") + `,{"say":"ok"}]`, plainAsk, blocked, "", false},
		"too long": {
			`[` + called("Stay") + `]`, `{"agent":"x","prompt":"p","timeout_seconds":1}`, timedOut, "TIMEOUT",
			true,
		},
		"long": {`[{"say":"` + strings.Repeat("ü", maxText) + `"}]`, plainAsk, done, "", false},
	} {
		got, o := newBench(t, row.script).asks(t, row.ask)
		code := ""
		if got.Error != nil {
			code = got.Error.Code
		}
		if got.Status != row.status || code != row.code || o.Failed != row.failed || got.Session == nil {
			t.Errorf("%s: %+v %v", name, got.Error, o.Failed)
		}
		if len(got.Text) > maxText || got.Cut != (name == "long") {
			t.Errorf("%s: %d bytes, cut %v", name, len(got.Text), got.Cut)
		}
	}
}

// TestNotOpened: nothing was started, so nothing has changed, and there is no session.
func TestNotOpened(t *testing.T) {
	b := newBench(t, `[]`)
	b.o.Open = func(context.Context, string, agent.Spec, agent.Services) (*conversation.Conversation, error) {
		return nil, fault.New(fault.NotInstalled, "x is not installed")
	}
	got, o := b.asks(t, plainAsk)
	if !o.Failed || got.Status != failed || got.Error.Code != "NOT_INSTALLED" || got.Session != nil ||
		got.Changed == nil || *got.Changed {
		t.Errorf("%+v", got)
	}
}

// TestCancelled: the turn of a call that nobody waits for any more ends, and the conversation with it.
func TestCancelled(t *testing.T) {
	b := newBench(t, `[`+called("Stay")+`]`)
	ctx, cancel := context.WithCancelCause(t.Context())
	began := time.Now()
	b.ask(ctx, json.RawMessage(plainAsk), func(what string) {
		if strings.HasPrefix(what, "Stay") {
			cancel(errCancelled)
		}
	})
	if took := time.Since(began); took > hermetic.Patience {
		t.Errorf("it took %s", took)
	}
	all, _, err := b.store.List(t.Context(), session.Filter{})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
	again, err := b.store.Resume(t.Context(), all[0].Begin.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if open := again.State().Unfinished; len(open) > 0 {
		t.Errorf("turns without an end: %+v", open)
	}
}

// TestNobodyReads: a client that reads nothing keeps the server from nothing but from speaking, and its end is the
// server's.
func TestNobodyReads(t *testing.T) {
	in, feed := io.Pipe()
	unread, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), in, out, Options{
			Ceiling: Read, Roots: []string{t.TempDir()}, Timeout: time.Minute,
		})
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
	case <-time.After(hermetic.Patience):
		t.Fatal("it waits for a reader that has left")
	}
	_ = feed.Close()
}

// TestDepthVariable: an invalid number counts as the limit.
func TestDepthVariable(t *testing.T) {
	for value, want := range map[string]int{"": 0, "0": 0, "1": 1, "2": 2, "3": 2, "-5": 2, "x": 2} {
		if got := Depth(func(string) (string, bool) { return value, true }, nil); got != want {
			t.Errorf("%q: %d", value, got)
		}
	}
	for _, row := range []struct {
		around []string
		want   int
	}{{[]string{"1"}, 1}, {[]string{"", "2", "1"}, 2}, {[]string{"x"}, MaxDepth}} {
		if got := Depth(func(string) (string, bool) { return "", false }, row.around); got != row.want {
			t.Errorf("%q: %d, want %d", row.around, got, row.want)
		}
	}
}
