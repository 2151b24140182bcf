//go:build unix

package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/session"
)

// wish is what a law wants from a conversation.
type wish struct {
	mode     setting.Approval // empty: everything runs
	grace    time.Duration    // 0: five seconds
	patience time.Duration    // for an answer; 0: that of a conversation
	mute     bool             // nobody answers questions
	in       *place           // nil: a fresh one
	resume   string           // the conversation to go on with
}

// side drives a conversation, directly or through a host.
type side interface {
	id() string
	send(text string) error
	steer(text string) (reached bool, err error)
	answer(ask event.Ask, option string) error
	set(agent.Change) error
	interrupt(drop bool) error
	// close ends the conversation in order and returns when it is over.
	close() error
	// next is a reader of the journal from the first record.
	next() func(context.Context) (event.Event, error)
}

// errCannot means that the protocol of a host cannot express it.
var errCannot = errors.New("the protocol of this host has no word for it")

// talk is a conversation that a law is tried on, with its journal.
type talk struct {
	side
	t *testing.T
	s Subject
	p *place
	w wish

	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	heard  []event.Event
	grew   chan struct{} // closed, and replaced, when an entry came
	failed error
	at     int // until has read so far
	closed bool
	slim   bool // texts are not kept
}

// patience is how long is waited for what takes milliseconds on a machine that does nothing else.
const patience = 20 * time.Second

// open opens a conversation with the subject.
func (s Subject) open(t *testing.T, w wish) *talk {
	t.Helper()
	if w.in == nil {
		w.in = newPlace(t, s)
	}
	if w.mode == "" {
		w.mode = setting.Yolo
	}
	if w.grace == 0 {
		w.grace = 5 * time.Second
	}
	k := &talk{t: t, s: s, p: w.in, w: w, grew: make(chan struct{}), done: make(chan struct{})}
	k.side = s.Host.open(t, s, w)
	var ctx context.Context
	ctx, k.stop = context.WithCancel(context.Background())
	go k.read(ctx)
	t.Cleanup(func() { k.end() })
	if w.resume != "" {
		last := k.entries(1)
		k.when("what was recorded", func(all []event.Event) bool {
			return lastEvent(last) == 0 || len(all) > 0 && all[len(all)-1].Seq >= lastEvent(last)
		})
	}
	return k
}

// end closes the conversation and reads what is left.
func (k *talk) end() {
	k.t.Helper()
	k.mu.Lock()
	closed := k.closed
	k.closed = true
	k.mu.Unlock()
	if !closed {
		if err := k.close(); err != nil {
			k.t.Errorf("close: %v", err)
		}
	}
	time.AfterFunc(patience, k.stop) // a journal that is closed ends by itself
	<-k.done
	k.stop()
}

// read follows the journal until it is over.
func (k *talk) read(ctx context.Context) {
	defer close(k.done)
	next := k.next()
	for {
		e, err := next(ctx)
		k.mu.Lock()
		if err == nil && k.slim && e.Kind == event.Text {
			k.mu.Unlock()
			continue
		}
		if err == nil {
			k.heard = append(k.heard, e)
		} else if !errors.Is(err, io.EOF) && ctx.Err() == nil {
			k.failed = err
		}
		close(k.grew)
		k.grew = make(chan struct{})
		k.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// events returns the events of the journal so far.
func (k *talk) events() []event.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.heard)
}

// when waits until the events so far have what is looked for.
func (k *talk) when(what string, found func([]event.Event) bool) []event.Event {
	k.t.Helper()
	limit := patience
	if k.s.installed || k.slim {
		limit *= 4 // some of them take seconds to start, and so does a flood
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		k.mu.Lock()
		grew := k.grew
		k.mu.Unlock()
		all := k.events()
		if found(all) {
			return all
		}
		select {
		case <-grew:
		case <-k.done:
			if all = k.events(); found(all) {
				return all
			}
			k.t.Fatalf("the conversation is over without %s (%v):\n%s", what, k.failed, told(all))
		case <-over.C:
			k.t.Fatalf("no %s in %v:\n%s", what, limit, told(k.events()))
		}
	}
}

// until returns the next event that matches, after the last one that it returned.
func (k *talk) until(what string, match func(event.Event) bool) (e event.Event) {
	k.t.Helper()
	k.when(what, func(all []event.Event) bool {
		for i := k.at; i < len(all); i++ {
			if match(all[i]) {
				e, k.at = all[i], i+1
				return true
			}
		}
		return false
	})
	return e
}

// untilKind returns the next event of that kind.
func (k *talk) untilKind(kind event.Kind) event.Event {
	k.t.Helper()
	return k.until(string(kind), func(e event.Event) bool { return e.Kind == kind })
}

// say sends a message and returns the number of its turn, as the journal tells it.
func (k *talk) say(parts ...string) int64 {
	k.t.Helper()
	text := task(parts...)
	before := len(k.prompts(text))
	if err := k.send(text); err != nil {
		k.t.Fatalf("%s: %v", text, err)
	}
	var turn int64
	k.when("the record of "+text, func([]event.Event) bool {
		all := k.prompts(text)
		if len(all) > before {
			turn = all[before].Turn
		}
		return turn != 0
	})
	return turn
}

// prompts returns the accepted messages with that text.
func (k *talk) prompts(text string) (all []event.Event) {
	for _, e := range k.events() {
		if e.Kind == event.Prompted && strings.Contains(textOf(e.Blocks), text) {
			all = append(all, e)
		}
	}
	return all
}

func textOf(blocks []event.Block) string {
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Text)
	}
	return b.String()
}

// endOf waits for the end of a turn.
func (k *talk) endOf(turn int64) event.Event {
	k.t.Helper()
	var end event.Event
	k.when(fmt.Sprintf("end of turn %d", turn), func(all []event.Event) bool {
		for _, e := range all {
			if e.Kind == event.Ended && e.Turn == turn {
				end = e
				return true
			}
		}
		return false
	})
	return end
}

// ends returns the ends so far, as turn and reason, in order.
func (k *talk) ends() (all []string) {
	for _, e := range k.events() {
		if e.Kind == event.Ended {
			all = append(all, fmt.Sprintf("%d %s", e.Turn, e.End.Reason))
		}
	}
	return all
}

// working waits until the turn does something that lasts.
func (k *talk) working(turn int64) {
	k.t.Helper()
	if k.s.installed { // some tell of an answer when all of it is there
		k.asked(turn)
		return
	}
	k.when(fmt.Sprintf("work of turn %d", turn), func(all []event.Event) bool {
		for _, e := range all {
			if e.Turn == turn && (e.Kind == event.Text || e.Kind == event.ToolCall) {
				return true
			}
		}
		return false
	})
}

// asked waits until the model got the message of a turn.
func (k *talk) asked(turn int64) {
	k.t.Helper()
	message := ""
	for _, e := range k.events() {
		if e.Kind == event.Prompted && e.Turn == turn {
			message = textOf(e.Blocks)
		}
	}
	for over := time.Now().Add(4 * patience); ; time.Sleep(10 * time.Millisecond) {
		for _, r := range k.p.model.Requests() {
			if lastTask(&r) != "" && strings.Contains(lastTask(&r), message) {
				return
			}
		}
		if time.Now().After(over) {
			k.t.Fatalf("the model is never sent %q", message)
		}
	}
}

// text returns the text of a turn, as whole texts.
func (k *talk) text(turn int64) string {
	var b strings.Builder
	for _, e := range k.events() {
		if e.Kind == event.Text && !e.Delta && e.Turn == turn && e.Parent == "" {
			b.WriteString(e.Text)
		}
	}
	return b.String()
}

// equal compares lists.
func (k *talk) equal(what string, got, want []string) {
	k.t.Helper()
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		k.t.Errorf("%s: %q, want %q\n%s", what, got, want, told(k.events()))
	}
}

// told renders events, and shortens long ones.
func told(all []event.Event) string {
	var b strings.Builder
	from := max(0, len(all)-60)
	for _, e := range all[from:] {
		data, _ := json.Marshal(e)
		fmt.Fprintf(&b, "%d %d %.300s\n", e.Seq, e.Turn, data)
	}
	return b.String()
}

// lastEvent returns the number of the last record with an event.
func lastEvent(all []session.Entry) (n int64) {
	for _, e := range all {
		if e.Event() != nil {
			n = e.Number
		}
	}
	return n
}
