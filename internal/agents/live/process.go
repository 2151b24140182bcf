package live

import (
	"cmp"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// running is one process of a live Mind. Except for the streams, it is owned by the loop.
type running struct {
	cli.Process
	mind  *mind
	proto Proto
	out   outbox

	leaving bool // it was asked to exit, or is exiting
	over    bool // its output is ignored
	ready   bool // it has answered the greeting
	works   bool // it is working on a message, or on a turn that no message began
	begun   bool // it has reported its session
	connect *time.Timer
	hurried *time.Timer // timer of an interruption
}

// start starts the agent.
func (m *mind) start() error {
	standby := m.services.Standby
	if standby == nil && m.services.WithWalls == nil {
		standby = process.Prepare(m.services.OwnPIDs) // takes about as long as the preparations below
		defer standby.Dismiss()
	}
	spec := m.spec
	if m.id != "" {
		spec.Resume = m.id
	}
	launch, err := m.Launch(spec)
	if err != nil {
		return err
	}
	p := &running{
		Process: cli.Process{Driver: m.Driver, Services: m.services, Env: m.spec.Env},
		mind:    m, proto: m.Proto(spec, launch),
	}
	p.out.changed = sync.NewCond(&p.out.mu)
	m.files = append(m.files, launch.Files...)
	plan := process.Plan{Standby: standby, Stdin: &p.out, Stdout: p}
	if err := p.Start(launch, plan, agent.Beginning{Protocol: true}); err != nil {
		return err
	}
	m.process = p
	if limit := m.services.Connect; limit > 0 {
		p.connect = m.after(limit, func() {
			if !p.ready && !p.leaving {
				p.leaving = true
				p.EndSilent()
			}
		})
	}
	m.take(p, p.proto.Begin())
	go p.wait()
	return nil
}

// Write receives the output of the agent. It blocks until all events from it have been passed on.
func (p *running) Write(data []byte) (int, error) {
	passedOn := make(chan struct{})
	running := p.mind.do(func() {
		defer p.mind.enqueue(func() { close(passedOn) })
		if p.over {
			return
		}
		p.mind.take(p, p.proto.Feed(data))
		if !p.ready && p.proto.Ready() {
			p.ready = true
			stop(p.connect)
		}
	})
	if running {
		<-passedOn
	}
	return len(data), nil
}

func stop(t *time.Timer) {
	if t != nil {
		t.Stop()
	}
}

// take carries out a step.
func (m *mind) take(p *running, step Step) {
	for _, line := range step.Lines {
		p.out.put(line)
	}
	now := m.facts
	p.proto.AddFacts(&now)
	if slices.ContainsFunc(step.Events, func(e event.Event) bool { return e.Kind == event.Started }) {
		m.adopt(now) // this event reports them
	} else {
		m.tellFacts(now)
	}
	for _, s := range step.Results {
		if w := m.pending[s.Token]; w != nil {
			delete(m.pending, s.Token)
			m.settle(w, s.Err)
		}
	}
	for _, e := range step.Events {
		m.handle(p, e)
	}
	for _, n := range step.Needs {
		go m.answerNeed(p, n)
	}
}

// tellFacts reports the facts that have changed.
func (m *mind) tellFacts(now event.Facts) {
	if change, different := difference(m.facts, now); different {
		m.adopt(change)
		m.put(event.Event{Kind: event.Changed, Session: m.id, Facts: &change})
	}
}

// adopt records the facts that are set. The next start uses the mode.
func (m *mind) adopt(change event.Facts) {
	m.facts.Merge(change)
	if change.Mode != "" && change.Mode != cli.ModeOf(m.spec) {
		m.spec.Terms.Mode = change.Mode
	}
}

// handle handles an event from the wire.
func (m *mind) handle(p *running, e event.Event) {
	if e.Session != "" && (e.Session != m.id || !p.begun) { // a new process resumes this session from now on
		m.id, p.begun = e.Session, true
		m.spec.Terms.Continue, m.spec.Terms.Fork, m.spec.Fresh = false, false, ""
	}
	switch e.Kind {
	case event.Started:
		e.Facts = new(m.facts)
	case event.TurnBegan:
		p.works = true
	case event.Ended:
		if m.services.WithWalls != nil { // the mounts of its own sandbox are gone, ours remain
			p.Tidy()
		}
		m.ended(p, e)
		return
	}
	p.Note(e)
	m.put(e)
}

// ended ends the turn of the message, or a turn that no message began.
func (m *mind) ended(p *running, e event.Event) {
	t := m.turn
	if t != nil && t.waits {
		t = nil
	}
	if e.Unprompted = e.Unprompted || t == nil; e.Unprompted {
		p.works = t != nil
		m.put(e)
		return
	}
	p.works, m.turn = false, nil
	stop(p.hurried)
	p.hurried = nil
	m.put(e)
	m.enqueue(func() { t.ended <- nil })
}

// answerNeed passes a request to the host. Close does not wait for a host that ignores its context.
func (m *mind) answerNeed(p *running, n Need) {
	met := &HostAnswer{Need: n.ID}
	switch {
	case n.Moment != nil && m.services.Hook != nil:
		met.HookAnswer = m.services.Hook(m.life, *n.Moment)
	case n.Chore != "" && m.services.Chore != nil:
		met.Result, met.Err = m.services.Chore(m.life, n.Chore, n.Message)
	case n.Chore != "":
		met.Err = fault.New(fault.Unsupported, "%s is not supported", n.Chore)
	case n.Moment == nil && m.services.Serve != nil:
		met.Message, met.Err = m.services.Serve(m.life, n.Server, n.Message)
	case n.Moment == nil:
		met.Err = fault.New(fault.NotFoundCode, "there is no MCP server %s", n.Server)
	}
	m.do(func() {
		if p.over {
			return
		}
		if step, err := p.proto.Do(Command{HostAnswer: met}); err == nil {
			m.take(p, step)
		}
	})
}

// wait waits for the end of the process, and reads its records.
func (p *running) wait() {
	x := p.Wait()
	p.out.close()
	p.mind.do(func() { x.Session = p.mind.id })
	evidence := p.After(x)
	p.mind.do(func() { p.mind.exited(p, x, evidence) })
}

// exited ends the work of the process, and starts a turn that waited for the exit.
func (m *mind) exited(p *running, x agent.Exit, e agent.Evidence) {
	p.leaving = true
	stop(p.connect)
	stop(p.hurried)
	m.lastEvents(p, x, e)
	p.over = true
	for token, w := range m.pending {
		delete(m.pending, token)
		m.settle(w, fault.New(fault.AgentFailed, "%s ended before it answered", m.Driver.Describe().Title))
	}
	e.Session = cmp.Or(e.Session, m.id)
	m.outcome = agent.Outcome{Exit: x, Evidence: e}
	m.process, m.done = nil, m.closed
	if !p.begun {
		m.spec.Fresh = "" // the id may be taken
	}
	if t := m.turn; t != nil { // it waited for the exit
		m.turn = nil
		if err := m.send(t); err != nil {
			t.ended <- err
		}
	}
}

// lastEvents reports how a process ended, and ends its turn.
func (m *mind) lastEvents(p *running, x agent.Exit, e agent.Evidence) {
	var last *event.Event
	failed := false
	for _, e := range p.proto.End(x) {
		switch {
		case e.Kind != event.Ended:
			failed = failed || e.Kind == event.Failed && e.Terminal
			m.handle(p, e)
		case last == nil || !e.Synthetic: // a synthetic end does not replace the agent's own
			last = &e
		}
	}
	if !p.works {
		if !m.closed {
			text := "the agent's process has ended; the next message restarts it"
			m.put(event.Event{Kind: event.Notice, Session: m.id, Text: text, Synthetic: true})
		}
		return
	}
	if last == nil {
		last = new(cli.Unfinished("", ""))
	}
	if last.Synthetic {
		if reason := p.Failed(x, e, last); !failed {
			m.put(reason)
		}
	}
	last.Session = cmp.Or(last.Session, m.id)
	m.ended(p, *last)
}

// end asks the process to end, and kills it after the grace period or on a second call.
func (p *running) end(why string) {
	p.leaving = true
	p.End(why, syscall.SIGTERM)
}

func (p *running) kill() {
	p.leaving = true
	p.End("SIGKILL", os.Kill)
}

// leave lets the process exit by itself, within the grace period.
func (p *running) leave() {
	p.leaving = true
	p.out.close()
	p.mind.after(p.mind.services.Grace, func() {
		if !p.over {
			p.end("SIGTERM")
		}
	})
}

// outbox is the input of the process. Writers never block.
type outbox struct {
	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte
	closed  bool
}

func (o *outbox) put(line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.lines = append(o.lines, line)
		o.changed.Signal()
	}
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.changed.Broadcast()
}

// Read waits for a line. Lines put before close can still be read.
func (o *outbox) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.lines) == 0 && !o.closed {
		o.changed.Wait()
	}
	if len(o.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.lines[0])
	if o.lines[0] = o.lines[0][n:]; len(o.lines[0]) == 0 {
		o.lines[0] = nil
		o.lines = o.lines[1:]
	}
	return n, nil
}
