package cli

import (
	"bytes"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/process"
	"omniagent/internal/setting"
)

const killed = syscall.SIGKILL

func typed[T any](v T) setting.Chosen[T] { return setting.Chosen[T]{Value: v, Origin: setting.Typed} }

// run is one process of a live session. But for the streams, the session's lock holds it.
type run struct {
	session *live
	proto   Proto
	child   *process.Child
	out     outbox
	stderr  ending
	gone    chan struct{} // closed when all is over

	byUs    string // why we ended it
	leaving bool   // it was told to go, or goes
	over    bool   // nothing that it prints is heard any more
	hurried *time.Timer
	dropped int           // messages that an interruption took away
	told    []event.Event // of the turn, as far as Classify looks at it
	begun   bool          // it has told its session
}

// start starts the agent. It is called with the lock.
func (v *live) start() error {
	standby := process.Prepare() // it takes about as long as what comes before the agent is started
	defer standby.Dismiss()
	spec := v.spec
	if v.id != "" {
		spec.Resume = v.id
	}
	launch, err := v.Launch(spec)
	if err != nil {
		return err
	}
	if err := WriteFiles(launch.Files); err != nil {
		return err
	}
	v.launched = append(v.launched, launch.Files...)
	r := &run{session: v, proto: v.Proto(spec), gone: make(chan struct{})}
	r.out.changed = sync.NewCond(&r.out.mu)
	observer := v.Driver.Observe(launch)
	child, err := process.Start(process.Plan{
		Path: launch.Path, Argv: append([]string{v.Driver.Describe().Binary}, launch.Args...), Dir: launch.Dir, Env: launch.Env,
		Stdin: &r.out, Stdout: r, Stderr: &r.stderr, Grace: v.services.Grace, Standby: standby,
	})
	if err != nil {
		return err
	}
	r.child, v.run = child, r
	v.take(r, r.proto.Begin())
	go v.finish(r, observer)
	return nil
}

// Write takes what the agent prints. Where nobody listens, the agent waits.
func (r *run) Write(p []byte) (int, error) {
	v := r.session
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.unheard >= mostWaiting && !v.freed && r.byUs == "" {
		v.room.Wait()
	}
	if !r.over {
		v.take(r, r.proto.Feed(p))
	}
	return len(p), nil
}

// take does what a step says. It is called with the lock.
func (v *live) take(r *run, step Step) {
	for _, line := range step.Lines {
		r.out.put(line)
	}
	for _, s := range step.Settled {
		if waits, open := v.settling[s.Token]; open {
			delete(v.settling, s.Token)
			if s.Err == nil {
				v.adopt(waits.change)
			}
			waits.word <- s.Err // it has room for one
		}
	}
	for i := range step.Events {
		v.tell(r, &step.Events[i])
	}
	for _, n := range step.Needs {
		go v.meet(r, n)
	}
}

// tell hands an event on. It is called with the lock.
func (v *live) tell(r *run, e *event.Event) {
	if e.Session != "" {
		v.learn(r, e.Session)
	}
	switch e.Kind {
	case event.Started:
		r.proto.Know(&v.facts)
		r.told = append(r.told, event.Event{Kind: e.Kind, Session: e.Session, Model: e.Model})
	case event.TurnBegan:
		r.proto.Know(&v.facts)
	case event.Changed: // the agent itself has changed it
		v.adopt(agent.Change{Mode: e.Facts.Mode, Model: e.Facts.Model})
		return
	case event.Question:
		v.asked(r, e)
		return
	case event.Withdrawn:
		for id, q := range v.questions {
			if q.wire == e.Ask.ID {
				v.forget(id)
				v.put(&event.Event{Kind: e.Kind, Session: e.Session, Ask: &event.Ask{ID: id}})
			}
		}
		return // else it was answered meanwhile
	case event.Denied, event.Failed:
		r.told = append(r.told, event.Event{Kind: e.Kind, Denial: e.Denial, Fault: e.Fault, Terminal: e.Terminal})
	case event.ToolResult:
		delete(v.calls, e.Result.ID)
	case event.Text, event.ToolCall:
		if e.Kind == event.ToolCall {
			v.calls[e.Call.ID] = nil
		}
		if n := len(r.told); n == 0 || r.told[n-1].Kind != event.Text {
			r.told = append(r.told, event.Event{Kind: event.Text, Text: "…"})
		}
	case event.Ended:
		v.ended(r, e)
		return
	}
	v.put(e)
}

func (v *live) put(e *event.Event) {
	e.Raw = bytes.Clone(e.Raw) // it is valid until the next Feed only
	v.unheard++
	v.events.Put(*e)
}

// learn takes the agent's own id. From now on it is what is gone on with.
func (v *live) learn(r *run, id string) {
	if v.id != id || !r.begun {
		v.id, r.begun = id, true
		v.spec.Terms.Continue, v.spec.Terms.Fork, v.spec.Fresh = false, false, ""
	}
}

// asked passes a question on. Where nobody can be asked it is denied, and where it was answered before, that counts.
func (v *live) asked(r *run, e *event.Event) {
	q := &question{wire: e.Ask.ID}
	ask := *e.Ask
	if ask.Tool != nil && ask.Tool.ID != "" && v.questions[ask.Tool.ID] == nil {
		ask.ID = ask.Tool.ID
	}
	id := ask.ID
	e.Ask, v.questions[id] = &ask, q
	if !v.canAsk {
		if v.answer(event.Reply{Question: id, ByUs: true, Option: event.Deny, Text: "it needs approval, and nobody can be asked"}) != nil {
			v.forget(id) // it was withdrawn already
		}
		return
	}
	v.put(e)
	if early := v.calls[id]; early != nil {
		v.calls[id] = nil
		if v.answer(replyTo(id, *early)) == nil {
			return
		}
	}
	q.clock = time.AfterFunc(v.Patience, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.questions[id] == q && v.run == r {
			_ = v.answer(event.Reply{Question: id, ByUs: true, Option: event.Deny, Text: "nobody answered within " + v.Patience.String()})
			v.put(&event.Event{Kind: event.Withdrawn, Ask: &event.Ask{ID: id}, Synthetic: true})
		}
	})
}

// ended ends a turn, and begins the next. What is still asked is asked no more.
func (v *live) ended(r *run, e *event.Event) {
	v.withdraw()
	clear(v.calls)
	if e.Unasked || !v.turn {
		e.Unasked = true
		v.put(e)
		return
	}
	v.turn = false
	if r.hurried != nil {
		r.hurried.Stop()
		r.hurried = nil
	}
	v.put(e)
	v.endDropped(r)
	if len(v.waiting) == 0 || r.leaving || r.over {
		return
	}
	blocks := v.waiting[0]
	v.waiting = v.waiting[1:]
	if err := v.hand(blocks); err != nil {
		v.refuse(err)
	}
}

func (v *live) withdraw() {
	for id := range v.questions {
		v.forget(id)
		v.put(&event.Event{Kind: event.Withdrawn, Ask: &event.Ask{ID: id}, Synthetic: true})
	}
}

func (v *live) endDropped(r *run) {
	for range r.dropped {
		v.put(&event.Event{Kind: event.Ended, Session: v.id, Synthetic: true, End: &event.End{Reason: "interrupted"}})
	}
	r.dropped = 0
}

// refuse ends a message that was accepted and cannot be handed over.
func (v *live) refuse(err error) {
	v.put(&event.Event{Kind: event.Failed, Fault: fault.Of(err), Terminal: true, Synthetic: true})
	v.put(&event.Event{Kind: event.Ended, Session: v.id, Synthetic: true, End: &event.End{Reason: err.Error()}})
}

// meet asks the host for what the agent needs of it.
func (v *live) meet(r *run, n Need) {
	met := &Met{Need: n.ID}
	switch {
	case n.Moment != nil && v.services.Hook != nil:
		met.Word = v.services.Hook(v.life, *n.Moment)
	case n.Moment == nil && v.services.Serve != nil:
		met.Message, met.Err = v.services.Serve(v.life, n.Server, n.Message)
	case n.Moment == nil:
		met.Err = fault.New(fault.NotFoundCode, "there is no MCP server %s", n.Server)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.run != r || r.over {
		return
	}
	if step, err := r.proto.Do(Command{Met: met}); err == nil {
		v.take(r, step)
	}
}

// finish waits for the end of the process and says what became of its turn.
func (v *live) finish(r *run, observer agent.Observer) {
	end := r.child.Wait()
	r.out.close()
	v.mu.Lock()
	x := agent.Exit{Code: end.ExitCode, Signal: end.Signal, Stderr: r.stderr.bytes()}
	if end.Ended {
		x.ByUs = r.byUs
	}
	v.mu.Unlock()
	evidence := observer.After(x)
	v.mu.Lock()
	defer v.mu.Unlock()
	defer close(r.gone)
	r.leaving = true
	if r.hurried != nil {
		r.hurried.Stop()
	}
	if v.turn {
		v.lost(r, x)
	} else if !v.closed {
		v.put(&event.Event{Kind: event.Notice, Synthetic: true, Text: "the agent's process has ended; the next message starts it anew"})
	}
	r.over = true
	v.withdraw()
	for token, waits := range v.settling {
		delete(v.settling, token)
		waits.word <- fault.New(fault.AgentFailed, "the agent ended before it took the change")
	}
	if evidence.Session == "" {
		evidence.Session = v.id
	}
	v.outcome = agent.Outcome{Exit: x, Evidence: evidence}
	v.run, v.turn = nil, false
	if !r.begun {
		v.spec.Fresh = "" // it may be taken
	}
	v.endDropped(r)
	for len(v.waiting) > 0 && !v.turn { // they were accepted
		blocks := v.waiting[0]
		v.waiting = v.waiting[1:]
		if v.closed {
			v.put(&event.Event{Kind: event.Ended, Session: v.id, Synthetic: true, End: &event.End{Reason: "closed"}})
		} else if err := v.hand(blocks); err != nil {
			v.refuse(err)
		}
	}
	if v.closed {
		v.events.Close()
	}
}

// lost tells of a turn whose process is gone. It is called with the lock.
func (v *live) lost(r *run, x agent.Exit) {
	var last *event.Event
	failed := false
	for _, e := range r.proto.End(x) {
		if e.Kind == event.Ended {
			last = &e
			continue
		}
		failed = failed || e.Kind == event.Failed && e.Terminal
		v.tell(r, &e)
	}
	if last == nil {
		last = &event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: "the agent ended without a result"}}
	}
	if last.Synthetic && !failed {
		f := v.Driver.Classify(x, append(r.told, *last))
		if f == nil {
			f = fault.New(fault.AgentFailed, "the agent ended without a result")
		}
		v.put(&event.Event{Kind: event.Failed, Fault: f, Terminal: true, Synthetic: true})
	}
	last.Session, last.Unasked = v.id, false
	v.put(last)
	v.turn = false
}

// end ends the process with a signal. It is called with the lock.
func (r *run) end(why string, with os.Signal) {
	if r.byUs == "" {
		r.byUs = why
	}
	r.leaving = true
	r.session.room.Broadcast()
	r.child.End(with)
}

// leaves lets the process end by itself, for as long as the grace is.
func (r *run) leaves(grace time.Duration) {
	r.leaving = true
	r.out.close()
	time.AfterFunc(grace, func() {
		select {
		case <-r.gone:
		default:
			r.session.mu.Lock()
			defer r.session.mu.Unlock()
			r.end("SIGTERM", syscall.SIGTERM)
		}
	})
}

// outbox is what the process reads. Whoever puts lines into it does not wait.
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

// Read waits for a line. When there will be none, what was put before is still read.
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
