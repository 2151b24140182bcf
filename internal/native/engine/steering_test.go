package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
)

// speaking is a model that does something while it answers.
type speaking struct {
	model.Client
	answers func(q model.Request, piece func(model.Piece))
}

func (c speaking) Ask(_ context.Context, q model.Request, piece func(model.Piece)) (*model.Answer, error) {
	c.answers(q, piece)
	return &model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "answer"}}, Stop: model.Done}, nil
}

func lastSaid(q model.Request) string {
	blocks := q.Messages[len(q.Messages)-1].Blocks
	return blocks[len(blocks)-1].Text
}

// hear says something to the turn that runs.
func hear(m *mind, text string) error {
	return m.Steer(context.Background(), []event.Block{{Text: text}})
}

// TestSteering: what is said to a turn that works is heard with the next results.
func TestSteering(t *testing.T) {
	client, server := scripted(t, `[{"call":{"name":"Wait","input":{}}},{"say":"You said ${input}"}]`)
	var s *mind
	wait := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		if err := hear(s, "rather to the left"); err != nil {
			t.Error(err)
		}
		return tool.Result{Text: "waited"}
	}}
	s = begin(t, engine.Options{Client: client}, kit("Wait", wait))
	turn(t, s, "go", func(e event.Event) {
		if e.Kind == event.Steered {
			t.Error("the conversation tells that")
		}
	})
	raw := string(server.Requests()[1].Raw)
	left := strings.Index(raw, "rather to the left")
	if left < 0 || strings.Index(raw, "waited") > left {
		t.Errorf("%s", raw)
	}
}

// TestSteeringAtTheEnd: what is said while the last answer is given is heard in the same turn. What is said after that,
// or while no turn runs, is refused: it is a message.
func TestSteeringAtTheEnd(t *testing.T) {
	client, _ := scripted(t, `[]`)
	var s *mind
	var heard []string
	s = begin(t, engine.Options{Client: speaking{client, func(q model.Request, _ func(model.Piece)) {
		if heard = append(heard, lastSaid(q)); len(heard) == 1 {
			if err := hear(s, "in time"); err != nil {
				t.Error(err)
			}
		}
	}}})
	refused := func() {
		if err := hear(s, "too late"); !errors.Is(err, fault.NotFoundCode) {
			t.Errorf("it is taken: %v", err)
		}
	}
	refused()
	turn(t, s, "go", func(e event.Event) {
		if e.Kind == event.Ended {
			refused()
		}
	})
	refused()
	turn(t, s, "next", nil)
	if got := strings.Join(heard, ", "); got != "go, in time, next" {
		t.Errorf("heard: %s", got)
	}
	if err := hear(s, " "); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
}

// TestSteeringOfATurnThatFails: the next one begins with it, also if the user has interrupted the turn.
func TestSteeringOfATurnThatFails(t *testing.T) {
	for _, interrupts := range []bool{false, true} {
		client, _ := scripted(t, `[]`)
		var s *mind
		var heard []string
		s = begin(t, engine.Options{Limits: engine.Limits{Turns: 1}, Client: speaking{client, func(
			q model.Request, _ func(model.Piece),
		) {
			if heard = append(heard, lastSaid(q)); len(heard) == 1 {
				if err := hear(s, "left"); err != nil {
					t.Error(err)
				}
				if interrupts {
					s.Kill()
				}
				panic("it fails inside")
			}
			blocks := q.Messages[len(q.Messages)-1].Blocks
			heard = append(heard, blocks[len(blocks)-2].Text)
		}}})
		turn(t, s, "go", func(e event.Event) {
			if e.Kind == event.Failed && hear(s, "right") == nil {
				t.Error("a turn that has failed hears")
			}
		})
		turn(t, s, "again", nil)
		if got := strings.Join(heard, ", "); got != "go, again, left" {
			t.Errorf("interrupted: %v, heard: %s", interrupts, got)
		}
	}
}

// TestSteeringOfAnInterruptedCall: what was said while a tool worked is heard by the next message, and a request to
// shorten the conversation between them stays one.
func TestSteeringOfAnInterruptedCall(t *testing.T) {
	client, server := scripted(t, `[{"call":{"name":"Wait","input":{}}},{"say":"ok"}]`)
	var s *mind
	wait := tool.Action{Kind: event.Read, Run: func(context.Context) tool.Result {
		if err := hear(s, "rather to the left"); err != nil {
			t.Error(err)
		}
		s.Kill()
		return tool.Result{Text: "waited"}
	}}
	s = begin(t, engine.Options{Client: client}, kit("Wait", wait))
	turn(t, s, "go", nil)
	before := len(server.Requests())
	shortened := false
	turn(t, s, "/compact", func(e event.Event) { shortened = shortened || e.Kind == event.Compacted })
	if !shortened {
		t.Error("the conversation was not shortened")
	}
	turn(t, s, "next", nil)
	all := server.Requests()
	if raw := string(all[before].Raw); strings.Contains(raw, "rather to the left") {
		t.Errorf("it goes with the request to shorten: %s", raw)
	}
	raw := string(all[len(all)-1].Raw)
	left := strings.Index(raw, "rather to the left")
	if left < 0 || strings.Index(raw, `"next"`) < left {
		t.Errorf("%s", raw)
	}
}

// TestRepetition: the same call with the same result is a circle, unless it waits for something that runs.
func TestRepetition(t *testing.T) {
	script := "[" + strings.Repeat(`{"call":{"name":"Poll","input":{}}},`, 8) + `{"say":"ok"}]`
	for _, tt := range []struct {
		waits, differs bool
		want           string
	}{
		{false, false, "failed AGENT_FAILED; ended error_during_execution"},
		{true, false, `ended success "ok"`},
		{false, true, `ended success "ok"`},
	} {
		client, server := scripted(t, script)
		n := 0
		s := begin(t, engine.Options{Client: client}, kit("Poll", tool.Action{
			Kind: event.Other,
			Run: func(context.Context) tool.Result {
				r := tool.Result{Text: "running", Waits: tt.waits}
				if n++; tt.differs {
					r.Text += fmt.Sprint(n)
				}
				return r
			},
		}))
		if got := told(turn(t, s, "go", nil)); !strings.HasSuffix(strings.TrimSuffix(got, ` ""`), tt.want) {
			t.Errorf("%+v: %s", tt, got)
		}
		all := server.Requests()
		if warned := strings.Contains(string(all[len(all)-1].Raw),
			"You have made the same call"); warned == (tt.waits || tt.differs) {
			t.Errorf("%+v: warned: %v", tt, warned)
		}
	}
}

// tight is a model for which the second request is too long.
type tight struct {
	model.Client
	asked []model.Request
}

func (c *tight) Ask(_ context.Context, q model.Request, _ func(model.Piece)) (*model.Answer, error) {
	if c.asked = append(c.asked, q); len(c.asked) == 2 {
		return nil, &model.Error{Trouble: model.Overflow, Message: "too long"}
	}
	return &model.Answer{Blocks: []model.Block{{Kind: model.Text, Text: "answer"}}, Stop: model.Done}, nil
}

// TestPersonaStaysWhenATurnShortens: a conversation that is shortened in the middle of a turn keeps the prompt of the
// agent that the person has chosen, word for word and once.
func TestPersonaStaysWhenATurnShortens(t *testing.T) {
	client, _ := scripted(t, script(ok()))
	c := &tight{Client: client}
	s := begin(t, engine.Options{Client: c})
	say(t, s, []event.Block{{Name: event.AgentWord + "rev", Text: "You review."}, {Text: "one"}}, nil)
	turn(t, s, "two", nil)
	if len(c.asked) != 4 {
		t.Fatalf("%d requests", len(c.asked))
	}
	texts := ""
	for _, m := range c.asked[3].Messages {
		for _, b := range m.Blocks {
			texts += b.Text + "\n"
		}
	}
	if !strings.HasPrefix(texts, "You review.\n") || !strings.HasSuffix(texts, "\ntwo\n") {
		t.Errorf("%q", texts)
	}
}

// TestAWishOfTheSummary: what stands behind /compact is told to the model that writes the summary; another word that
// begins so is a message.
func TestAWishOfTheSummary(t *testing.T) {
	client, _ := scripted(t, script(ok()))
	c := &tight{Client: client, asked: make([]model.Request, 2)}
	s := begin(t, engine.Options{Client: c})
	turn(t, s, "one", nil)
	shortened := 0
	for _, message := range []string{"/compact keep the names", "/compactor, what is it?"} {
		turn(t, s, message, func(e event.Event) {
			if e.Kind == event.Compacted {
				shortened++
			}
		})
	}
	if got := lastSaid(c.asked[3]); shortened != 1 || !strings.HasSuffix(got, "of the summary: keep the names") {
		t.Errorf("shortened %d times: %q", shortened, got)
	}
}
