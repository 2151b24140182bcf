package agents

import (
	"context"
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
)

// talk is an open conversation with a real agent on a script of its own.
type talk struct {
	t *testing.T
	*conversation.Conversation
	events *conversation.Events
	model  *modelserver.Server
	heard  []event.Event
}

// scripted is a model that says what is written down.
func scripted(t *testing.T, script string) *modelserver.Server {
	t.Helper()
	backend, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(backend, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// wanted is what a conversation of a test is opened with.
func (b *bench) wanted(d agent.Driver, m *modelserver.Server) agent.Spec {
	b.t.Helper()
	env := b.environ()
	lookup := process.In(env)
	install, err := d.Locate(agent.Env{Lookup: lookup, Dir: b.work})
	if err != nil {
		b.t.Fatal(err)
	}
	return agent.Spec{
		Install: install, Dir: b.work, Env: env, Temp: filepath.Join(b.base, "private"),
		Machine: agent.Machine{
			Root: true, OS: runtime.GOOS, Has: func(p string) bool { return process.Find(p, lookup) != "" },
		},
		Terms:     agent.Terms{Bypass: true},
		Rehearsal: &agent.Rehearsal{URL: m.URL(), Key: "sk-rehearsal-0123456789", Model: "gpt-5", Home: b.home},
	}
}

// talk opens a conversation in which somebody answers.
func (b *bench) talk(d agent.Driver, script string, change func(*agent.Spec, *agent.Services)) *talk {
	b.t.Helper()
	m := scripted(b.t, script)
	s, sv := b.wanted(d, m), agent.Services{CanAsk: true, Grace: 5 * time.Second, Connect: patience}
	if change != nil {
		change(&s, &sv)
	}
	journal, err := session.Open(b.t.TempDir()).Create(b.t.Context(), session.Begin{Agent: d.Name(), Cwd: s.Dir})
	if err != nil {
		b.t.Fatal(err)
	}
	o := conversation.Options{Journal: journal, Mind: d.Mind, Spec: s, Services: sv, Log: b.t.Logf}
	c, err := conversation.Open(b.t.Context(), o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if _, err := c.Close(context.Background()); err != nil {
			b.t.Error(err)
		}
	})
	return &talk{t: b.t, Conversation: c, events: c.Events(0), model: m}
}

func (c *talk) say(text string) {
	c.t.Helper()
	if _, err := c.Send(c.t.Context(), []event.Block{{Text: text}}); err != nil {
		c.t.Fatal(err)
	}
}

// next hears an event.
func (c *talk) next() event.Event {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	e, err := c.events.Next(ctx)
	if err != nil {
		c.t.Fatalf("%v; heard %s", err, story(c.heard))
	}
	c.heard = append(c.heard, e)
	return e
}

// until hears events up to one of that kind.
func (c *talk) until(k event.Kind) event.Event {
	c.t.Helper()
	for {
		e := c.next()
		if e.Kind == k {
			return e
		}
		if e.Kind == event.Ended && !e.Unprompted {
			c.t.Fatalf("the turn ended without %s: %s", k, story(c.heard))
		}
	}
}

// answered is the whole turn, in which every question gets that answer.
func (c *talk) answered(text string, a event.Reply) event.Event {
	c.t.Helper()
	c.heard = nil
	c.say(text)
	for {
		switch e := c.next(); {
		case e.Kind == event.Question:
			c.answer(e, a)
		case e.Kind == event.Ended && !e.Unprompted:
			return e
		}
	}
}

func (c *talk) answer(question event.Event, a event.Reply) {
	c.t.Helper()
	a.Question = question.Ask.ID
	if _, err := c.Answer(c.t.Context(), a); err != nil {
		c.t.Fatal(err)
	}
}

func (c *talk) has(k event.Kind, part string) bool {
	for _, e := range c.heard {
		if e.Kind == k && strings.Contains(tale(e), part) {
			return true
		}
	}
	return false
}

// refused reports whether a call was denied and nobody was asked.
func (c *talk) refused() bool { return c.has(event.Denied, "") && !c.has(event.Denied, "by_user") }

// steers begins a turn and says more while it runs: one turn is the answer to both, and the model has seen both.
func (c *talk) steers(more string) {
	c.t.Helper()
	c.say("first")
	for e := c.next(); e.Kind != event.ToolCall && (e.Kind != event.Text || !e.Delta); e = c.next() {
		continue
	}
	number, steered, err := c.Steer(c.t.Context(), []event.Block{{Text: more}})
	if err != nil || !steered || number != 1 {
		c.t.Fatalf("%d, %v, %v: %s", number, steered, err, story(c.heard))
	}
	end := c.until(event.Ended)
	if !end.End.OK || end.Turn != 1 || !c.has(event.Steered, "") {
		c.t.Errorf("%s", story(c.heard))
	}
	requests := c.model.Requests()
	if last := string(requests[len(requests)-1].Raw); !strings.Contains(last, more) {
		c.t.Errorf("the model has not seen it: %s", story(c.heard))
	}
}

func story(events []event.Event) string {
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = tale(e)
	}
	return strings.Join(words, "\n  ")
}

// tale is an event without what it was read from.
func tale(e event.Event) string {
	e.Raw = nil
	word := string(e.Kind) + " "
	for _, part := range []any{e.Call, e.Result, e.Denial, e.Ask, e.Fault, e.End, e.Facts} {
		if data, _ := json.Marshal(part); string(data) != "null" {
			word += string(data)
		}
	}
	return word + e.Text
}
