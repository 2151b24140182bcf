package cli

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/process"
)

// turn is one message and what came of it. The process writes to it, also for a moment after it was given up.
type turn struct {
	session *session
	child   *process.Child
	ended   chan struct{} // closed when all is over
	byUs    string        // why we ended it; the session's lock holds it

	mu      sync.Mutex // taken before the session's
	decoder agent.Decoder
	end     *event.Event  // held back
	told    []event.Event // as far as Classify looks at it
	over    bool
	stderr  ending
}

// Write takes what the agent prints.
func (t *turn) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.tell(t.decoder.Feed(p))
	}
	return len(p), nil
}

// finish returns the event that ends the turn. Nothing that comes later is heard.
func (t *turn) finish(x agent.Exit) event.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.tell(t.decoder.End(x))
	if t.end == nil {
		return event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: "the agent ended without a result"}}
	}
	return *t.end
}

// tell hands events on to the session, all but the end.
func (t *turn) tell(events []event.Event) {
	if len(events) == 0 {
		return
	}
	s := t.session
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		if e.Session != "" {
			s.id = e.Session
		}
		if e.Kind == event.Started && e.Model != "" {
			s.model = e.Model
		}
		e.Raw = bytes.Clone(e.Raw) // it is valid until the next Feed only
		if e.Kind == event.Ended {
			old := t.end
			if old != nil && e.Synthetic {
				continue // what we concluded does not replace what the agent said
			}
			end := e
			if t.end = &end; old == nil {
				continue
			}
			e = event.Event{Kind: event.Notice, Text: "the agent went on after an end", Raw: old.Raw}
		}
		t.note(e)
		s.events.Put(e)
	}
}

// note keeps what the end of the turn is judged by. Of many texts one is as good as all.
func (t *turn) note(e event.Event) {
	answered := func(o event.Event) bool { return o.Kind == event.Text || o.Kind == event.ToolCall }
	switch e.Kind {
	case event.Text, event.ToolCall:
		if slices.ContainsFunc(t.told, answered) {
			return
		}
	case event.Denied, event.Failed:
	default:
		return
	}
	t.told = append(t.told, event.Event{Kind: e.Kind, Denial: e.Denial, Fault: e.Fault, Terminal: e.Terminal})
}

// ending keeps the last 64 KiB.
type ending struct {
	mu   sync.Mutex
	kept []byte
}

func (e *ending) Write(p []byte) (int, error) {
	const most = 64 << 10
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept = append(e.kept, p[max(0, len(p)-most):]...)
	if over := len(e.kept) - most; over > 0 {
		e.kept = append(e.kept[:0], e.kept[over:]...)
	}
	return len(p), nil
}

func (e *ending) bytes() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return bytes.Clone(e.kept)
}

// plainText is the decoder for agents that print nothing but their answer.
type plainText struct {
	said    strings.Builder
	partial []byte // of a character that is cut
}

func (d *plainText) Feed(p []byte) []event.Event {
	d.said.Write(p)
	p = append(d.partial, p...)
	end := len(p)
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if utf8.RuneStart(p[len(p)-back]) {
			if !utf8.FullRune(p[len(p)-back:]) {
				end = len(p) - back
			}
			break
		}
	}
	d.partial = bytes.Clone(p[end:])
	return piece(p[:end])
}

func piece(p []byte) []event.Event {
	if len(p) == 0 {
		return nil
	}
	return []event.Event{{Kind: event.Text, Text: string(p), Delta: true}}
}

func (d *plainText) End(x agent.Exit) []event.Event {
	ok := x.Code == 0 && x.ByUs == "" && strings.TrimSpace(d.said.String()) != ""
	return append(piece(d.partial), event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{OK: ok, Text: d.said.String()}})
}
