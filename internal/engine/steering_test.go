package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"omniagent/internal/engine"
	"omniagent/internal/event"
	"omniagent/internal/model"
	"omniagent/internal/session"
	"omniagent/internal/tool"
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

// TestSteeringAtTheEnd: what is said while the last answer is given is heard in the same turn, and what is said behind it is a message.
func TestSteeringAtTheEnd(t *testing.T) {
	client, _ := scripted(t, `[]`)
	kept, err := session.Open(t.TempDir()).Create(t.Context(), session.Begin{Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	var s *engine.Session
	var heard []string
	steer := func(text string) {
		if err := s.Steer(t.Context(), []event.Block{{Text: text}}); err != nil {
			t.Error(err)
		}
	}
	s = begin(t, engine.Options{Journal: kept, Client: speaking{client, func(q model.Request, piece func(model.Piece)) {
		heard = append(heard, lastSaid(q))
		switch len(heard) {
		case 1:
			steer("in time")
		case 2: // so much that the end of the turn has to wait for its host
			for range 4093 {
				piece(model.Piece{Kind: model.Text, Text: "x"})
			}
		}
	}}})
	send(t, s, "go")
	for over := time.Now().Add(20 * time.Second); kept.State().Turns == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(over) {
			t.Fatal("the turn does not end")
		}
	}
	steer("too late")
	turn(t, s, nil)
	turn(t, s, nil)
	if got := strings.Join(heard, ", "); got != "go, in time, too late" {
		t.Errorf("heard: %s", got)
	}
}

// TestSteeringOfATurnThatFails: the next one begins with it.
func TestSteeringOfATurnThatFails(t *testing.T) {
	client, _ := scripted(t, `[]`)
	var s *engine.Session
	var heard []string
	s = begin(t, engine.Options{Limits: engine.Limits{Turns: 1}, Client: speaking{client, func(q model.Request, _ func(model.Piece)) {
		if heard = append(heard, lastSaid(q)); len(heard) == 1 {
			if err := s.Steer(t.Context(), []event.Block{{Text: "left"}}); err != nil {
				t.Error(err)
			}
			panic("it fails inside")
		}
		blocks := q.Messages[len(q.Messages)-1].Blocks
		heard = append(heard, blocks[len(blocks)-2].Text)
	}}})
	send(t, s, "go")
	turn(t, s, nil)
	send(t, s, "again")
	turn(t, s, nil)
	if got := strings.Join(heard, ", "); got != "go, again, left" {
		t.Errorf("heard: %s", got)
	}
}

// TestRepetition: the same call with the same result is a circle, unless it waits for something that runs.
func TestRepetition(t *testing.T) {
	script := "[" + strings.Repeat(`{"call":{"name":"Poll","input":{}}},`, 8) + `{"say":"ok"}]`
	for _, tt := range []struct {
		waits, differs bool
		want           string
	}{{false, false, "failed AGENT_FAILED; ended error_during_execution"}, {true, false, `ended success "ok"`}, {false, true, `ended success "ok"`}} {
		client, server := scripted(t, script)
		n := 0
		s := begin(t, engine.Options{Client: client}, kit("Poll", tool.Action{Kind: event.Other, Run: func(context.Context, func(string)) tool.Result {
			r := tool.Result{Text: "running", Waits: tt.waits}
			if n++; tt.differs {
				r.Text += fmt.Sprint(n)
			}
			return r
		}}))
		send(t, s, "go")
		if got := told(turn(t, s, nil)); !strings.HasSuffix(strings.TrimSuffix(got, ` ""`), tt.want) {
			t.Errorf("%+v: %s", tt, got)
		}
		all := server.Requests()
		if warned := strings.Contains(string(all[len(all)-1].Raw), "You have made the same call"); warned == (tt.waits || tt.differs) {
			t.Errorf("%+v: warned: %v", tt, warned)
		}
	}
}
