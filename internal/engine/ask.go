package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/guard"
	"omniagent/internal/setting"
	"omniagent/internal/text"
	"omniagent/internal/tool"
)

const (
	nobody = "nobody" // ours: who could have answered has gone
)

// fromHost is where a rule comes from that an answer brings.
const fromHost = "an answer of this conversation"

// expect makes room for the answer to a question about a call; forget takes it away.
func (s *Session) expect(id string) (answer chan event.Reply, forget func()) {
	answer = make(chan event.Reply, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions[id] = answer
	return answer, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.questions, id)
	}
}

// NobodyAnswers says that no answer will come any more: questions that are open, and those to come, are denials. Who was there to be asked and has
// gone has not agreed to what would run if nobody had been.
func (s *Session) NobodyAnswers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = s.left || s.o.CanAsk
	s.o.CanAsk = false
	for id, answer := range s.questions {
		delete(s.questions, id)
		answer <- event.Reply{Option: nobody} // it has room for one
	}
}

// refused is a call that may not run.
func (s *step) refused(byUser bool, format string, args ...any) *event.Denial {
	return &event.Denial{CallID: s.call.ID, Tool: s.call.Name, Reason: fmt.Sprintf(format, args...), ByUser: byUser}
}

// permitted asks where somebody has to be asked. nil: it may run; else a denial says why not. The order is that of Claude's hosts: hooks, denials,
// questions, the mode, what is allowed, and then a person.
// The answer may come before the question is asked: a host that sees the call knows what it will be asked.
func (l *loop) permitted(ctx context.Context, s *step, answer <-chan event.Reply) *event.Denial {
	host := agent.Word{}
	if !l.answers(s) {
		host = l.word(ctx, agent.Moment{Name: agent.BeforeTool, Call: &s.call})
	}
	if ctx.Err() != nil || l.answers(s) {
		return nil // what does not run needs no word
	}
	s.beside = beside(agent.BeforeTool, host)
	filled, isFilled := s.filled(host)
	if host.Input != nil && host.Decision != event.Deny && !isFilled {
		if l.replace(s, host.Input); s.wrong != "" {
			return nil
		}
	}
	described := Described(s.call.Name, s.action)
	own := l.session
	own.mu.Lock()
	v, canAsk, alone := own.policy.judge(described, s.action, host.Decision), own.o.CanAsk, !own.o.CanAsk && !own.left
	own.mu.Unlock()
	if v.word == guard.Allow && s.action.Form != nil {
		if isFilled {
			s.answered(filled)
			return nil
		}
		v = verdict{word: guard.Ask}
	}
	switch {
	case v.word == guard.Allow || v.run && alone:
		l.agreed(s, event.Reply{})
		return nil
	case v.word == guard.Deny && host.Decision == event.Deny:
		return s.refused(false, "%s", cmp.Or(host.Reason, v.reason))
	case v.word == guard.Deny:
		return s.refused(false, "%s", v.reason)
	}
	title := s.action.Title
	if described.Dir != "" && described.Dir != "." {
		title += " (in " + text.Name(described.Dir) + ")"
	}
	if v.reason = cmp.Or(v.reason, host.Reason); host.Decision == asks {
		v.reason = cmp.Or(host.Reason, v.reason)
	}
	title = reasoned(title, v.reason)
	if !canAsk {
		return s.refused(false, "%s needs approval, and nobody can be asked (%s)", s.call.Name, title)
	}
	return l.question(ctx, s, title, answer)
}

// question asks, and waits for the answer.
func (l *loop) question(ctx context.Context, s *step, title string, answer <-chan event.Reply) *event.Denial {
	told := s.call
	ask := &event.Ask{ID: s.call.ID, Text: title, Options: []string{event.Allow, event.Always, event.Deny}, Tool: &told, Form: s.action.Form != nil}
	if s.action.Person {
		ask.Options = []string{event.Allow, event.Deny}
	}
	l.tell(event.Event{Kind: event.Question, Ask: ask})
	patience := time.NewTimer(l.session.o.Limits.Patience)
	defer patience.Stop()
	select {
	case said := <-answer:
		if said.Option == nobody {
			return s.refused(false, "%s needs approval, and nobody can answer any more (%s)", s.call.Name, title)
		}
		return l.heed(s, said)
	case <-patience.C:
		return s.refused(false, "nobody answered within %s whether it may run", l.session.o.Limits.Patience)
	case <-ctx.Done():
		return s.refused(false, "the turn was interrupted before anybody answered")
	}
}

// heed does what an answer says. A consent of which a part cannot be heeded is none.
func (l *loop) heed(s *step, said event.Reply) *event.Denial {
	s.stops = said.Stop
	if said.Stop || said.Option != event.Allow && said.Option != event.Always {
		if said.Text != "" {
			return s.refused(true, "the user refused: %s", said.Text)
		}
		return s.refused(true, "the user refused")
	}
	var rules guard.Rules
	for _, written := range said.Rules {
		rule, err := guard.ParseRule(guard.Allow, written, fromHost)
		if err != nil {
			return s.refused(true, "the user's consent cannot be heeded: %v", err)
		}
		rules = append(rules, rule)
	}
	if said.Mode != "" && !known(said.Mode) {
		return s.refused(true, "the user's consent cannot be heeded: there is no permission mode %q", said.Mode)
	}
	switch {
	case s.action.Form != nil:
		filled, _ := s.action.Form(said.Input, said.Text)
		s.answered(filled)
	case said.Input != nil:
		if l.replace(s, l.session.o.Secrets.Bytes(said.Input)); s.wrong != "" {
			return nil
		}
		if denial := l.deniedNow(s); denial != nil { // what was agreed to is exactly this, but no person lifts a denial
			return denial
		}
	}
	l.session.mu.Lock()
	l.session.policy.rules.Rules = slices.Concat(l.session.policy.rules.Rules, rules)
	if said.Option == event.Always {
		l.session.policy.rules.Memory.Remember(Described(s.call.Name, s.action), guard.Allow)
	}
	l.session.mu.Unlock()
	l.agreed(s, said)
	return nil
}

// deniedNow is the denial of a call that was planned again.
func (l *loop) deniedNow(s *step) *event.Denial {
	described := Described(s.call.Name, s.action)
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	if v := l.session.policy.judge(described, s.action, ""); v.word == guard.Deny {
		return s.refused(false, "%s", v.reason)
	}
	return nil
}

// agreed is what a consent changes beside the call itself. With a plan that is agreed to, the mode that made it ends.
func (l *loop) agreed(s *step, said event.Reply) {
	mode := said.Mode
	if s.call.Name == tool.PlanName && mode == "" {
		mode = setting.Default
	}
	if mode == "" {
		return
	}
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	l.session.become(mode)
	if s.call.Name == tool.PlanName {
		l.session.news = "" // the result says so
	}
}

// filled is a form that a hook has filled.
func (s *step) filled(host agent.Word) (r tool.Result, ok bool) {
	if s.action.Form == nil || host.Input == nil {
		return r, false
	}
	return s.action.Form(host.Input, "")
}

// answered is a call that was a question: its result is the answer.
func (s *step) answered(r tool.Result) {
	s.action.Run = func(context.Context, func(string)) tool.Result { return r }
}
