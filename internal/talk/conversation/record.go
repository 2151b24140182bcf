package conversation

import (
	"cmp"
	"context"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
)

// record writes an event to the journal, from which every host reads it. If that fails, the conversation ends.
func (c *Conversation) record(e event.Event) {
	e.Raw = nil
	switch e.Kind {
	case event.Changed:
		c.append(changedRecord(&e))
	case event.Denied:
		d := e.Denial
		c.append(session.Denied{Tool: d.Tool, Call: d.CallID, Reason: d.Reason, Event: &e})
	default:
		c.append(session.Logged{Event: &e})
	}
	if !c.o.Recorded && c.failure == nil {
		for _, m := range c.transcript.put(e) {
			c.append(session.Message{Message: m, Turn: e.Turn})
		}
	}
}

func changedRecord(e *event.Event) session.Changed {
	r := session.Changed{Event: e}
	if f := e.Facts; f != nil {
		r.Mode, r.Model, r.Provider = string(f.Mode), f.Model, f.Provider
	}
	return r
}

// recordEnd records the end of a turn, with its totals.
func (c *Conversation) recordEnd(e event.Event) {
	if !c.o.Recorded {
		for _, m := range c.transcript.flush() {
			c.append(session.Message{Message: m, Turn: e.Turn})
		}
		c.transcript = transcript{}
	}
	e.Raw = nil
	r := session.End{Event: &e}
	if !e.End.OK {
		r.Error = c.assembly.failureText
	}
	c.assembly.failureText = ""
	c.append(r) // an end is durable when Append returns
}

func (c *Conversation) append(r session.Record) {
	if c.failure != nil {
		return
	}
	if _, err := c.o.Journal.Append(r); err != nil {
		c.fail(err)
	}
}

// sync waits until the journal is durable.
func (c *Conversation) sync() {
	if c.failure == nil {
		if err := c.o.Journal.Sync(); err != nil {
			c.fail(err)
		}
	}
}

// fail ends a conversation whose journal cannot be written.
func (c *Conversation) fail(err error) {
	if c.failure != nil {
		return
	}
	c.failure = err
	c.o.Log("the conversation ends because its journal cannot be written: %v", err)
	c.inbox.post(c.close)
}

// logMessage adds a message to the transcript when its turn begins.
func (c *Conversation) logMessage(m *message) {
	if c.o.Recorded {
		return
	}
	c.append(session.Message{Message: model.Message{Role: model.User, Blocks: blocksOf(m.blocks)}, Turn: m.turn})
}

// close implements Close.
func (c *Conversation) close() {
	if c.closing {
		return
	}
	c.closing = true
	c.dropWaiting()
	t := c.turn
	if t == nil || t.ended {
		c.endDropped()
	}
	if t != nil {
		c.stop(t)
	}
	changes := c.changes
	c.changes = nil
	for _, change := range changes {
		change() // refused, because the conversation is closing
	}
	c.closeIdle()
}

// closeIdle closes the Mind once no turn runs.
func (c *Conversation) closeIdle() {
	if c.closingMind || c.turn != nil || c.changing {
		return
	}
	c.closingMind = true
	if c.mind == nil { // after a restart that failed
		c.finish(agent.Outcome{}, nil)
		return
	}
	c.closeMind(c.mind, c.finish)
}

// closeMind closes a Mind and calls then, even if Close of the Mind never returns.
func (c *Conversation) closeMind(m agent.Mind, then func(agent.Outcome, error)) {
	limit := c.o.Services.Grace
	type closed struct {
		outcome agent.Outcome
		err     error
	}
	done := make(chan closed, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		var r closed
		r.outcome, r.err = m.Close(ctx)
		done <- r
	}()
	go func() {
		var r closed
		select {
		case r = <-done:
		case <-time.After(limit + giveUpAfter):
			r.err = fault.New(fault.TimedOut, "the agent did not end within %s", limit+giveUpAfter)
		}
		c.inbox.post(func() { then(r.outcome, r.err) })
	}()
}

// finish ends the conversation after the Mind is closed.
func (c *Conversation) finish(outcome agent.Outcome, err error) {
	if err != nil {
		c.o.Log("closing the agent failed: %v", err)
	}
	c.endUnprompted()
	outcome.Evidence.Session = cmp.Or(outcome.Evidence.Session, c.AgentSessionID())
	c.outcome, c.finished = outcome, true
}
