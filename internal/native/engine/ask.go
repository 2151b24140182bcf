package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/native/tool"
	"omniagent/internal/walls/guard"
)

// fromHost is the source of a rule that an answer adds.
const fromHost = "an answer of this conversation"

// expect registers a question and returns the channel for its answer.
func (m *Mind) expect(id string) <-chan event.Reply {
	answer := make(chan event.Reply, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.questions[id] = answer
	return answer
}

// withdraw closes a question. It reports whether the question was still open.
func (m *Mind) withdraw(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, open := m.questions[id]
	delete(m.questions, id)
	return open
}

// refused returns the denial of a call.
func (s *step) refused(byUser bool, format string, args ...any) *event.Denial {
	return &event.Denial{CallID: s.call.ID, Tool: s.call.Name, Reason: fmt.Sprintf(format, args...), ByUser: byUser}
}

// denied returns the denial of a call that nobody was asked about, because of a verdict.
func (s *step) denied(v verdict, reason string) *event.Denial {
	return &event.Denial{CallID: s.call.ID, Tool: s.call.Name, Reason: reason, Firm: v.firm}
}

// permitted returns nil if the call may run, and otherwise a denial with the reason. It asks a person if necessary. The
// order is that of Claude's hosts: hooks, denials, questions, the mode, allowances, and then a person.
func (l *loop) permitted(ctx context.Context, s *step) *event.Denial {
	host := agent.HookAnswer{}
	if !l.answers(s) {
		host = l.callHook(ctx, agent.Moment{Name: agent.BeforeTool, Call: s.actual()})
	}
	if ctx.Err() != nil || l.answers(s) {
		return nil // it does not run anyway
	}
	s.context = contextOf(agent.BeforeTool, host)
	filled, isFilled := s.filled(host)
	if host.Input != nil && host.Decision != event.Deny && !isFilled {
		if l.replace(s, host.Input); s.wrong != "" {
			return nil
		}
	}
	described := Described(s.call.Name, s.action)
	canAsk := l.mind.o.Services.CanAsk
	v := l.mind.now().judge(described, s.action, host.Decision)
	s.refusal, s.needsNetwork = v.refusal, v.needsNetwork
	if v.decision == guard.Allow && s.action.Form != nil {
		if isFilled {
			s.answered(filled)
			return nil
		}
		v = verdict{decision: guard.Ask}
	}
	switch {
	case v.decision == guard.Allow || v.run && !canAsk:
		if v.answered {
			s.open()
		}
		l.agreed(s, event.Reply{})
		return nil
	case v.decision == guard.Deny && host.Decision == event.Deny:
		return s.denied(v, cmp.Or(host.Reason, v.reason))
	case v.decision == guard.Deny:
		return s.denied(v, v.reason)
	}
	title := s.action.Title
	if described.Dir != "" && described.Dir != "." {
		title += " (in " + text.Name(described.Dir) + ")"
	}
	if v.reason = cmp.Or(v.reason, host.Reason); host.Decision == askPerson {
		v.reason = cmp.Or(host.Reason, v.reason)
	}
	if canAsk && s.needsNetwork && s.action.Opens != nil {
		if v.reason == guard.NeedsNetwork {
			v.reason = "it needs the network"
		}
		v.reason = reasoned(v.reason, "a yes opens the network for this command alone")
	}
	title = reasoned(title, v.reason)
	if !canAsk {
		return s.refused(false, "%s needs approval, and nobody can be asked (%s)", s.call.Name, title)
	}
	return l.question(ctx, s, title, v)
}

// now returns the current policy, with the ground of the running turn.
func (m *Mind) now() policy {
	var ground guard.Containment
	if m.o.Containment != nil {
		ground = m.o.Containment()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.policy
	p.rules.Place.Containment = ground
	return p
}

// question asks a person, and waits for the answer or for the end of the turn.
func (l *loop) question(ctx context.Context, s *step, title string, v verdict) *event.Denial {
	ask := &event.Ask{
		ID: s.call.ID, Text: title, Options: []string{event.Allow, event.Always, event.Deny}, Tool: s.actual(),
		Form: s.action.Form != nil, Reason: v.reason, Part: v.part,
	}
	switch {
	case ask.Form:
		ask.Options = event.Choices(ask.Tool.Input)
	case s.action.Person:
		ask.Options = []string{event.Allow, event.Deny}
	}
	if s.action.Asked != nil {
		s.seen = s.action.Asked(nil)
	}
	if reply, ok := l.replyTo(ctx, ask); ok {
		if ask.Form && slices.Contains(ask.Options, reply.Option) {
			reply.Option, reply.Text = event.Allow, reply.Option
		}
		return l.applyReply(s, reply)
	}
	return s.refused(false, "the turn was interrupted before anybody answered")
}

// replyTo asks a question and waits for the answer. ok is false if ctx ends first.
func (l *loop) replyTo(ctx context.Context, ask *event.Ask) (reply event.Reply, ok bool) {
	answer := l.mind.expect(ask.ID)
	defer l.mind.withdraw(ask.ID)
	l.tell(event.Event{Kind: event.Question, Ask: ask})
	select {
	case reply := <-answer:
		return reply, true
	case <-ctx.Done():
		if l.mind.withdraw(ask.ID) {
			l.tell(event.Event{Kind: event.Withdrawn, Ask: &event.Ask{ID: ask.ID}})
		}
		return event.Reply{}, false
	}
}

// applyReply applies an answer to a call. It returns a denial if the answer refuses the call, or cannot be applied
// completely.
func (l *loop) applyReply(s *step, reply event.Reply) *event.Denial {
	s.stops = reply.Stop
	switch {
	case reply.Automatic:
		return s.refused(false, "%s", cmp.Or(reply.Text, "nobody answered whether it may run"))
	case !reply.Stop && (reply.Option == event.Allow || reply.Option == event.Always):
	case reply.Text != "":
		return s.refused(true, "the user refused: %s", reply.Text)
	case s.action.Form != nil && !reply.Stop:
		return s.refused(true, "the user skipped the question")
	default:
		return s.refused(true, "the user refused")
	}
	var rules guard.Rules
	for _, written := range reply.Rules {
		rule, err := l.mind.policy.rules.Known.Rule(guard.Allow, written, fromHost)
		if err != nil {
			return s.refused(true, "the user's consent cannot be obeyed: %v", err)
		}
		rules = append(rules, rule)
	}
	if reply.Mode != "" && !known(reply.Mode) {
		return s.refused(true, "the user's consent cannot be obeyed: there is no permission mode %q", reply.Mode)
	}
	switch {
	case s.action.Form != nil:
		filled, _ := s.action.Form(reply.Input, reply.Text)
		s.answered(filled)
	case reply.Input != nil:
		if l.replace(s, l.mind.o.Secrets.Bytes(reply.Input)); s.wrong != "" {
			return nil
		}
		if denial := l.deniedNow(s); denial != nil { // an approval does not override a denial
			return denial
		}
	}
	l.mind.mu.Lock()
	l.mind.policy.rules.Rules = slices.Concat(l.mind.policy.rules.Rules, rules)
	if reply.Option == event.Always {
		l.mind.policy.rules.Memory.Remember(Described(s.call.Name, s.action), guard.Allow)
	}
	l.mind.mu.Unlock()
	s.open()
	l.agreed(s, reply)
	return nil
}

// open opens the network for a command that a person has allowed, if it needs it.
func (s *step) open() {
	if s.needsNetwork && s.action.Opens != nil {
		s.action.Opens()
		s.refusal = ""
	}
}

// deniedNow judges a call that was planned again. It returns the denial, or nil.
func (l *loop) deniedNow(s *step) *event.Denial {
	v := l.mind.now().judge(Described(s.call.Name, s.action), s.action, "")
	if s.refusal, s.needsNetwork = v.refusal, v.needsNetwork; v.decision == guard.Deny {
		return s.denied(v, v.reason)
	}
	return nil
}

// agreed changes the mode if an approval says so. The approval of a plan ends the mode plan.
func (l *loop) agreed(s *step, reply event.Reply) {
	mode, planned := reply.Mode, s.call.Name == tool.PlanName
	if planned && mode == "" {
		mode = setting.Default
	}
	if mode == "" {
		return
	}
	l.mind.change(agent.Change{Mode: mode}, nil)
	if planned {
		l.mind.mu.Lock()
		defer l.mind.mu.Unlock()
		l.mind.news = "" // the result tells the model
	}
}

// filled returns the result of a form that a hook has filled in. ok is false if the hook has not.
func (s *step) filled(host agent.HookAnswer) (r tool.Result, ok bool) {
	if s.action.Form == nil || host.Input == nil {
		return r, false
	}
	return s.action.Form(host.Input, "")
}

// answered makes r the result of a call that is a question.
func (s *step) answered(r tool.Result) {
	s.action.Run = func(context.Context) tool.Result { return r }
}
