package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/session"
)

// turn is a turn that has begun.
type turn struct {
	number    int64
	cancel    context.CancelCauseFunc // nil: no message began it
	began     bool                    // TurnBegan is recorded
	ended     bool                    // Ended is recorded
	returned  bool                    // Mind.Turn returned
	cancelled bool
	killed    bool
	fault     *fault.Fault // why the conversation ended it
	clocks    []*time.Timer
	told      int // weight of its events
}

// errInterrupted cancels the context of a turn that a host interrupts.
var errInterrupted = errors.New("the turn was interrupted")

// run is the goroutine that owns the conversation.
func (c *Conversation) run() {
	for !c.finished {
		for _, i := range c.inbox.take() {
			if i.do != nil {
				i.do()
			} else if i.generation == c.generation {
				c.take(i.event)
			}
		}
	}
	c.inbox.close()
	c.watch.end()
	c.watch.wait(context.Background())
	if err := c.o.Journal.Close(); err != nil && c.failure == nil {
		c.failure = err
	}
	close(c.done)
}

// accept adds a message to the queue.
func (c *Conversation) accept(blocks []event.Block) (int64, error) {
	switch {
	case c.failure != nil:
		return 0, c.failure
	case c.closing:
		return 0, c.overError()
	case len(c.waiting) >= MostWaiting:
		return 0, fault.New(fault.TooManyRequests, "%d messages wait already", MostWaiting).
			Hint("wait for the end of a turn, or interrupt it")
	case len(c.waiting) > 0 && c.waitingBytes()+Size(blocks) > mostWaitingBytes:
		return 0, fault.New(fault.TooManyRequests, "the messages that wait would have more than %d MiB",
			mostWaitingBytes>>20).Hint("wait for the end of a turn, or interrupt it")
	}
	if err := c.fits(blocks); err != nil {
		return 0, err
	}
	c.last++
	m := &message{turn: c.last, blocks: blocks}
	c.record(event.Event{Kind: event.Prompted, Turn: m.turn, Blocks: blocks})
	c.sync()
	if c.failure != nil {
		return 0, c.failure
	}
	c.waiting = append(c.waiting, m)
	c.next()
	return m.turn, nil
}

// waitingBytes returns the size of the messages in the queue.
func (c *Conversation) waitingBytes() int {
	n := 0
	for _, m := range c.waiting {
		n += Size(m.blocks)
	}
	return n
}

// Size returns the bytes of texts and data.
func Size(blocks []event.Block) int {
	n := 0
	for _, b := range blocks {
		n += len(b.Text) + len(b.Data)
	}
	return n
}

// fits refuses blocks that the agent cannot take.
func (c *Conversation) fits(blocks []event.Block) error {
	for _, b := range blocks {
		if b.Media != "" && !c.able.Images {
			return fault.New(fault.Unsupported, "%s takes only text in a conversation, not %s", c.Facts().Agent,
				b.Media).
				Hint("save it as a file and name the file in the message")
		}
	}
	return nil
}

// next begins the turn of the oldest message in the queue.
func (c *Conversation) next() {
	switch {
	case c.closing:
		c.closeIdle()
		return
	case c.turn != nil, c.changing, len(c.waiting) == 0:
		return
	case c.abandoned:
		c.restart(c.spec, func(error) { c.next() })
		return
	}
	m := c.waiting[0]
	c.waiting = c.waiting[1:]
	ctx, cancel := context.WithCancelCause(context.Background())
	t := &turn{number: m.turn, cancel: cancel}
	c.turn = t
	c.o.Journal.Turn(t.number)
	c.logMessage(m)
	if c.o.Timeout > 0 {
		c.after(t, c.o.Timeout, func() {
			t.fault = fault.New(fault.TimedOut, "the turn did not end within %s", c.o.Timeout).
				With("turn_timeout", c.o.Timeout.String()).Hint("give it more time with --timeout")
			c.stop(t)
		})
	}
	mind, before, now := c.mind, c.watch, watchOf(c.o.Witness, t.number)
	c.setWatch(now)
	go func() {
		before.wait(ctx)
		now.start(ctx)
		err := turnOf(ctx, mind, m.blocks)
		now.end()
		c.inbox.post(func() { c.returned(t, err) })
	}()
}

// turnOf runs a turn and turns a panic of the Mind into an error.
func turnOf(ctx context.Context, m agent.Mind, blocks []event.Block) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.New(fault.Internal, "the turn failed inside: %v", r)
		}
	}()
	return m.Turn(ctx, blocks)
}

// after calls do after wait, unless the turn has ended by then.
func (c *Conversation) after(t *turn, wait time.Duration, do func()) {
	t.clocks = append(t.clocks, time.AfterFunc(wait, func() {
		c.inbox.post(func() {
			if c.turn == t && !t.ended {
				do()
			}
		})
	}))
}

// returned handles the return of Mind.Turn.
func (c *Conversation) returned(t *turn, err error) {
	if t.returned = true; c.turn != t {
		return // giveUp ended it
	}
	if !t.ended {
		if err == nil {
			err = fault.New(fault.AgentFailed, "the agent ended without a result")
		}
		c.endWithout(t, err)
	}
	c.turn = nil
	t.cancel(nil)
	c.proceed()
}

// endWithout ends a turn whose Mind reported no end.
func (c *Conversation) endWithout(t *turn, err error) {
	reason := event.FailedTurn
	if t.cancelled && t.fault == nil {
		reason = event.Cancelled
	} else {
		c.take(&event.Event{Kind: event.Failed, Fault: fault.Of(err), Terminal: true, Synthetic: true})
	}
	c.take(&event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: reason}})
}

// endUnprompted ends the turn that no message began, because the conversation ends.
func (c *Conversation) endUnprompted() {
	if c.unprompted != nil {
		c.take(&event.Event{
			Kind: event.Ended, Unprompted: true, Synthetic: true, End: &event.End{Reason: event.Cancelled},
		})
	}
}

// interrupt implements Interrupt.
func (c *Conversation) interrupt(drop bool) {
	if drop {
		c.dropWaiting()
	}
	switch t := c.turn; {
	case t == nil || t.ended:
		c.endDropped()
	case t.cancelled:
		c.kill()
	default:
		c.stop(t)
	}
}

// stop cancels the turn, and kills the agent after the grace period.
func (c *Conversation) stop(t *turn) {
	if t.cancelled {
		return
	}
	t.cancelled = true
	t.cancel(errInterrupted)
	c.after(t, c.o.Services.Grace, c.kill)
}

// kill ends the turn that runs. If Mind.Turn does not return after that, giveUp ends the turn.
func (c *Conversation) kill() {
	t := c.turn
	if t == nil || t.killed || t.ended && t.returned {
		return
	}
	t.cancelled, t.killed = true, true
	go func(mind agent.Mind) { // kill first, so that it is not asked to end the turn
		mind.Kill()
		t.cancel(errInterrupted)
	}(c.mind)
	time.AfterFunc(giveUpAfter, func() { c.inbox.post(func() { c.giveUp(t) }) })
}

// giveUp ends a turn whose Mind does not return. The next turn gets a new Mind.
func (c *Conversation) giveUp(t *turn) {
	if c.turn != t || t.returned {
		return
	}
	if !t.ended {
		c.endWithout(t, fault.New(fault.AgentFailed, "the agent did not end when it was killed"))
	}
	c.o.Log("the agent did not end when it was killed; the next message restarts it")
	c.generation++ // its events are ignored from now on
	c.watch.end()
	c.abandoned, c.turn = true, nil
	c.proceed()
}

// withdraw implements Withdraw.
func (c *Conversation) withdraw(number int64) {
	if c.turn != nil && c.turn.number == number {
		c.stop(c.turn)
		return
	}
	i := slices.IndexFunc(c.waiting, func(m *message) bool { return m.turn == number })
	if i < 0 {
		return
	}
	c.dropped = append(c.dropped, c.waiting[i])
	c.waiting = slices.Delete(c.waiting, i, i+1)
	if c.turn == nil || c.turn.ended {
		c.endDropped()
	}
}

// dropWaiting empties the queue.
func (c *Conversation) dropWaiting() {
	c.dropped, c.waiting = append(c.dropped, c.waiting...), nil
}

// endDropped records the ends of messages whose turns will not begin.
func (c *Conversation) endDropped() {
	for _, m := range c.dropped {
		c.recordEnd(
			event.Event{Kind: event.Ended, Turn: m.turn, Synthetic: true, End: &event.End{Reason: event.Cancelled}},
		)
	}
	c.dropped = nil
}

// take handles an event of the Mind.
func (c *Conversation) take(e *event.Event) {
	if e.Session != "" {
		c.setOwn(e.Session)
	}
	switch e.Kind {
	case event.Question:
		c.ask(e)
		return
	case event.Withdrawn:
		c.questions.withdraw(c, e.Ask.ID)
		return
	case event.Ended:
		e.Unprompted = e.Unprompted || c.turn == nil || c.turn.ended
	}
	if c.flooded(e) {
		return
	}
	for _, out := range c.assembly.put(*e) {
		c.tell(&out)
	}
}

// tell records an event, after those that have to come before it.
func (c *Conversation) tell(e *event.Event) {
	t := c.attribute(e)
	switch e.Kind {
	case event.TurnBegan:
		if t == nil || t.began {
			return
		}
		t.began = true
	case event.Started:
		if f := e.Facts; f != nil && f.Mode != "" && c.differs(f.Mode) {
			c.tell(&event.Event{
				Kind: event.Changed, Session: e.Session, Facts: &event.Facts{Mode: f.Mode}, Synthetic: true,
			})
		}
		c.merge(e)
	case event.Changed:
		c.merge(e)
	case event.Ended:
		c.end(t, e)
		return
	case event.ToolCall:
		c.questions.addCall(e.Call.ID)
	case event.ToolResult:
		c.questions.endCall(c, e.Result.ID)
	}
	c.record(*e)
}

// attribute assigns an event to its turn. If no turn runs, the event may begin one that no message began.
func (c *Conversation) attribute(e *event.Event) *turn {
	t := c.turn
	if t != nil && t.ended || e.Kind == event.Ended && e.Unprompted {
		t = nil
	}
	if t == nil {
		t = c.unprompted
	}
	if t == nil {
		if !beginsTurn(e.Kind) {
			return nil
		}
		c.last++
		t = &turn{number: c.last}
		c.unprompted = t
	}
	e.Turn = t.number
	if early := e.Kind == event.Started || e.Kind == event.Changed || e.Kind == event.Notice; !t.began && !early &&
		e.Kind != event.TurnBegan {
		t.began = true
		c.record(event.Event{Kind: event.TurnBegan, Turn: t.number, Synthetic: true})
	}
	return t
}

// beginsTurn reports whether an event without a turn begins one.
func beginsTurn(k event.Kind) bool {
	switch k {
	case event.TurnBegan, event.Text, event.Thinking, event.Answered, event.ToolCall, event.ToolResult,
		event.Question, event.Denied, event.Ended:
		return true
	}
	return false
}

// end ends a turn: its open questions are withdrawn, and dropped messages get their ends.
func (c *Conversation) end(t *turn, e *event.Event) {
	if t == c.unprompted {
		c.unprompted, e.Unprompted = nil, true
	} else if t == nil || t != c.turn {
		return
	}
	t.ended = true
	for _, clock := range t.clocks {
		clock.Stop()
	}
	c.questions.endTurn(c, t.number)
	if t.fault != nil && (e.Synthetic || !e.End.OK) {
		c.record(event.Event{Kind: event.Failed, Turn: t.number, Fault: t.fault, Terminal: true, Synthetic: true})
		end := *e.End
		end.Reason = event.FailedTurn
		e.End, c.assembly.failureText = &end, t.fault.Sentence()
	}
	c.recordEnd(*e)
	if t == c.turn {
		c.endDropped()
	}
}

// differs reports whether a mode is known and is not this one.
func (c *Conversation) differs(mode setting.Approval) bool {
	now := c.Facts().Mode
	return now != "" && now != mode
}

// merge updates the facts.
func (c *Conversation) merge(e *event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Facts != nil {
		c.known.Merge(*e.Facts)
		if e.Kind == event.Changed {
			c.spec = With(c.spec, agent.Change{Mode: e.Facts.Mode, Model: e.Facts.Model})
		}
	}
	if e.Model != "" {
		c.known.Model = e.Model
	}
}

// setOwn sets the agent's own id, with which a restart resumes the conversation.
func (c *Conversation) setOwn(id string) {
	c.mu.Lock()
	same := c.own == id
	c.own = id
	c.mu.Unlock()
	if !same {
		c.append(session.Changed{Session: id})
	}
	c.spec.Terms.Continue, c.spec.Terms.Fork, c.spec.Fresh = false, false, ""
}

// endUnfinished ends the turns that an earlier process left open.
func (c *Conversation) endUnfinished(state session.State) {
	for _, q := range state.Questions {
		c.questions.stale[q.ID] = &question{ask: q}
		c.record(event.Event{Kind: event.Notice, Synthetic: true, Text: fmt.Sprintf(
			"question %s is still open, and an answer becomes the next message: %s", q.ID, q.Text)})
	}
	for _, u := range state.Unfinished {
		said, note := UnknownOutcome, fmt.Sprintf(
			"the process that had turn %d died before the turn ended; look at what it did", u.Turn)
		if u.Waited {
			said, note = NeverBegan, fmt.Sprintf(
				"message %d waited when its process died, and no turn began with it; send it again", u.Turn)
		}
		c.recordEnd(event.Event{Kind: event.Ended, Turn: u.Turn, Synthetic: true, End: &event.End{
			Reason: event.FailedTurn, AgentReason: said, Notes: []string{note},
		}})
	}
}

// The values of End.AgentReason for a turn whose process died.
const (
	UnknownOutcome = "unknown_outcome" // what the turn did is unknown
	NeverBegan     = "never_began"     // its message was still in the queue
)

// Abandoned reports whether it is the end of a turn whose process died.
func Abandoned(e *event.End) bool {
	return e.AgentReason == UnknownOutcome || e.AgentReason == NeverBegan
}
