package conversation

import (
	"context"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/session"
)

// record puts an event on record, and so tells it to everybody. Where that fails the conversation ends: what cannot be
// kept is not gone on with.
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

// recordEnd puts the end of a turn on record, with the totals.
func (c *Conversation) recordEnd(e event.Event) {
	if !c.o.Recorded {
		for _, m := range c.transcript.flush() {
			c.append(session.Message{Message: m, Turn: e.Turn})
		}
	}
	e.Raw = nil
	end := e.End
	r := session.End{Subtype: end.Reason, OK: end.OK, Text: end.Text, Duration: end.Took, Event: &e}
	if u := end.Usage; u != nil {
		r.Usage = model.Usage{
			Input: max(
				0,
				u.Input-u.Cached-u.Written,
			), CacheRead: u.Cached, CacheWrite: u.Written, Output: u.Output, Reasoning: u.Reasoning,
			Estimated: u.Estimated,
		}
		if u.CostUSD != nil {
			r.Cost = *u.CostUSD
		}
	}
	if !end.OK {
		r.Error = c.assembly.why
	}
	c.assembly.why = ""
	c.append(r) // it is durable when this returns
}

func (c *Conversation) append(r session.Record) {
	if c.failure != nil {
		return
	}
	if _, err := c.o.Journal.Append(r); err != nil {
		c.fail(err)
	}
}

// sync waits until what is on record survives the machine: somebody is about to act on it.
func (c *Conversation) sync() {
	if c.failure == nil {
		if err := c.o.Journal.Sync(); err != nil {
			c.fail(err)
		}
	}
}

// fail ends a conversation that cannot be kept.
func (c *Conversation) fail(err error) {
	if c.failure != nil {
		return
	}
	c.failure = err
	c.o.Log("the conversation cannot be kept, so it ends: %v", err)
	c.inbox.post(c.close)
}

// said puts a message into the transcript when its turn begins.
func (c *Conversation) said(m *message) {
	if c.o.Recorded {
		return
	}
	c.append(session.Message{Message: model.Message{Role: model.User, Blocks: blocksOf(m.blocks)}, Turn: m.turn})
}

// close is what Close does.
func (c *Conversation) close() {
	if c.closing {
		return
	}
	c.closing = true
	c.dropped = append(c.dropped, c.waiting...)
	c.waiting = nil
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
		change() // it is refused
	}
	c.part()
}

// part closes the Mind when no turn runs any more.
func (c *Conversation) part() {
	if c.parting || c.turn != nil || c.changing {
		return
	}
	c.parting = true
	if c.mind == nil { // there is none after a restart that failed
		c.parted(agent.Outcome{}, nil)
		return
	}
	c.closeMind(c.mind, c.parted)
}

// closeMind closes a Mind and goes on with then, also where the Mind does not come back.
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
		case <-time.After(limit + givenUp):
			r.err = fault.New(fault.TimedOut, "the agent did not end within %s", limit+givenUp)
		}
		c.inbox.post(func() { then(r.outcome, r.err) })
	}()
}

// parted is the end of the conversation.
func (c *Conversation) parted(outcome agent.Outcome, err error) {
	if err != nil {
		c.o.Log("the agent was not closed in order: %v", err)
	}
	if u := c.unasked; u != nil {
		c.take(
			&event.Event{Kind: event.Ended, Unasked: true, Synthetic: true, End: &event.End{Reason: event.Cancelled}},
		)
	}
	if outcome.Evidence.Session == "" {
		outcome.Evidence.Session = c.Own()
	}
	c.outcome, c.over = outcome, true
}
