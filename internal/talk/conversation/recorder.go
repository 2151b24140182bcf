package conversation

import (
	"context"
	"sync"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/claim"
	"omniagent/internal/sys/touch"
	"omniagent/internal/talk/session"
)

// Recorder keeps the journal of a conversation whose host and agent use the same protocol, so that their lines pass
// unchanged. It orders the events like those of any conversation, but answers no question and interrupts no turn. Its
// methods may be called from several goroutines.
type Recorder struct {
	mu     sync.Mutex
	c      *Conversation
	claims *claim.Reporter // reads what the agent changes; nil: not recorded
	looks  bool            // Conversation.watch belongs to the turn that runs or is about to begin
}

// Watch makes w take snapshots before and after each turn, and records in log what the calls of the agent change. dir
// is the agent's directory. Call it before the first message.
func (r *Recorder) Watch(w Witness, log *touch.Log, dir string) {
	r.c.o.Witness, r.claims = w, claim.NewReporter(log, dir)
}

// begin takes the snapshot before the turn of the oldest message that waits.
func (r *Recorder) begin() {
	if c := r.c; !r.looks && len(c.waiting) > 0 {
		r.looks = true
		c.setWatch(watchOf(c.o.Witness, c.waiting[0].turn))
	}
}

// end begins the snapshot after the turn.
func (r *Recorder) end() {
	r.looks = false
	r.c.watch.end()
}

// Record begins a conversation in a journal, or continues the one there. The Recorder closes the journal. It reports
// once to log if the journal cannot be written.
func Record(journal *session.Session, log func(format string, args ...any)) *Recorder {
	c := &Conversation{o: Options{Journal: journal, Log: log}, done: make(chan struct{})}
	c.inbox.init()
	c.questions.init()
	c.inbox.close() // no goroutine reads it
	state := journal.State()
	c.last, c.own = state.LastTurn, state.Session
	c.endUnfinished(state)
	return &Recorder{c: c}
}

// Prompt records a message of the host. Its turn begins with the next event of the agent, or after the turn that runs.
func (r *Recorder) Prompt(blocks []event.Block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.c
	c.last++
	c.waiting = append(c.waiting, &message{turn: c.last, blocks: blocks})
	c.record(event.Event{Kind: event.Prompted, Turn: c.last, Blocks: blocks})
	r.begin()
}

// Tell records an event of the agent. Event.Raw need be valid only during the call.
func (r *Recorder) Tell(e event.Event) {
	if precedesChange(e.Kind) {
		r.c.awaitSnapshot()
	}
	r.claims.Tell(&e)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Hash, e.Raw = hash(e.Raw), nil
	c := r.c
	if c.turn == nil && beginsTurn(e.Kind) && !e.Unprompted && len(c.waiting) > 0 {
		m := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.turn = &turn{number: m.turn}
		c.o.Journal.Turn(m.turn)
		c.logMessage(m)
	}
	if e.Kind == event.Question {
		c.open(&e)
		return
	}
	c.take(&e)
	if c.turn != nil && c.turn.ended {
		c.turn = nil
		r.end()
		r.begin()
	}
}

// Reply records the host's answer to a question, named by the agent's id.
func (r *Recorder) Reply(a event.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, open := range r.c.questions.open {
		if open.wire == a.Question {
			r.claims.Tell(&event.Event{Kind: event.Replied, Reply: &a})
			a.Question = id
			r.c.questions.forget(id)
			r.c.record(event.Event{Kind: event.Replied, Turn: open.turn, Reply: &a})
			return
		}
	}
}

// Close ends open turns, and then the journal.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.c
	if t := c.turn; t != nil {
		c.endWithout(t, fault.New(fault.AgentFailed, "the agent ended without a result"))
		c.turn = nil
	}
	c.endUnprompted()
	c.dropWaiting()
	c.endDropped()
	r.end()
	c.watch.wait(context.Background())
	if err := c.o.Journal.Close(); err != nil {
		return err
	}
	return c.failure
}
