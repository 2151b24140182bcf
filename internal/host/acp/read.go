package acp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// read reads events from the journal and sends them to the client, until the conversation is over.
func (s *clientSession) read(events *conversation.Events) {
	defer s.finish()
	defer events.Close()
	for {
		e, err := s.next(events)
		switch {
		case err == nil:
			s.event(e)
		case errors.Is(err, context.DeadlineExceeded):
			s.tell(s.narrator.running()...)
		default:
			return
		}
	}
}

// next returns the next event. If there are unannounced calls, it waits no longer than patience.
func (s *clientSession) next(events *conversation.Events) (event.Event, error) {
	ctx := context.Background()
	if s.narrator.unannounced() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	return events.Next(ctx)
}

// finish answers messages without an end. There are some only if the journal could not be written.
func (s *clientSession) finish() {
	s.mu.Lock()
	prompts, expected := s.prompts, s.closing
	s.prompts = nil
	s.mu.Unlock()
	_, err := s.talk.Close(context.Background()) // it is already over; this only returns the reason
	if !expected {
		s.host.Log("the session %s has ended by itself: %v", s.id, err)
	}
	for _, p := range prompts {
		wrong := jsonrpc.Errorf(jsonrpc.InternalError, "the conversation has ended")
		if err != nil {
			wrong = errorOf(err)
		}
		switch {
		case p.turn == 0: // work answers it
		case s.encoder.Version == wire.V2 && p.begun:
			s.state("idle", "error", wrong)
		default:
			s.host.put(jsonrpc.Failure(p.id, wrong))
		}
	}
	s.host.forget(s)
	close(s.ended)
}

// tell sends updates to the client.
func (s *clientSession) tell(updates ...wire.Update) {
	for _, u := range updates {
		s.host.put(s.encoder.Update(s.id, u)...)
	}
}

// state sends the session's state, in version 2 of the protocol.
func (s *clientSession) state(state, stop string, e *jsonrpc.Error) {
	s.tell(wire.Update{Kind: wire.Conditions, State: state, Stop: stop, Error: e})
}

// event handles an event.
func (s *clientSession) event(e event.Event) {
	switch e.Kind {
	case event.Prompted:
		s.sending.Lock() // wait until the prompt of the turn is known
		s.sending.Unlock()
	case event.TurnBegan:
		s.begin(e.Turn)
	case event.Ended:
		s.end(e)
	case event.Question:
		s.question(e.Turn, e.Ask)
	case event.Replied:
		if e.Reply.Option != event.Deny {
			s.tell(s.narrator.allowed(e.Reply.Question)...)
		}
		s.withdraw(e.Reply.Question)
	case event.Withdrawn:
		s.withdraw(e.Ask.ID)
	case event.Changed:
		if e.Facts != nil && (e.Facts.Mode != "" || e.Facts.Model != "") {
			options := s.options()
			s.tell(wire.Update{Kind: wire.OptionsChanged, Options: &options})
		}
	case event.Failed:
		if e.Terminal {
			s.failure = errorOf(e.Fault)
			return
		}
		s.tell(s.narrator.event(e)...)
	case event.Answered:
		if e.Parent == "" {
			s.reason = e.Answer.Reason
		}
		s.narrator.window = s.talk.Facts().Window
		s.tell(s.narrator.event(e)...)
	default:
		s.tell(s.narrator.event(e)...)
	}
}

// begin handles the beginning of a turn, for a message of the client or by the agent itself.
func (s *clientSession) begin(turn int64) {
	s.turns[turn] = true
	s.narrator.boundary()
	p := s.of(turn)
	if p != nil {
		s.mu.Lock()
		p.begun = true
		s.mu.Unlock()
		s.title(p.blocks)
	}
	if s.encoder.Version == wire.V1 { // the client shows its own message
		return
	}
	if p != nil {
		message := "u" + strconv.FormatInt(turn, 10)
		s.tell(wire.Update{Kind: wire.UserMessage, Message: message, Blocks: p.blocks})
		s.host.put(jsonrpc.Result(p.id, wire.Taken(message)))
	}
	s.state("running", "", nil)
}

// title names the session after its first message, as session/list does.
func (s *clientSession) title(blocks []wire.Block) {
	if s.hasTitle {
		return
	}
	first := model.Message{Role: model.User}
	for _, b := range blocks {
		if b.Media == "" {
			first.Blocks = append(first.Blocks, model.Block{Kind: model.Text, Text: b.Text})
		}
	}
	if title := session.TitleOf(first); title != "" {
		s.hasTitle = true
		s.tell(wire.Update{Kind: wire.SessionTitle, Title: title, Time: time.Now().UTC().Format(time.RFC3339)})
	}
}

// end handles the end of a turn, which may never have begun.
func (s *clientSession) end(e event.Event) {
	p, began := s.of(e.Turn), s.turns[e.Turn]
	delete(s.turns, e.Turn)
	if began {
		s.tell(s.narrator.end(e.End)...)
	}
	if p == nil {
		if began && len(s.turns) == 0 {
			s.state("idle", "end_turn", nil)
		}
		return
	}
	s.remove(p)
	if !began {
		s.dropped(p)
		return
	}
	stop, wrong := stopOf(p, e.End, s.failure, s.reason)
	s.failure, s.reason = nil, ""
	switch {
	case s.encoder.Version == wire.V2:
		if wrong != nil {
			stop = "error"
		}
		s.state("idle", stop, wrong)
	case wrong != nil:
		s.host.put(jsonrpc.Failure(p.id, wrong))
	default:
		s.host.put(jsonrpc.Result(p.id, wire.Stopped(stop, spentOf(e.End.Usage))))
	}
}

// stopOf returns the protocol's stop reason for a turn, or an error.
func stopOf(p *prompt, end *event.End, failure *jsonrpc.Error, reason string) (string, *jsonrpc.Error) {
	switch {
	case p.cancelled || end.Reason == event.Cancelled:
		return "cancelled", nil
	case end.OK && slices.Contains([]string{"max_tokens", "length", "MAX_TOKENS", "max_output_tokens"}, reason):
		return "max_tokens", nil
	case end.OK:
		return "end_turn", nil
	case reason == "refusal":
		return "refusal", nil
	case end.Reason == event.MaxTurns:
		return "max_turn_requests", nil
	case failure != nil:
		return "", failure
	}
	return "", jsonrpc.Errorf(jsonrpc.InternalError, "the turn failed: %s", end.Reason)
}

func spentOf(u *event.Usage) *wire.Spent {
	if u == nil {
		return nil
	}
	return &wire.Spent{
		Input: max(0, u.Input-u.Cached-u.Written), Output: u.Output, Cached: u.Cached,
		Written: u.Written, Reasoning: u.Reasoning,
	}
}
