package engine

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
)

// turn is the running turn.
type turn struct {
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when it has ended
	killed chan struct{} // closed by Kill; the turn then waits for no tool

	failed atomic.Pointer[fault.Fault] // see FailTurn

	telling sync.Mutex // held while a call reports an event
	silent  bool       // under telling: its end is reported, so its calls report nothing

	// Under the Mind's lock.
	sealed   bool // it accepts no more steering: further input is a new message
	isKilled bool // killed is closed
}

// errInterrupted is the cause of a turn that the user ended.
var errInterrupted = errors.New("interrupted")

// turnKey is the key of a turn in the contexts of its calls.
type turnKey struct{}

// FailTurn ends the turn of a call, also if a sub-agent made the call: when the calls that run have their results, the
// model is not asked again. ctx is the one that the call's tool got. If that turn is over, nothing happens.
func FailTurn(ctx context.Context, why *fault.Fault) {
	if t, ok := ctx.Value(turnKey{}).(*turn); ok {
		t.failed.CompareAndSwap(nil, why)
	}
}

// TellIn reports an event of a call, unless the turn of the call is over: a killed turn ends before its tools. It
// returns whether it did. ctx is the one that the call's tool got.
func (m *Mind) TellIn(ctx context.Context, e event.Event) bool {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok {
		return false
	}
	t.telling.Lock()
	defer t.telling.Unlock()
	if !t.silent {
		m.tell(e)
	}
	return !t.silent
}

// silence is called before the end of the turn is reported.
func (t *turn) silence() {
	t.telling.Lock()
	defer t.telling.Unlock()
	t.silent = true
}

// Turn answers a message. It returns an error for a message without content, and while another turn runs. Cancelling
// ctx interrupts the turn.
func (m *Mind) Turn(ctx context.Context, message []event.Block) error {
	blocks, err := m.message(message)
	if err != nil {
		return err
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	t := &turn{cancel: cancel, over: make(chan struct{}), killed: make(chan struct{})}
	m.mu.Lock()
	switch {
	case m.closed:
		err = fault.New(fault.Internal, "the conversation is closed")
	case m.turn != nil:
		err = fault.New(fault.LockHeld, "a turn is running")
	default:
		m.turn = t
		if _, alone := asksToShorten(blocks); !alone { // with anything before it, it would be a message
			blocks = append(m.steering, blocks...) // steering that an earlier turn did not deliver comes first
			m.steering = nil
		}
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	defer close(t.over)
	defer func() {
		m.mu.Lock()
		m.turn = nil
		m.mu.Unlock()
	}()
	if ctx.Err() != nil {
		m.interrupt(t)
	}
	detach := context.AfterFunc(ctx, func() { m.interrupt(t) })
	defer detach()
	m.answer(context.WithValue(own, turnKey{}, t), t, blocks)
	return nil
}

// Steer adds input to the turn that runs: the model gets it with the next results, or instead of the end of the turn.
// It returns an error if no turn runs, or the turn has had its last answer.
func (m *Mind) Steer(_ context.Context, message []event.Block) error {
	blocks, err := m.message(message)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn == nil || m.turn.sealed || m.closed {
		return fault.New(fault.NotFoundCode, "no turn is running that could take this")
	}
	m.steering = append(m.steering, blocks...)
	return nil
}

// message converts a message to the blocks that the model gets, without secrets.
func (m *Mind) message(blocks []event.Block) ([]model.Block, error) {
	var message []model.Block
	for _, b := range blocks {
		switch {
		case strings.HasPrefix(b.Media, "image/"):
			message = append(message, model.Block{Kind: model.Image, Media: b.Media, Data: b.Data})
		case b.Media != "":
			message = append(message, model.Block{Kind: model.File, Media: b.Media, Data: b.Data, Name: b.Name})
		case strings.TrimSpace(b.Text) != "":
			// The name says that a host added the text.
			message = append(message, model.Block{
				Kind: model.Text, Name: b.Name, Text: strings.ToValidUTF8(b.Text, "\uFFFD"),
			})
		}
	}
	if len(message) == 0 {
		return nil, fault.New(fault.ArgError, "the message is empty").Hint("say what is to be done")
	}
	return redactBlocks(m.o.Secrets, message), nil
}

// interrupt cancels a turn. The next turn gets the steering that the model has not received, because it was accepted.
func (m *Mind) interrupt(t *turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn == t {
		t.sealed = true
	}
	t.cancel(errInterrupted)
}

// fail ends the turn that runs because a hook demands it.
func (m *Mind) fail(why *stop) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn != nil {
		m.turn.cancel(why)
	}
}

// Kill interrupts the running turn, which then waits for no tool.
func (m *Mind) Kill() {
	m.mu.Lock()
	t := m.turn
	m.mu.Unlock()
	if t != nil {
		m.kill(t)
	}
}

func (m *Mind) kill(t *turn) {
	m.interrupt(t)
	m.mu.Lock()
	defer m.mu.Unlock()
	if !t.isKilled {
		t.isKilled = true
		close(t.killed)
	}
}

// answer runs a turn and reports its end.
//
//	TurnBegan ─▶ respond, or shortenNow ─▶ sealed ─▶ end: Failed if it failed ─▶ Ended
//	     └────── a panic ─▶ recoverTurn: Failed ─▶ Ended
func (m *Mind) answer(ctx context.Context, t *turn, message []model.Block) {
	if m.talk == nil {
		m.talk = newConversation(m.o.History, m.o.Journal)
	}
	l := &loop{
		mind: m, turn: t, talk: m.talk, tools: m.tools, system: m.o.System, journal: m.o.Journal, began: time.Now(),
	}
	m.mu.Lock()
	m.evidence.Fault = nil
	m.mu.Unlock()
	defer m.recoverTurn(t)
	l.tell(event.Event{Kind: event.TurnBegan, Session: m.o.ID})
	var err error
	if wish, ok := asksToShorten(message); ok {
		err = l.shortenNow(ctx, wish)
	} else {
		err = l.respond(ctx, message)
	}
	m.mu.Lock()
	t.sealed = true // however it ended
	m.mu.Unlock()
	t.silence()
	end := l.end(ctx, err)
	if err != nil && m.o.Journal != nil {
		// Read it from the journal again: without what could not be recorded, and with a result for each call.
		m.talk = nil
	}
	m.mu.Lock()
	m.evidence.Usage, m.evidence.Model = end.Usage, l.model
	if l.asked > 0 {
		m.evidence.Answered = agent.Yes
	}
	m.mu.Unlock()
	l.tell(event.Event{Kind: event.Ended, Session: m.o.ID, Model: l.model, End: end})
}

// respond records a message and runs the loop.
func (l *loop) respond(ctx context.Context, message []model.Block) error {
	message, err := l.admit(ctx, message)
	if err == nil {
		err = l.keep(model.Message{Role: model.User, Blocks: message}, nil)
	}
	if err == nil {
		err = l.run(ctx)
	}
	return err
}

// recoverTurn ends a turn that panics: it reports the end, and everything that the turn started ends in order.
func (m *Mind) recoverTurn(t *turn) {
	r := recover()
	if r == nil {
		return
	}
	f := plainFault(m.o.Secrets, fault.New(fault.Internal, "the turn failed inside: %v", r))
	m.mu.Lock()
	t.sealed, m.evidence.Fault = true, f
	m.mu.Unlock()
	t.silence()
	if m.o.Journal != nil {
		m.talk = nil
	}
	m.tell(event.Event{Kind: event.Failed, Fault: f, Terminal: true, Synthetic: true})
	end := &event.End{Reason: event.FailedTurn}
	m.tell(event.Event{Kind: event.Ended, Session: m.o.ID, Synthetic: true, End: end})
}

// end returns how the turn ended. If it failed, it reports the fault.
func (l *loop) end(ctx context.Context, err error) *event.End {
	end := &event.End{
		OK: err == nil, Text: l.last, Reason: event.Success, Turns: &l.asked, Took: time.Since(l.began),
		Asking: l.asking, Notes: l.notes,
	}
	if err == nil && l.given != nil {
		end.Structured = l.given
		end.Text = cmp.Or(end.Text, string(l.given))
	}
	if l.usage != (model.Usage{}) {
		end.Usage = l.used()
	}
	var s *stop
	switch cause := context.Cause(ctx); {
	case err == nil:
		return end
	case errors.Is(cause, errInterrupted):
		end.Reason = event.Cancelled
		return end
	case errors.As(cause, &s): // a hook has ended it
		err = s
	case errors.As(err, &s) && s.fault == nil:
		end.Reason = s.reason
		return end
	}
	end.Reason = event.FailedTurn
	f := plainFault(l.mind.o.Secrets, faultOf(err))
	l.mind.mu.Lock()
	l.mind.evidence.Fault = f
	l.mind.mu.Unlock()
	l.tell(event.Event{Kind: event.Failed, Fault: f, Terminal: true})
	return end
}

// used returns what the turn has cost so far.
func (l *loop) used() *event.Usage {
	used := usageOf(l.usage)
	if !l.unknown {
		used.CostUSD = new(l.cost)
	}
	return used
}
