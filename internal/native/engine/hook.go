package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
)

// askPerson is the decision of a hook to ask a person; the others are Allow and Deny.
const askPerson = "ask"

// callHook calls the hook and returns its decision. An invalid decision, and a hook that panics, are reported as a
// notice. If the hook decides whether something runs, they also deny it. A hook that does not return is abandoned when
// ctx ends.
func (l *loop) callHook(ctx context.Context, m agent.Moment) agent.HookAnswer {
	if l.mind.o.Services.Hook == nil || ctx.Err() != nil {
		return agent.HookAnswer{}
	}
	m.Parent = l.parent
	w, wrong := l.mind.runHook(ctx, m)
	if wrong != "" {
		l.tell(event.Event{Kind: event.Notice, Text: fmt.Sprintf("the hook at %s %s", m.Name, wrong), Synthetic: true})
		w = agent.HookAnswer{}
		if m.Name == agent.BeforeTool || m.Name == agent.MessageComes {
			w = agent.HookAnswer{Decision: event.Deny, Reason: "the hook that decides about it " + wrong}
		}
	}
	if w.Note != "" {
		l.tell(event.Event{Kind: event.Notice, Text: w.Note})
	}
	if w.End != "" && m.Name != agent.TurnEnds && m.Name != agent.HelperEnds {
		l.mind.fail(&stop{event.FailedTurn, fault.New(
			fault.Blocked, "a hook has ended the turn at %s: %s", m.Name, w.End)})
	}
	known := l.mind.o.Secrets
	w.Reason, w.Context, w.Input = known.String(w.Reason), known.String(w.Context), known.Bytes(w.Input)
	return w
}

// runHook calls the hook. wrong says why its decision is invalid, or is "".
func (m *Mind) runHook(ctx context.Context, at agent.Moment) (w agent.HookAnswer, wrong string) {
	if at.Call != nil { // the hook gets a copy, which it may change
		call := *at.Call
		call.Input = slices.Clone(call.Input)
		at.Call = &call
	}
	type reply struct {
		word  agent.HookAnswer
		wrong string
	}
	done := make(chan reply, 1)
	go func() {
		r := reply{wrong: "ended without a decision"}
		defer func() {
			if p := recover(); p != nil {
				r = reply{wrong: fmt.Sprintf("failed inside: %v", p)}
			}
			done <- r
		}()
		r = reply{word: m.o.Services.Hook(ctx, at)}
	}()
	var r reply
	select {
	case r = <-done:
	case <-ctx.Done():
		return agent.HookAnswer{}, ""
	}
	var object map[string]json.RawMessage
	switch w = r.word; {
	case r.wrong != "":
	case w.Decision != "" && w.Decision != event.Allow && w.Decision != askPerson && w.Decision != event.Deny:
		r.wrong = fmt.Sprintf("decided %.60q, which means nothing", w.Decision)
	case w.Input != nil && (json.Unmarshal(w.Input, &object) != nil || object == nil):
		r.wrong = "gave an input that is not a JSON object"
	}
	return w, r.wrong
}

// admit returns a message with what the host's hooks add to it. An error means that the host refuses the message; then
// nothing of it is recorded.
func (l *loop) admit(ctx context.Context, message []model.Block) ([]model.Block, error) {
	m := l.mind
	if m.o.Services.Hook == nil {
		return append(slices.Clone(message), l.takeNews()...), nil
	}
	m.mu.Lock()
	first := !m.hookBegun
	m.hookBegun = true
	m.mu.Unlock()
	if first {
		began := "startup"
		if len(l.talk.messages) > 0 {
			began = "resume"
		}
		w := l.callHook(ctx, agent.Moment{Name: agent.SessionBegins, Text: began})
		m.opening = contextOf(agent.SessionBegins, w)
	}
	var text strings.Builder
	for _, b := range message {
		if b.Kind == model.Text {
			text.WriteString(b.Text)
		}
	}
	w := l.callHook(ctx, agent.Moment{Name: agent.MessageComes, Text: text.String()})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if w.Decision == event.Deny {
		return nil, &stop{event.FailedTurn, fault.New(fault.Blocked, "the message was refused: %s", reasonOf(w))}
	}
	message = slices.Concat(message, l.takeNews(), m.opening, contextOf(agent.MessageComes, w))
	m.opening = nil
	return message, nil
}

// contextOf returns what a hook adds for the model.
func contextOf(at agent.MomentName, w agent.HookAnswer) []model.Block {
	if w.Context == "" {
		return nil
	}
	return []model.Block{{Kind: model.Text, Text: fmt.Sprintf("(from the user's program, at %s)\n%s", at, w.Context)}}
}

func reasonOf(w agent.HookAnswer) string { return cmp.Or(w.Reason, "a hook refuses it") }

// after returns what a hook says about a call that ran, for the model.
func (l *loop) after(ctx context.Context, s *step, r *event.Result) string {
	m := agent.Moment{Name: agent.AfterTool, Call: s.actual(), Result: r}
	if r.Failed {
		m.Name = agent.AfterFailure
	}
	w := l.callHook(ctx, m)
	remarks := ""
	if w.Decision == event.Deny {
		remarks = "\n\n(The user's program objects to this: " + reasonOf(w) + ")"
	}
	for _, b := range contextOf(m.Name, w) {
		remarks += "\n\n" + b.Text
	}
	return remarks
}

// finish reports whether a turn that would end has to continue, because the answer is not in its form, the host
// objects, or the user has added something.
func (l *loop) finish(ctx context.Context) (more bool, err error) {
	prompt := ""
	if text := strings.TrimSpace(l.last); l.forms() && l.given == nil && json.Valid([]byte(text)) &&
		l.mind.o.Form.schema.Validate(json.RawMessage(text)) == nil { // given as text instead
		l.given = json.RawMessage(text)
	}
	if l.forms() && l.given == nil {
		if l.formErrors++; l.exhausted() {
			return false, &stop{reason: event.MaxFormErrors}
		}
		prompt = "The answer has to be given through the tool " + formName + ". Call it now, with the whole answer."
	} else {
		name := agent.TurnEnds
		if l.outer != nil {
			name = agent.HelperEnds
		}
		w := l.callHook(ctx, agent.Moment{Name: name, Text: l.last, Again: l.keptGoing})
		if w.Decision == event.Deny && w.End == "" {
			prompt, l.keptGoing = reasonOf(w), true
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	blocks := l.steered(ctx, prompt == "")
	if prompt != "" {
		blocks = append([]model.Block{{Kind: model.Text, Text: prompt}}, blocks...)
	}
	if blocks == nil {
		return false, nil
	}
	return true, l.keep(model.Message{Role: model.User, Blocks: blocks}, nil)
}

// endHookWithin is how long the hook may take at the end of the conversation.
const endHookWithin = 3 * time.Second

// endHook tells the hook that the conversation is over.
func (m *Mind) endHook(ctx context.Context) {
	m.mu.Lock()
	greeted := m.hookBegun
	m.hookBegun = false
	m.mu.Unlock()
	if !greeted || m.o.Services.Hook == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endHookWithin)
	defer cancel()
	_, _ = m.runHook(ctx, agent.Moment{Name: agent.SessionEnds, Text: "other"})
}

// replace plans a call again with an input from the host.
func (l *loop) replace(s *step, input json.RawMessage) {
	sent, before := s.call.Input, s.input
	fresh := l.plan(model.Block{Kind: model.Call, ID: s.call.ID, Name: s.call.Name, Input: input})
	s.call, s.input, s.action, s.wrong = fresh.call, fresh.input, fresh.action, fresh.wrong
	if s.seen != nil && s.action.Asked != nil {
		s.action.Asked(s.seen)
	}
	s.call.Input = sent
	if s.wrong != "" {
		s.wrong = "The host has changed the input, and it cannot run like that: " + s.wrong
	}
	s.changed = s.changed || string(before) != string(s.input)
}

// ranWith returns the remark that tells the model with which input the call ran.
func ranWith(input json.RawMessage) string {
	return "\n\n(The user has changed the input. It ran with: " + clipped(string(input), 2000) + ")"
}

// interruptedCall is the result of a call that did not begin before the turn ended.
func interruptedCall() tool.Result {
	return tool.Result{Text: "It did not run: the turn was interrupted before.", Failed: true}
}
