package cli

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// Live is what a driver says of an agent that stays for many turns.
type Live struct {
	Driver agent.Driver
	// Launch is the program and its arguments for a conversation. It refuses what the agent cannot keep. It is also asked, before anything is
	// started, whether a conversation can be opened.
	Launch func(agent.Spec) (agent.Launch, error)
	// Proto is the wire of one process of that conversation.
	Proto func(agent.Spec) Proto
	// Patience is how long a question waits for its answer before it counts as a no; 0: five minutes.
	Patience time.Duration
}

const (
	mostWaiting = 4096 // events that are not heard yet, before the agent has to wait
	patience    = 5 * time.Minute
	defaultStop = 5 * time.Second
	settles     = 10 * time.Second // until an agent has said whether a change holds
)

// OpenLive begins a conversation with an agent that stays for many turns: one process, started for the first message.
//
// Every message that Send accepts is followed by exactly one Ended that is not Unasked. A message that comes while a turn runs waits for its end,
// since agents make one turn of two messages. A process that dies takes its turn with it: a Failed says why, and an Ended of our own follows; the
// next message starts the agent anew, with the session it had.
//
// An interruption that the agent does not heed within the grace becomes a signal. A question that nobody answers in time, or where nobody can be
// asked, is a denial.
func OpenLive(_ context.Context, l Live, s agent.Spec, sv agent.Services) (agent.Session, error) {
	if s.Temp == "" {
		return nil, fault.New(fault.Internal, "a session needs a private directory")
	}
	if _, err := l.Launch(s); err != nil {
		return nil, err
	}
	if l.Patience == 0 {
		l.Patience = patience
	}
	if sv.Grace == 0 {
		sv.Grace = defaultStop
	}
	life, end := context.WithCancel(context.Background())
	v := &live{
		Live: l, spec: s, services: sv, canAsk: sv.CanAsk, events: event.NewQueue(0), id: s.Resume, life: life, endLife: end,
		questions: map[string]*question{}, calls: map[string]*event.Reply{}, settling: map[int]settling{},
	}
	if s.Terms.Fork {
		v.id = "" // the copy has another
	}
	v.room = sync.NewCond(&v.mu)
	v.facts = event.Facts{Agent: l.Driver.Name(), Version: s.Install.Version, Model: s.Shared.Model.Value, Mode: ModeOf(s), Dir: s.Dir}
	return v, nil
}

// live is the session. The lock is held while a Proto is at work, never while anybody waits.
type live struct {
	Live
	services agent.Services
	events   *event.Queue // closed when the session is, and no process runs
	life     context.Context
	endLife  context.CancelFunc

	mu        sync.Mutex
	room      *sync.Cond
	unheard   int        // events that wait
	spec      agent.Spec // as it holds now
	facts     event.Facts
	id        string
	canAsk    bool
	run       *run // the process; nil: none
	turn      bool // a message is with the agent
	waiting   [][]event.Block
	questions map[string]*question    // open ones
	calls     map[string]*event.Reply // that have no result yet, with what a host said of them before it was asked
	settling  map[int]settling        // changes that the agent has not answered
	token     int
	closed    bool
	freed     bool // nobody may be listening any more
	launched  []agent.File
	outcome   agent.Outcome
}

// settling is a change that waits for the agent's word.
type settling struct {
	change agent.Change
	word   chan error
}

// question is one that is open, by the id under which the host knows it: that of the call where it is about one.
type question struct {
	wire  string // its id on the wire
	clock *time.Timer
}

func (v *live) ID() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.id
}

// Facts are what is known so far.
func (v *live) Facts() event.Facts {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.facts
}

// Next returns what happened, in order.
func (v *live) Next(ctx context.Context) (event.Event, error) {
	e, err := v.events.Next(ctx)
	if err == nil {
		v.mu.Lock()
		if v.unheard--; v.unheard < mostWaiting {
			v.room.Broadcast()
		}
		v.mu.Unlock()
	}
	return e, err
}

// Send hands the message over, or lets it wait for the end of the turn that runs.
func (v *live) Send(ctx context.Context, blocks []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := v.fits(blocks); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return fault.New(fault.Internal, "the session is closed")
	}
	if v.turn || v.run != nil && v.run.leaving {
		v.waiting = append(v.waiting, blocks)
		return nil
	}
	return v.hand(blocks)
}

func (v *live) fits(blocks []event.Block) error {
	var b strings.Builder
	media := false
	for _, block := range blocks {
		b.WriteString(block.Text)
		media = media || block.Media != ""
	}
	text := b.String()
	if media && strings.TrimSpace(text) == "" {
		return nil
	}
	return fits(v.Driver, v.spec.Install.Version, text)
}

// hand gives a message to the agent, which is started if it does not run. It is called with the lock.
func (v *live) hand(blocks []event.Block) error {
	if v.run == nil {
		if err := v.start(); err != nil {
			return err
		}
	}
	step, err := v.run.proto.Do(Command{Message: blocks})
	if err != nil {
		return err
	}
	v.turn = true
	v.run.told = v.run.told[:0]
	v.take(v.run, step)
	return nil
}

// Answer answers a question. It may come before the question: a host that sees a call knows what it will be asked.
func (v *live) Answer(_ context.Context, id string, a event.Reply) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, called := v.calls[id]; called && v.questions[id] == nil {
		v.calls[id] = &a
		return nil
	}
	if v.questions[id] == nil || v.run == nil {
		return fault.New(fault.NotFoundCode, "there is no open question %s", id)
	}
	return v.answer(replyTo(id, a))
}

// answer is called with the lock. A denial that nobody said is told: an agent takes every denial for that of a person.
func (v *live) answer(r event.Reply) error {
	id := r.Question
	r.Question = v.questions[id].wire
	step, err := v.run.proto.Do(Command{Answer: &r})
	if err != nil {
		return err
	}
	v.forget(id)
	v.take(v.run, step)
	return nil
}

func replyTo(question string, r event.Reply) event.Reply {
	r.Question = question
	return r
}

func (v *live) forget(id string) {
	if q := v.questions[id]; q != nil {
		if q.clock != nil {
			q.clock.Stop()
		}
		delete(v.questions, id)
	}
}

// NobodyAnswers says that no answer will come any more: questions that are open, and those to come, are denials.
func (v *live) NobodyAnswers() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.canAsk = false
	for id := range v.questions {
		if v.run != nil {
			_ = v.answer(event.Reply{Question: id, ByUs: true, Option: event.Deny, Text: "nobody can answer any more"})
		}
	}
}

// Set changes what holds from now on. It waits for the agent's word.
func (v *live) Set(ctx context.Context, c agent.Change) error {
	v.mu.Lock()
	if v.run == nil || v.run.leaving { // the next start says it
		defer v.mu.Unlock()
		if _, err := v.Launch(with(v.spec, c)); err != nil {
			return err
		}
		v.adopt(c)
		return nil
	}
	v.token++
	token, word := v.token, make(chan error, 1)
	step, err := v.run.proto.Do(Command{Change: &c, Token: token})
	if errors.Is(err, Anew{}) && !v.turn {
		defer v.mu.Unlock()
		if _, err := v.Launch(with(v.spec, c)); err != nil {
			return err
		}
		v.run.leaves(v.services.Grace)
		v.adopt(c)
		return nil
	}
	if errors.Is(err, Anew{}) {
		err = fault.New(fault.Unsupported, "%s does not change to that in the middle of a turn", v.Driver.Name()).Hint("wait for its end, or interrupt it")
	}
	if err != nil {
		v.mu.Unlock()
		return err
	}
	v.settling[token] = settling{c, word}
	v.take(v.run, step)
	v.mu.Unlock()
	return v.settled(ctx, word) // take has adopted it
}

// with is what a conversation is after a change.
func with(s agent.Spec, c agent.Change) agent.Spec {
	if c.Mode != "" {
		s.Terms.Mode = c.Mode
	}
	if c.Model != "" {
		s.Shared.Model = typed(c.Model)
	}
	return s
}

// settled waits for the agent's word about a change.
func (v *live) settled(ctx context.Context, word <-chan error) error {
	late := time.NewTimer(settles)
	defer late.Stop()
	select {
	case err := <-word:
		return err
	case <-late.C:
		return fault.New(fault.TimedOut, "%s did not say within %s whether it changed", v.Driver.Name(), settles)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// adopt makes a change a fact, whoever caused it, and tells the host of it before the first event that it affects. It
// is called with the lock.
func (v *live) adopt(c agent.Change) {
	before := v.facts
	v.spec = with(v.spec, c)
	v.facts.Mode = ModeOf(v.spec)
	if c.Model != "" {
		v.facts.Model = c.Model
	}
	e := event.Event{Kind: event.Changed, Session: v.id, Facts: &event.Facts{}}
	if v.facts.Mode != before.Mode {
		e.Facts.Mode = v.facts.Mode
	}
	if v.facts.Model != before.Model {
		e.Facts.Model = v.facts.Model
	}
	if e.Facts.Mode != "" || e.Facts.Model != "" {
		v.put(&e)
	}
}

// Interrupt asks the agent to end the turn, and returns at once. Messages that wait get their end behind it. Where the agent does not heed it within
// the grace, or where it is said twice, the process is ended.
func (v *live) Interrupt(context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.interrupt()
	return nil
}

func (v *live) interrupt() {
	r := v.run
	if r == nil || !v.turn {
		return
	}
	r.dropped += len(v.waiting)
	v.waiting = nil
	if r.hurried != nil {
		r.end("SIGINT", syscall.SIGTERM)
		return
	}
	r.hurried = time.AfterFunc(v.services.Grace, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.run == r && r.hurried != nil {
			r.end("SIGINT", syscall.SIGTERM)
		}
	})
	step, err := r.proto.Do(Command{Interrupt: true})
	if err != nil { // it knows no such word
		r.end("SIGINT", syscall.SIGTERM)
		return
	}
	v.take(r, step)
}

// Close ends the turn, if one runs, and the process. An agent with nothing to do is only told that nothing more will come.
func (v *live) Close(ctx context.Context) (agent.Outcome, error) {
	v.mu.Lock()
	v.closed, v.freed = true, true
	v.room.Broadcast()
	r := v.run
	var err error
	if r == nil {
		v.events.Close()
	} else {
		r.dropped += len(v.waiting)
		v.waiting = nil
		if v.turn {
			r.end("SIGTERM", syscall.SIGTERM)
		} else {
			r.leaves(v.services.Grace)
		}
	}
	v.mu.Unlock()
	if r != nil {
		select {
		case <-r.gone:
		case <-ctx.Done():
			v.mu.Lock()
			r.end("SIGKILL", killed)
			v.mu.Unlock()
			<-r.gone
			err = ctx.Err()
		}
	}
	v.endLife()
	v.mu.Lock()
	defer v.mu.Unlock()
	RemoveFiles(v.launched)
	return v.outcome, err
}
