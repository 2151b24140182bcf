package cli

import (
	"context"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// Live is what a driver says of an agent whose process stays for many turns.
type Live struct {
	Driver    agent.Driver
	Abilities agent.Abilities
	// Launch is the program and its arguments for a conversation. It refuses what the agent cannot keep. It is also
	// asked before anything is started, and before a change that the next start would take.
	Launch func(agent.Spec) (agent.Launch, error)
	// Proto is the wire of one process of that conversation.
	Proto func(agent.Spec) Proto
}

const (
	defaultGrace = 5 * time.Second
	killAfter    = 500 * time.Millisecond // from the signal of Kill to the kill
	settleWithin = 10 * time.Second       // until an agent has said whether a change holds
)

// LiveMind prepares a conversation with an agent whose process stays for many turns. The process is started by the
// first Turn.
//
// One goroutine owns the state. Another tells the events, in order, so that the first never waits for who listens; the
// process waits until what it printed was told.
//
//	          Turn               Turn, Ended (any number)
//	no process ──► a process runs ──────────┐
//	    ▲               │  ▲                │
//	    │               │  └────────────────┘
//	    │               │ Kill, Close, an interruption that was ignored, Connect passed, it dies
//	    │               ▼
//	    └────────── it leaves: a Turn waits until it is gone, and starts it anew
//
// A process that dies takes its turn with it: a Failed says why, and an Ended of our own follows. The next Turn starts
// the agent anew with the session it had. An interruption that the agent ignores for the grace becomes a signal.
func LiveMind(l Live, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	if s.Temp == "" {
		return nil, fault.New(fault.Internal, "a conversation needs a private directory")
	}
	if _, err := l.Launch(s); err != nil {
		return nil, err
	}
	if sv.Grace == 0 {
		sv.Grace = defaultGrace
	}
	life, end := context.WithCancel(context.Background())
	m := &live{
		Live: l, services: sv, first: factsOf(l.Driver, s), life: life, endLife: end,
		inbox: make(chan func()), over: make(chan struct{}), spec: s, id: s.Resume, pending: map[int]*pending{},
	}
	if s.Terms.Fork {
		m.id = "" // the copy has another
	}
	m.facts = m.first
	go m.run()
	return m, nil
}

// factsOf is what is known of a conversation before the agent has said anything.
func factsOf(d agent.Driver, s agent.Spec) event.Facts {
	return event.Facts{
		Agent: d.Name(), Version: s.Install.Version, Model: s.Shared.Model.Value, Mode: ModeOf(s), Dir: s.Dir,
	}
}

// ModeOf is the mode that a conversation begins in.
func ModeOf(s agent.Spec) setting.Approval {
	switch {
	case s.Terms.Mode != "":
		return s.Terms.Mode
	case s.Shared.Approval.Value != "":
		return s.Shared.Approval.Value
	}
	return setting.Prompt
}

// live is the Mind.
type live struct {
	Live
	services agent.Services
	first    event.Facts
	life     context.Context // of what hosts are asked
	endLife  context.CancelFunc
	inbox    chan func()   // for the loop
	over     chan struct{} // closed when the loop has ended

	// The rest belongs to the loop.
	spec    agent.Spec // as the next start would have it
	facts   event.Facts
	id      string // the agent's own
	process *running
	turn    *liveTurn // the one that runs, or waits for the process before to be gone
	pending map[int]*pending
	token   int
	closed  bool
	done    bool     // closed, and no process runs
	queue   []func() // what is to be told
	files   []agent.File
	outcome agent.Outcome
}

// liveTurn is a message and who waits for its end.
type liveTurn struct {
	message []event.Block
	waits   bool // for the process before to be gone
	ended   chan error
}

// pending is a command that the agent has yet to accept.
type pending struct {
	change  agent.Change
	settled chan error
}

// run is the loop.
func (m *live) run() {
	tell, told := make(chan []func()), make(chan struct{})
	go func() {
		defer close(told)
		for batch := range tell {
			for _, f := range batch {
				f()
			}
		}
	}()
	for !m.done {
		var out chan<- []func()
		if len(m.queue) > 0 {
			out = tell
		}
		select {
		case f := <-m.inbox:
			f()
		case out <- m.queue:
			m.queue = nil
		}
	}
	tell <- m.queue
	close(tell)
	<-told
	close(m.over)
}

// do runs f in the loop. It says whether the loop still ran.
func (m *live) do(f func()) bool {
	ran := make(chan struct{})
	select {
	case m.inbox <- func() { defer close(ran); f() }:
		<-ran
		return true
	case <-m.over:
		return false
	}
}

// after runs f in the loop when d has passed.
func (m *live) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { m.do(f) })
}

// put queues an event.
func (m *live) put(e event.Event) { m.then(func() { m.services.Tell(e) }) }

// then queues f behind the events that are queued already.
func (m *live) then(f func()) { m.queue = append(m.queue, f) }

func (m *live) Abilities() agent.Abilities { return m.Live.Abilities }
func (m *live) Facts() event.Facts         { return m.first }

func errClosed() error { return fault.New(fault.Internal, "the conversation is closed") }

// Turn hands the message to the agent, which is started if it does not run, and waits for the end.
func (m *live) Turn(ctx context.Context, message []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := fits(m.Driver, m.first.Version, message); err != nil {
		return err
	}
	t := &liveTurn{message: message, ended: make(chan error, 1)}
	err := errClosed()
	m.do(func() { err = m.begin(t) })
	if err != nil {
		return err
	}
	select {
	case err = <-t.ended:
		return err
	case <-ctx.Done():
		m.do(func() { m.interrupt(t, ctx.Err()) })
		return <-t.ended
	}
}

// begin belongs to the loop, as all that follows but for the methods of Mind.
func (m *live) begin(t *liveTurn) error {
	switch {
	case m.closed:
		return errClosed()
	case m.turn != nil:
		return fault.New(fault.Internal, "a turn runs already")
	case m.process != nil && m.process.leaving:
		t.waits = true
		m.turn = t
		return nil
	}
	return m.hand(t)
}

// hand gives the message to the agent.
func (m *live) hand(t *liveTurn) error {
	if m.process == nil {
		if err := m.start(); err != nil {
			return err
		}
	}
	step, err := m.process.proto.Do(Command{Message: t.message})
	if err != nil {
		return err
	}
	m.turn, t.waits, m.process.works = t, false, true
	m.process.notes = nil
	m.take(m.process, step)
	return nil
}

// interrupt asks the agent to end the turn. What the agent ignores for the grace becomes a signal.
func (m *live) interrupt(t *liveTurn, why error) {
	p := m.process
	switch {
	case m.turn != t: // it has ended
		return
	case t.waits:
		m.turn = nil
		t.ended <- why
		return
	case p.leaving:
		return
	}
	p.hurried = m.after(m.services.Grace, func() {
		if m.process == p && m.turn == t {
			p.end("SIGINT")
		}
	})
	step, err := p.proto.Do(Command{Interrupt: true})
	if err != nil { // the wire has no word for it
		p.end("SIGINT")
		return
	}
	m.take(p, step)
}

// Kill ends the process.
func (m *live) Kill() {
	m.do(func() {
		if p := m.process; p != nil && p.works {
			p.end("SIGINT")
			m.after(killAfter, p.kill)
		}
	})
}

// Steer says something to the turn that runs, and waits until the agent says that the turn has it or has not. Once it
// was sent, ctx does not end the wait: it could still reach the turn, and would be said twice.
func (m *live) Steer(ctx context.Context, message []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := fits(m.Driver, m.first.Version, message); err != nil {
		return err
	}
	w, err := &pending{settled: make(chan error, 1)}, errClosed()
	m.do(func() {
		if m.turn == nil || m.turn.waits || m.process.leaving {
			err = fault.New(fault.NotFoundCode, "no turn of %s runs that could get the message",
				m.Driver.Describe().Title)
			return
		}
		err = m.request(w, Command{Steer: message})
	})
	if err != nil {
		return err
	}
	return <-w.settled
}

// Set changes what holds from now on. It waits for the agent's answer; one that comes too late is told as Changed all
// the same.
func (m *live) Set(ctx context.Context, c agent.Change) error {
	w, err := &pending{change: c, settled: make(chan error, 1)}, errClosed()
	m.do(func() { err = m.set(w) })
	if err != nil {
		return err
	}
	late := time.NewTimer(settleWithin)
	defer late.Stop()
	select {
	case err := <-w.settled:
		return err
	case <-late.C:
		return fault.New(fault.TimedOut, "%s did not say within %s whether it changed",
			m.Driver.Describe().Title, settleWithin)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *live) set(w *pending) error {
	if m.closed {
		return errClosed()
	}
	if m.process != nil && !m.process.leaving {
		return m.request(w, Command{Change: &w.change})
	}
	if _, err := m.Launch(changed(m.spec, w.change)); err != nil { // the next start takes it
		return err
	}
	m.settle(w, nil)
	return nil
}

// request sends a command that the agent has to accept.
func (m *live) request(w *pending, c Command) error {
	m.token++
	c.Token = m.token
	step, err := m.process.proto.Do(c)
	if err != nil {
		return err
	}
	m.pending[c.Token] = w
	m.take(m.process, step)
	return nil
}

// settle ends the wait for a command. A change that holds is told first, also when nobody waits any more.
func (m *live) settle(w *pending, err error) {
	if err == nil && w.change != (agent.Change{}) {
		m.spec = changed(m.spec, w.change)
		m.tellFacts(event.Facts{Mode: w.change.Mode, Model: w.change.Model})
	}
	m.then(func() { w.settled <- err })
}

func changed(s agent.Spec, c agent.Change) agent.Spec {
	if c.Mode != "" {
		s.Terms.Mode = c.Mode
	}
	if c.Model != "" {
		s.Shared.Model = typed(c.Model)
	}
	return s
}

// Answer answers a question, by the id under which it was told.
func (m *live) Answer(r event.Reply) error {
	err := errClosed()
	m.do(func() {
		if m.process == nil {
			err = fault.New(fault.NotFoundCode, "there is no open question %s", r.Question)
			return
		}
		var step Step
		if step, err = m.process.proto.Do(Command{Answer: &r}); err == nil {
			m.take(m.process, step)
		}
	})
	return err
}

// Close ends the turn, if one runs, and the process. An agent with nothing to do is only told that nothing more will
// come.
func (m *live) Close(ctx context.Context) (agent.Outcome, error) {
	var p *running
	m.do(func() {
		m.closed = true
		if t := m.turn; t != nil && t.waits {
			m.turn = nil
			t.ended <- errClosed()
		}
		switch p = m.process; {
		case p == nil:
			m.done = true
		case p.works:
			p.end("SIGTERM")
		default:
			p.leave()
		}
	})
	if p != nil {
		defer context.AfterFunc(ctx, func() { m.do(p.kill) })()
	}
	<-m.over
	m.endLife()
	RemoveFiles(m.files)
	return m.outcome, nil
}
