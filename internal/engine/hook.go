package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/tool"
)

// asks is the decision of a hook that somebody has to be asked; Allow and Deny are the others.
const asks = "ask"

// word is the host's word at a moment. One that means nothing, or a hook that fails inside, is told; where the hook decides what may happen it is
// a no, and else it is nothing. A hook that does not come back ends with ctx, as all that waits for it does.
func (l *loop) word(ctx context.Context, m agent.Moment) agent.Word {
	if l.session.o.Hook == nil || ctx.Err() != nil {
		return agent.Word{}
	}
	m.Parent = l.parent
	w, wrong := l.session.listen(ctx, m)
	if wrong != "" {
		l.tell(event.Event{Kind: event.Notice, Text: fmt.Sprintf("the hook at %s %s", m.Name, wrong), Synthetic: true})
		w = agent.Word{}
		if m.Name == agent.BeforeTool || m.Name == agent.MessageComes {
			w = agent.Word{Decision: event.Deny, Reason: "the hook that decides about it " + wrong}
		}
	}
	if w.Note != "" {
		l.tell(event.Event{Kind: event.Notice, Text: w.Note})
	}
	if w.End != "" && m.Name != agent.TurnEnds && m.Name != agent.HelperEnds {
		l.session.endTurn(&stop{FailedTurn, fault.New(fault.Blocked, "a hook has ended the turn at %s: %s", m.Name, w.End)})
	}
	known := l.session.o.Secrets
	w.Reason, w.Context, w.Input = known.String(w.Reason), known.String(w.Context), known.Bytes(w.Input)
	return w
}

// listen calls the hook. wrong says what is wrong with its word.
func (s *Session) listen(ctx context.Context, m agent.Moment) (w agent.Word, wrong string) {
	if m.Call != nil { // nobody changes what is ours
		call := *m.Call
		call.Input = slices.Clone(call.Input)
		m.Call = &call
	}
	type said struct {
		word  agent.Word
		wrong string
	}
	done := make(chan said, 1)
	go func() {
		x := said{wrong: "ended without a word"}
		defer func() {
			if r := recover(); r != nil {
				x = said{wrong: fmt.Sprintf("failed inside: %v", r)}
			}
			done <- x
		}()
		x = said{word: s.o.Hook(ctx, m)}
	}()
	var x said
	select {
	case x = <-done:
	case <-ctx.Done():
		return agent.Word{}, ""
	}
	var object map[string]json.RawMessage
	switch w = x.word; {
	case x.wrong != "":
	case w.Decision != "" && w.Decision != event.Allow && w.Decision != asks && w.Decision != event.Deny:
		x.wrong = fmt.Sprintf("decided %.60q, which means nothing", w.Decision)
	case w.Input != nil && (json.Unmarshal(w.Input, &object) != nil || object == nil):
		x.wrong = "gave an input that is no JSON object"
	}
	return w, x.wrong
}

// endTurn ends the turn that runs, and none that waits.
func (s *Session) endTurn(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupt != nil {
		s.interrupt(why)
	}
}

// admit is a message with what the host adds to it. The error says that it is refused: then nothing of it is kept.
func (l *loop) admit(ctx context.Context, said []model.Block) ([]model.Block, error) {
	s := l.session
	if s.o.Hook == nil {
		return append(slices.Clone(said), l.heard()...), nil
	}
	s.mu.Lock()
	first := !s.greeted
	s.greeted = true
	s.mu.Unlock()
	if first {
		began := "startup"
		if len(l.talk.messages) > 0 {
			began = "resume"
		}
		s.opening = beside(agent.SessionBegins, l.word(ctx, agent.Moment{Name: agent.SessionBegins, Text: began}))
	}
	var text strings.Builder
	for _, b := range said {
		if b.Kind == model.Text {
			text.WriteString(b.Text)
		}
	}
	w := l.word(ctx, agent.Moment{Name: agent.MessageComes, Text: text.String()})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if w.Decision == event.Deny {
		return nil, &stop{FailedTurn, fault.New(fault.Blocked, "the message was refused: %s", reasonOf(w))}
	}
	said = slices.Concat(said, l.heard(), s.opening, beside(agent.MessageComes, w))
	s.opening = nil
	return said, nil
}

// beside is what a hook tells the model.
func beside(at agent.MomentName, w agent.Word) []model.Block {
	if w.Context == "" {
		return nil
	}
	return []model.Block{{Kind: model.Text, Text: fmt.Sprintf("(from the user's program, at %s)\n%s", at, w.Context)}}
}

func reasonOf(w agent.Word) string {
	if w.Reason == "" {
		return "a hook refuses it"
	}
	return w.Reason
}

// after is what a hook has to say to a call that ran, for the model.
func (l *loop) after(ctx context.Context, s *step, r *event.Result) string {
	m := agent.Moment{Name: agent.AfterTool, Call: &s.call, Result: r}
	if r.Failed {
		m.Name = agent.AfterFailure
	}
	w := l.word(ctx, m)
	said := ""
	if w.Decision == event.Deny {
		said = "\n\n(The user's program objects to this: " + reasonOf(w) + ")"
	}
	for _, b := range beside(m.Name, w) {
		said += "\n\n" + b.Text
	}
	return said
}

// mostMissed is how often the model may end without the answer in its form, or with one that does not fit.
const mostMissed = 5

// finish says whether there is something to go on with where the turn would end: the form of the answer, the host's word, or a word of the user
// that came in the last moment.
func (l *loop) finish(ctx context.Context) (goOn bool, err error) {
	more := ""
	if l.forms() && l.given == nil {
		if l.missed++; l.missed >= mostMissed {
			return false, &stop{reason: Formless}
		}
		more = "The answer has to be given through the tool " + formName + ". Call it now, with the whole answer."
	} else {
		name := agent.TurnEnds
		if l.outer != nil {
			name = agent.HelperEnds
		}
		if w := l.word(ctx, agent.Moment{Name: name, Text: l.last, Again: l.again}); w.Decision == event.Deny && w.End == "" {
			more, l.again = reasonOf(w), true
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	blocks := l.steered(ctx, more == "")
	if more != "" {
		blocks = append([]model.Block{{Kind: model.Text, Text: more}}, blocks...)
	}
	if blocks == nil {
		return false, nil
	}
	return true, l.keep(model.Message{Role: model.User, Blocks: blocks}, nil)
}

// parting is how long a hook has for its last word.
const parting = 3 * time.Second

// partWith tells the hook that the conversation is over.
func (s *Session) partWith(ctx context.Context) {
	s.mu.Lock()
	greeted := s.greeted
	s.greeted = false
	s.mu.Unlock()
	if !greeted || s.o.Hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, parting)
	defer cancel()
	_, _ = s.listen(ctx, agent.Moment{Name: agent.SessionEnds, Text: "other"})
}

// replace plans the call again, with an input that the host has given.
func (l *loop) replace(s *step, input json.RawMessage) {
	before := s.call.Input
	fresh := l.plan(model.Block{Kind: model.Call, ID: s.call.ID, Name: s.call.Name, Input: input})
	s.call, s.action, s.wrong = fresh.call, fresh.action, fresh.wrong
	if s.wrong != "" {
		s.wrong = "The host has changed the input, and it cannot run like that: " + s.wrong
	}
	s.changed = s.changed || string(before) != string(s.call.Input)
}

// ranWith tells the model what really ran.
func ranWith(input json.RawMessage) string {
	return "\n\n(The user has changed the input. It ran with: " + clipped(string(input), 2000) + ")"
}

// interruptedCall is the result of a call whose turn has ended before it.
func interruptedCall() tool.Result {
	return tool.Result{Text: "It did not run: the turn was interrupted before.", Failed: true}
}
