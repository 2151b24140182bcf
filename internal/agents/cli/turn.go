package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/sys/process"
)

// run is the process of one turn, and its outcome. The process may still write for a moment after we gave up on it.
type run struct {
	mind    *turns
	process Process
	chosen  string      // the id of the session, if we chose it
	plain   bool        // it only prints its answer
	alive   atomic.Bool // it has printed something

	reading sync.Mutex // taken before the Mind's
	decoder agent.Decoder
	last    *event.Event // the end, held back
	over    bool
}

// Write receives the output of the agent.
func (r *run) Write(p []byte) (int, error) {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.alive.Store(true)
	if !r.over {
		r.handle(r.decoder.Feed(p))
	}
	return len(p), nil
}

// silent ends a process that has printed nothing.
func (r *run) silent() {
	if !r.alive.Load() && len(r.process.stderr.Bytes()) == 0 {
		r.process.EndSilent()
	}
}

// finish returns the event that ends the turn. Later events are ignored.
func (r *run) finish(x agent.Exit) event.Event {
	r.reading.Lock()
	defer r.reading.Unlock()
	r.over = true
	r.handle(r.decoder.End(x))
	if r.last == nil {
		return Unfinished("", "")
	}
	return *r.last
}

// handle reports events, except the end.
func (r *run) handle(events []event.Event) {
	m := r.mind
	for _, e := range events {
		m.mu.Lock()
		m.id = cmp.Or(e.Session, m.id)
		if e.Kind == event.Started {
			m.model = cmp.Or(e.Model, m.model)
			facts := m.first
			facts.Model = m.model
			e.Facts = &facts
		}
		m.mu.Unlock()
		if e.Kind == event.Ended {
			before := r.last
			if before != nil && e.Synthetic {
				continue // a synthetic end does not replace the agent's own
			}
			end := e
			end.Raw = bytes.Clone(e.Raw) // the original is only valid until the next Feed
			if r.last = &end; before == nil {
				continue
			}
			e = event.Event{Kind: event.Notice, Text: "the agent continued after an end", Raw: before.Raw}
		}
		r.process.Note(e)
		m.services.Tell(e)
	}
}

// completed adds what the agent did not report to the end of a turn: tokens and denials from its records, and the
// reason for a failure.
func (r *run) completed(last event.Event, x agent.Exit, e agent.Evidence) (out []event.Event) {
	end := *last.End
	last.End = &end
	end.Usage = cmp.Or(end.Usage, e.Usage)
	last.Model = cmp.Or(last.Model, e.Model)
	denied := func(o event.Event) bool { return o.Kind == event.Denied }
	if !slices.ContainsFunc(r.process.notes, denied) { // records may have other ids
		for _, d := range e.Denials {
			out = append(out, event.Event{Kind: event.Denied, Denial: &d, Synthetic: true})
		}
	}
	if !end.OK {
		out = append(out, r.process.Failed(x, e, &last))
	}
	return append(out, last)
}

// plainText is the decoder for agents that only print their answer. Of a long one it keeps the beginning and the end.
type plainText struct {
	head    []byte
	tail    process.Tail // of what follows head
	size    int
	partial []byte // the beginning of a character
}

// How much of an answer is kept. The events have all of it.
const (
	headKept = 600 << 10
	tailKept = 400 << 10
)

func (d *plainText) Feed(p []byte) []event.Event {
	d.size += len(p)
	more := p[min(len(p), headKept-len(d.head)):]
	d.head = append(d.head, p[:len(p)-len(more)]...)
	d.tail.Most = tailKept
	_, _ = d.tail.Write(more)
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

func (d *plainText) answer() string {
	tail := d.tail.Bytes()
	if left := d.size - len(d.head) - len(tail); left > 0 {
		return fmt.Sprintf("%s\n[%d bytes are left out here]\n%s", d.head, left, tail)
	}
	return string(d.head) + string(tail)
}

func (d *plainText) End(x agent.Exit) []event.Event {
	text := d.answer()
	end := &event.End{Reason: event.FailedTurn, Text: text}
	if x.Code == 0 && x.EndedBy == "" && strings.TrimSpace(text) != "" {
		end.OK, end.Reason = true, event.Success
	}
	return append(piece(d.partial), event.Event{Kind: event.Ended, Synthetic: true, End: end})
}
