package engine

import (
	"context"
	"fmt"
	"slices"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/session"
	"omniagent/internal/setting"
	"omniagent/internal/tool"
)

// Set changes what may run, from the next call on, and who is asked, from the next request on. Questions that are open stay open. Where one of
// several changes cannot be made, none is.
func (s *Session) Set(_ context.Context, c agent.Change) error {
	if c.Mode != "" && !known(c.Mode) {
		return fault.New(fault.ArgError, "there is no permission mode %q", c.Mode).Hint("deny, ask, plan, prompt, default, auto-edit or yolo")
	}
	var fresh Model
	if c.Model != "" {
		var err error
		if fresh, err = s.other(c.Model); err != nil {
			return err
		}
		if kept := s.o.Journal; kept != nil {
			if _, err := kept.Append(session.Changed{Model: fresh.Client.Profile().Model}); err != nil {
				return err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Mode != "" {
		s.become(c.Mode)
	}
	if c.Model != "" {
		before := s.model
		s.model = fresh
		s.models++
		if now := fresh.Client.Profile().Model; before.Client == nil || before.Client.Profile().Model != now {
			s.events.PutNow(event.Event{Kind: event.Changed, Session: s.o.ID, Facts: &event.Facts{Model: now}})
		}
	}
	return nil
}

func known(m setting.Approval) bool {
	return slices.Contains(setting.Approvals(), m)
}

// become changes the mode, whoever wants it, and tells the host before the first event that the change affects. It is
// called with the lock, so it must not wait for room. The model has to know of the mode plan: it is another task then.
func (s *Session) become(m setting.Approval) {
	before := s.policy.mode
	s.policy.mode = m
	if m != before {
		s.events.PutNow(event.Event{Kind: event.Changed, Session: s.o.ID, Facts: &event.Facts{Mode: m}})
	}
	switch {
	case m == before:
	case m == setting.Plan:
		s.news = "(The permission mode is plan now. " + planned + ")"
	case before == setting.Plan:
		s.news = fmt.Sprintf("(The permission mode is %s now, and plan no more: what was planned may be done.)", m)
	}
}

// heard is what the model has to be told of a change, once.
func (l *loop) heard() []model.Block {
	s := l.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news == "" || l.outer != nil {
		return nil
	}
	news := s.news
	s.news = ""
	return []model.Block{{Kind: model.Text, Text: news}}
}

// other is another model, which has to have a price where there is a budget: a limit that nobody can keep is none.
func (s *Session) other(name string) (Model, error) {
	if s.o.Other == nil {
		return Model{}, fault.New(fault.Unsupported, "the model cannot be changed in the middle of this conversation")
	}
	m, err := s.o.Other(name)
	if err != nil {
		return Model{}, err
	}
	if s.o.Limits.CostUSD > 0 && m.Client.Profile().Prices == nil {
		return Model{}, Unpriced(name)
	}
	return s.plain(m), nil
}

// Unpriced says that a budget cannot be kept with a model.
func Unpriced(name string) error {
	return fault.New(fault.Unsupported, "what %s costs is not known, so a budget cannot be kept", name).Hint("limit the turns, or choose a model whose price is known")
}

// plain is a model that neither gets nor says a known secret.
func (s *Session) plain(m Model) Model {
	if s.o.Secrets != nil {
		m.Client = veiled{m.Client, s.o.Secrets}
	}
	return m
}

// client is the model that the next request goes to.
func (l *loop) client() model.Client {
	s := l.session
	s.mu.Lock()
	m, n := s.model, s.models
	s.mu.Unlock()
	if l.own != nil {
		m, n = *l.own, 0
	}
	if l.asks == nil || l.models != n {
		l.asks, l.models = l.patient(m), n
	}
	return l.asks
}

// patient asks again where that helps, and tells of it.
func (l *loop) patient(m Model) model.Client {
	return model.Retrying(m.Client, m.Retry, func(r model.Retry) {
		l.notes = append(l.notes, fmt.Sprintf("attempt %d of %d failed: %s", r.Attempt, r.Of, r.Error.Error()))
		l.tell(event.Event{Kind: event.Retry, Retry: &event.Again{Attempt: r.Attempt, Of: r.Of, After: r.After, Status: r.Error.Status, Reason: r.Error.Message}})
	})
}

// count adds to what the turn has used, and to what each loop around this one has. What the API did not count costs as much as we think, for the
// budget; it is told to nobody.
func (l *loop) count(client model.Client, u model.Usage) {
	if u == (model.Usage{}) {
		return
	}
	prices, cost := client.Profile().Prices, 0.0
	if prices != nil {
		cost = prices.Cost(u)
	}
	for at := l; at != nil; at = at.outer {
		at.usage = at.usage.Add(u)
		at.cost += cost
		at.unknown = at.unknown || prices == nil || u.Estimated
	}
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	l.session.spent += cost
}

// offers says whether the model is told of a tool now; it is called with the lock. A plan is handed over only in the mode that makes one.
func (s *Session) offers(name string) bool {
	return name != tool.PlanName || s.policy.mode == setting.Plan
}

// offered are the tools that the model is told of now.
func (l *loop) offered() []tool.Tool {
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(l.tools), func(t tool.Tool) bool { return !l.session.offers(t.Name) })
}
