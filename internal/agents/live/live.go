// Package live drives an agent whose process stays for many turns. An Agent says how it is started, and its Proto
// translates between its wire and the events of a conversation; NewMind owns the process.
//
// RPC and Questions are the parts that several Protos share. A Proto does no I/O.
package live

import (
	"cmp"
	"context"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// Agent describes an agent whose process lasts for many turns.
type Agent struct {
	Driver    agent.Driver
	Abilities agent.Abilities
	// Launch returns the program and its arguments for a conversation. It refuses terms that the agent cannot keep. It
	// is also called as a check: before anything is started, and before a change that the next start would use.
	Launch func(agent.Spec) (agent.Launch, error)
	// Proto returns the wire for one process of the conversation.
	Proto func(agent.Spec, agent.Launch) Proto
}

const (
	killAfter    = 500 * time.Millisecond // from Kill's signal to the kill
	settleWithin = 10 * time.Second       // for an agent's answer to a change
)

// NewMind returns a Mind for an agent whose process lasts for many turns. The first Turn starts the process.
//
// One goroutine owns the state. Another passes events on, in order, so that the first never waits for their receiver.
// The process waits until the events from its output have been passed on.
//
//	          Turn               Turn, Ended (any number)
//	no process ──► a process runs ──────────┐
//	    ▲               │  ▲                │
//	    │               │  └────────────────┘
//	    │               │ Kill, Close, an ignored interruption, Connect timeout, exit
//	    │               ▼
//	    └────────── it is leaving: a Turn waits until it is gone, and restarts it
//
// When a process dies, its turn ends with a Failed that says why and a synthetic Ended. The next Turn restarts the
// agent with the session that it had. If the agent ignores an interruption for the grace period, it gets a signal.
func NewMind(l Agent, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	if s.Temp == "" {
		return nil, fault.New(fault.Internal, "a conversation needs a private directory")
	}
	if _, err := l.Launch(s); err != nil {
		return nil, err
	}
	sv.Grace = cmp.Or(sv.Grace, cli.DefaultGrace)
	life, end := context.WithCancel(context.Background())
	m := &mind{
		Agent: l, services: sv, first: cli.FirstFacts(l.Driver, s), life: life, endLife: end,
		inbox: make(chan func()), over: make(chan struct{}), spec: s, id: s.Resume, pending: map[int]*pending{},
	}
	if s.Terms.Fork {
		m.id = "" // a fork gets a new id
	}
	m.facts = m.first
	go m.run()
	return m, nil
}

// mind is the Mind of an agent whose process lasts for many turns.
type mind struct {
	Agent
	services agent.Services
	first    event.Facts
	life     context.Context // context for requests to the host
	endLife  context.CancelFunc
	inbox    chan func()   // functions for the loop to call
	over     chan struct{} // closed when the loop has ended

	// Owned by the loop.
	spec    agent.Spec // for the next start
	facts   event.Facts
	id      string // the agent's own session id
	process *running
	turn    *liveTurn // the current turn; it may wait for the end of the previous process
	pending map[int]*pending
	token   int
	closed  bool
	done    bool     // closed, and no process runs
	queue   []func() // events to pass on
	files   []agent.File
	outcome agent.Outcome
}

// liveTurn is a message and the caller that waits for its end.
type liveTurn struct {
	message []event.Block
	waits   bool // for the end of the previous process
	ended   chan error
}

// pending is a command that the agent has not accepted yet.
type pending struct {
	change  agent.Change
	settled chan error
}

// run is the loop.
func (m *mind) run() {
	tell, finished := make(chan []func()), make(chan struct{})
	go func() {
		defer close(finished)
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
	<-finished
	close(m.over)
}

// do runs f in the loop. It reports false if the loop has ended.
func (m *mind) do(f func()) bool {
	ran := make(chan struct{})
	select {
	case m.inbox <- func() { defer close(ran); f() }:
		<-ran
		return true
	case <-m.over:
		return false
	}
}

// after runs f in the loop after d.
func (m *mind) after(d time.Duration, f func()) *time.Timer {
	return time.AfterFunc(d, func() { m.do(f) })
}

// put queues an event.
func (m *mind) put(e event.Event) { m.enqueue(func() { m.services.Tell(e) }) }

// enqueue queues f after the queued events.
func (m *mind) enqueue(f func()) { m.queue = append(m.queue, f) }

func (m *mind) Abilities() agent.Abilities { return m.Agent.Abilities }
func (m *mind) Facts() event.Facts         { return m.first }

func errClosed() error { return fault.New(fault.Internal, "the conversation is closed") }

// Turn starts the agent if necessary, passes it the message, and waits for the end of the turn.
func (m *mind) Turn(ctx context.Context, message []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := cli.CheckMessage(m.Driver, m.first.Version, message); err != nil {
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

// begin runs in the loop, as does everything that follows except the methods of Mind.
func (m *mind) begin(t *liveTurn) error {
	switch {
	case m.closed:
		return errClosed()
	case m.turn != nil:
		return fault.New(fault.Internal, "another turn is still running")
	case m.process != nil && m.process.leaving:
		t.waits = true
		m.turn = t
		return nil
	}
	return m.send(t)
}

// send passes the message to the agent.
func (m *mind) send(t *liveTurn) error {
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
	m.process.BeginTurn()
	m.take(m.process, step)
	return nil
}

// interrupt asks the agent to end the turn. If the agent ignores that for the grace period, it gets a signal.
func (m *mind) interrupt(t *liveTurn, why error) {
	p := m.process
	switch {
	case m.turn != t: // the turn has ended
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
	if err != nil { // the protocol cannot interrupt
		p.end("SIGINT")
		return
	}
	m.take(p, step)
}

// Kill ends the process.
func (m *mind) Kill() {
	m.do(func() {
		if p := m.process; p != nil && p.works {
			p.end("SIGINT")
			m.after(killAfter, p.kill)
		}
	})
}

// Steer adds a message to the current turn, and waits until the agent has accepted or refused it. Once the message was
// sent, ctx does not end the wait: the message could still reach the turn, and the caller would send it again.
func (m *mind) Steer(ctx context.Context, message []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := cli.CheckMessage(m.Driver, m.first.Version, message); err != nil {
		return err
	}
	w, err := &pending{settled: make(chan error, 1)}, errClosed()
	m.do(func() {
		if m.turn == nil || m.turn.waits || m.process.leaving {
			err = fault.New(fault.NotFoundCode, "%s has no running turn that could get the message",
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

// Set changes the mode or the model. It waits for the agent's answer; if that comes late, it is still reported as
// Changed.
func (m *mind) Set(ctx context.Context, c agent.Change) error {
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

func (m *mind) set(w *pending) error {
	if m.closed {
		return errClosed()
	}
	if m.process != nil && !m.process.leaving {
		return m.request(w, Command{Change: &w.change})
	}
	if _, err := m.Launch(changed(m.spec, w.change)); err != nil { // check it for the next start
		return err
	}
	m.settle(w, nil)
	return nil
}

// request sends a command that the agent has to accept.
func (m *mind) request(w *pending, c Command) error {
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

// settle ends the wait for a command. It first reports a successful change, even if nobody waits any more.
func (m *mind) settle(w *pending, err error) {
	if err == nil && w.change != (agent.Change{}) {
		m.spec = changed(m.spec, w.change)
		m.tellFacts(event.Facts{Mode: w.change.Mode, Model: w.change.Model})
	}
	m.enqueue(func() { w.settled <- err })
}

func changed(s agent.Spec, c agent.Change) agent.Spec {
	s.Terms.Mode = cmp.Or(c.Mode, s.Terms.Mode)
	if c.Model != "" {
		s.Shared.Model = setting.AsTyped(c.Model)
	}
	return s
}

// Answer answers a question by its id.
func (m *mind) Answer(r event.Reply) error {
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

// Close ends the turn, if one runs, and the process. An idle agent only gets the end of its input.
func (m *mind) Close(ctx context.Context) (agent.Outcome, error) {
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
	cli.RemoveFiles(m.files)
	return m.outcome, nil
}
