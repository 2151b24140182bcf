// Package mindtest records what a Mind reports, so that a test can read the events of a conversation one by one.
package mindtest

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
)

// Soon is a limit for what takes milliseconds.
const Soon = 2 * time.Minute

// Within returns a context that ends Soon.
func Within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Soon)
	t.Cleanup(cancel)
	return ctx
}

// Mind is a Mind and the events that it has reported.
type Mind struct {
	agent.Mind
	mu      sync.Mutex
	events  []event.Event // not looked at yet
	changed chan struct{} // closed, and replaced, by each event
}

// New returns a recorder of the Mind that open creates with it. The Mind is closed at the end of the test.
func New(t *testing.T, open func(tell func(event.Event)) (agent.Mind, error)) *Mind {
	t.Helper()
	m := &Mind{changed: make(chan struct{})}
	var err error
	if m.Mind, err = open(m.Tell); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Tell records an event. It is for Services.Tell.
func (m *Mind) Tell(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.Raw = bytes.Clone(e.Raw)
	m.events = append(m.events, e)
	close(m.changed)
	m.changed = make(chan struct{})
}

// All returns the events since the previous call.
func (m *Mind) All() []event.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	events := m.events
	m.events = nil
	return events
}

// Next waits for an event.
func (m *Mind) Next(t *testing.T) event.Event {
	t.Helper()
	late := time.After(Soon)
	for {
		m.mu.Lock()
		changed := m.changed
		if len(m.events) > 0 {
			e := m.events[0]
			m.events = m.events[1:]
			m.mu.Unlock()
			return e
		}
		m.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			t.Fatal("nothing was told")
		}
	}
}

// Until waits for an event of that kind.
func (m *Mind) Until(t *testing.T, k event.Kind) event.Event {
	t.Helper()
	for {
		if e := m.Next(t); e.Kind == k {
			return e
		}
	}
}

// WholeTurn takes a turn from beginning to end, and returns its events.
func (m *Mind) WholeTurn(t *testing.T, text string) []event.Event {
	t.Helper()
	if err := m.Turn(Within(t), []event.Block{{Text: text}}); err != nil {
		t.Fatalf("%.40q: %v", text, err)
	}
	return m.All()
}

// Turning is a turn that runs.
type Turning struct {
	t         *testing.T
	mind      *Mind
	Interrupt context.CancelFunc
	Ended     chan error
}

// BeginTurn begins a turn.
func (m *Mind) BeginTurn(t *testing.T, text string) *Turning {
	t.Helper()
	ctx, cancel := context.WithCancel(Within(t))
	t.Cleanup(cancel)
	g := &Turning{t, m, cancel, make(chan error, 1)}
	go func() { g.Ended <- m.Turn(ctx, []event.Block{{Text: text}}) }()
	return g
}

// Rest waits for the end of the turn, and returns the events that are left.
func (g *Turning) Rest() []event.Event {
	g.t.Helper()
	select {
	case err := <-g.Ended:
		if err != nil {
			g.t.Fatal(err)
		}
	case <-time.After(Soon):
		g.t.Fatal("the turn does not end")
	}
	return g.mind.All()
}

// End closes the Mind, and returns the events that are left and the outcome.
func (m *Mind) End(t *testing.T) ([]event.Event, agent.Outcome) {
	t.Helper()
	o, err := m.Close(Within(t))
	if err != nil {
		t.Fatal(err)
	}
	return m.All(), o
}

// Story returns the events as one line of text.
func Story(events []event.Event) string {
	var words []string
	for _, e := range events {
		word := string(e.Kind)
		if e.Text != "" {
			word += "=" + e.Text
		}
		if e.End != nil && e.End.Reason != "" {
			word += "=" + e.End.Reason
		}
		if e.Facts != nil && e.Kind == event.Changed {
			word += "=" + string(e.Facts.Mode) + e.Facts.Model
		}
		if e.Synthetic {
			word += "!"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}
