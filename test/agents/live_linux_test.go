package agents

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/modelserver"
)

// conversation is an open session of a real agent on a script of its own.
type conversation struct {
	t *testing.T
	agent.Session
	model *modelserver.Server
	heard []event.Event
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
	lookup := func(name string) (string, bool) { return cli.Lookup(env, name) }
	install, err := d.Locate(agent.Env{Lookup: lookup, Dir: b.work})
	if err != nil {
		b.t.Fatal(err)
	}
	return agent.Spec{
		Install: install, Dir: b.work, Env: env, Temp: filepath.Join(b.base, "private"),
		Machine:   agent.Machine{Root: true, OS: runtime.GOOS, Has: func(p string) bool { return cli.InPath(lookup, p) }},
		Rehearsal: &agent.Rehearsal{URL: m.URL(), Key: "sk-rehearsal-0123456789", Model: "gpt-5", Home: b.home},
	}
}

// talk opens a conversation in which somebody answers.
func (b *bench) talk(d agent.Driver, script string, change func(*agent.Spec, *agent.Services)) *conversation {
	b.t.Helper()
	m := scripted(b.t, script)
	s, sv := b.wanted(d, m), agent.Services{CanAsk: true, Grace: 5 * time.Second}
	if change != nil {
		change(&s, &sv)
	}
	session, err := d.Open(b.t.Context(), s, sv)
	if err != nil {
		b.t.Fatal(err)
	}
	c := &conversation{t: b.t, Session: session, model: m}
	b.t.Cleanup(func() {
		if _, err := session.Close(context.Background()); err != nil {
			b.t.Error(err)
		}
	})
	return c
}

func (c *conversation) say(text string) {
	c.t.Helper()
	if err := c.Send(c.t.Context(), []event.Block{{Text: text}}); err != nil {
		c.t.Fatal(err)
	}
}

// until hears events up to one of that kind.
func (c *conversation) until(k event.Kind) event.Event {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		e, err := c.Next(ctx)
		if errors.Is(err, io.EOF) && k == "" {
			return e
		}
		if err != nil {
			c.t.Fatalf("no %s: %v; heard %s", k, err, story(c.heard))
		}
		c.heard = append(c.heard, e)
		if e.Kind == k {
			return e
		}
		if e.Kind == event.Ended && !e.Unasked {
			c.t.Fatalf("the turn ended without %s: %s", k, story(c.heard))
		}
	}
}

// answered is the whole turn, in which every question gets that answer.
func (c *conversation) answered(text string, a event.Reply) event.Event {
	c.t.Helper()
	c.heard = nil
	c.say(text)
	for {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		e, err := c.Next(ctx)
		cancel()
		if err != nil {
			c.t.Fatalf("%v; heard %s", err, story(c.heard))
		}
		c.heard = append(c.heard, e)
		switch {
		case e.Kind == event.Question:
			if err := c.Answer(c.t.Context(), e.Ask.ID, a); err != nil {
				c.t.Fatal(err)
			}
		case e.Kind == event.Ended && !e.Unasked:
			return e
		}
	}
}

func (c *conversation) has(k event.Kind, part string) bool {
	for _, e := range c.heard {
		if e.Kind == k && strings.Contains(tale(e), part) {
			return true
		}
	}
	return false
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
	for _, part := range []any{e.Call, e.Result, e.Denial, e.Ask, e.Fault, e.End} {
		if data, _ := json.Marshal(part); string(data) != "null" {
			word += string(data)
		}
	}
	return word + e.Text
}
