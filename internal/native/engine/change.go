package engine

import (
	"context"
	"fmt"
	"slices"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/session"
)

// Set changes the mode from the next call on, and the model from the next request on. Open questions stay open. It
// makes all changes or, if it returns an error, none. For another directory it returns agent.ErrRestart.
func (m *Mind) Set(_ context.Context, c agent.Change) error {
	if c.Dir != "" { // the tools and walls are built for fixed directories
		return agent.ErrRestart
	}
	if c.Mode != "" && !known(c.Mode) {
		return fault.New(fault.ArgError, "there is no permission mode %q", c.Mode).
			Hint("deny, ask, plan, prompt, default, auto-edit or yolo")
	}
	if c.Model == "" {
		m.change(c, nil)
		return nil
	}
	fresh, err := m.other(c.Model)
	if err != nil {
		return err
	}
	if journal := m.o.Journal; journal != nil {
		if _, err := journal.Append(session.Changed{Model: fresh.Client.Profile().Model}); err != nil {
			return err
		}
	}
	m.change(c, &fresh)
	return nil
}

func known(m setting.Approval) bool {
	return slices.Contains(setting.Approvals(), m)
}

// change sets the mode and the model. It reports the change first, so that the event precedes everything it affects.
func (m *Mind) change(c agent.Change, fresh *Model) {
	m.changing.Lock()
	defer m.changing.Unlock()
	if facts := m.difference(c, fresh); facts != nil {
		m.tell(event.Event{Kind: event.Changed, Session: m.o.ID, Facts: facts})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.Mode != "" {
		m.setMode(c.Mode)
	}
	if fresh != nil {
		m.model = *fresh
		m.models++
	}
}

// difference returns the facts that a change alters, or nil.
func (m *Mind) difference(c agent.Change, fresh *Model) *event.Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	var facts event.Facts
	differs := false
	if before := m.policy.mode; c.Mode != "" && c.Mode != before {
		facts.Mode, differs = c.Mode, true
		if tools := m.offeredIn(c.Mode); !slices.Equal(tools, m.offeredIn(before)) {
			facts.Tools = slices.Concat([]string{}, tools) // not nil, even if it is empty
		}
	}
	if fresh != nil {
		before, now := m.model.Client.Profile(), fresh.Client.Profile()
		if now.Model != before.Model || now.Window != before.Window {
			facts.Model, facts.Window, differs = now.Model, now.Window, true
		}
	}
	if !differs {
		return nil
	}
	return &facts
}

// setMode changes the mode. The caller holds the lock. When the mode plan begins or ends, the model is told, because
// its task changes.
func (m *Mind) setMode(mode setting.Approval) {
	before := m.policy.mode
	m.policy.mode = mode
	switch {
	case mode == before:
	case mode == setting.Plan:
		m.news = "(The permission mode is plan now. " + planned + ")"
	case before == setting.Plan:
		m.news = fmt.Sprintf("(The permission mode is %s now, and plan no more: what was planned may be done.)", mode)
	}
}

// takeNews returns the message about a change of the mode for the model, once.
func (l *loop) takeNews() []model.Block {
	m := l.mind
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news == "" || l.outer != nil {
		return nil
	}
	news := m.news
	m.news = ""
	return []model.Block{{Kind: model.Text, Text: news}}
}

// other returns another model. It fails if the model cannot change, is unknown, or has no known price under a budget.
func (m *Mind) other(name string) (Model, error) {
	if m.o.Other == nil {
		return Model{}, fault.New(fault.Unsupported, "the model cannot be changed in the middle of this conversation")
	}
	other, err := m.o.Other(name)
	if err != nil {
		return Model{}, err
	}
	if m.o.Limits.CostUSD > 0 && other.Client.Profile().Prices == nil {
		return Model{}, Unpriced(name)
	}
	return m.plain(other), nil
}

// Unpriced returns the error for a budget with a model whose price is unknown.
func Unpriced(name string) error {
	return fault.New(fault.Unsupported, "the price of %s is not known, so a budget cannot be enforced", name).
		Hint("limit the turns, or choose a model whose price is known")
}

// plain wraps a model so that it neither receives nor returns a known secret.
func (m *Mind) plain(other Model) Model {
	if m.o.Secrets != nil {
		other.Client = redacting{other.Client, m.o.Secrets}
	}
	return other
}

// client returns the model for the next request.
func (l *loop) client() model.Client {
	l.mind.mu.Lock()
	current, n := l.mind.model, l.mind.models
	l.mind.mu.Unlock()
	if l.own != nil {
		current, n = *l.own, 0
	}
	if l.asks == nil || l.models != n {
		l.asks, l.models = l.patient(current), n
	}
	return l.asks
}

// patient returns a client that retries failed requests and reports each retry.
func (l *loop) patient(m Model) model.Client {
	return model.Retrying(m.Client, m.Retry, func(r model.Retry) {
		again := event.Repetition{
			Attempt: r.Attempt, Of: r.Of, After: r.After, Status: r.Error.Status, Reason: r.Error.Message,
		}
		l.notes = append(l.notes, again.Note())
		l.tell(event.Event{Kind: event.Retry, Retry: &again})
	})
}

// count adds usage to this loop and to each loop around it. Estimated tokens count for the budget, but their cost is
// not reported.
func (l *loop) count(client model.Client, u model.Usage) {
	if u == (model.Usage{}) {
		return
	}
	prices, cost := client.Profile().Prices, 0.0
	if prices != nil {
		cost = prices.Cost(u)
	}
	l.spend(u, cost, prices != nil && !u.Estimated)
}

// spend adds usage and its cost. known reports whether the cost is exact.
func (l *loop) spend(u model.Usage, cost float64, known bool) {
	for at := l; at != nil; at = at.outer {
		at.usage = at.usage.Add(u)
		at.cost += cost
		at.unknown = at.unknown || !known
	}
	l.mind.mu.Lock()
	defer l.mind.mu.Unlock()
	l.mind.spent += cost
}

// mode returns the current mode.
func (m *Mind) mode() setting.Approval {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy.mode
}

// offers reports whether the model gets a tool in a mode. The tool that submits a plan exists only in the mode plan.
func offers(name string, mode setting.Approval) bool {
	return name != tool.PlanName || mode == setting.Plan
}

// offeredIn returns the names of the tools that the model gets in a mode.
func (m *Mind) offeredIn(mode setting.Approval) (names []string) {
	for _, t := range m.tools {
		if offers(t.Name, mode) && t.Name != tool.RejectedName {
			names = append(names, t.Name)
		}
	}
	if m.o.Search && outside(mode) && m.model.Client != nil && m.model.Client.Profile().Search {
		names = append(names, tool.SearchName)
	}
	return names
}

// Instructions returns the system prompt, without secrets, and the tools that the model gets in the current mode.
func (m *Mind) Instructions() (system []string, tools []event.ToolSpec) {
	mode := m.mode()
	for _, t := range m.tools {
		if offers(t.Name, mode) {
			tools = append(tools, t.ToolSpec)
		}
	}
	for _, part := range m.o.System {
		system = append(system, m.o.Secrets.String(part))
	}
	return system, tools
}

// outside reports whether a mode lets the API search the web without a question.
func outside(mode setting.Approval) bool { return mode != setting.DenyAll && mode != setting.AskAll }

// offered returns the tools that the model gets now.
func (l *loop) offered() []tool.Tool {
	mode := l.mind.mode()
	return slices.DeleteFunc(slices.Clone(l.tools), func(t tool.Tool) bool { return !offers(t.Name, mode) })
}
