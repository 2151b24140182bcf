package conversation

import (
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// The limits of an agent's output in one turn. More would fill the disk.
const (
	mostTold = 128 << 20
	mostOpen = 10_000 // calls without a result
)

// weight estimates what an event takes in memory and on disk. A call takes more than its text, since the conversation
// and its hosts keep calls until the turn ends.
func weight(e *event.Event) int {
	n := 128 + len(e.Text) + Size(e.Blocks)
	switch {
	case e.Call != nil:
		n += 4<<10 + len(e.Call.Input)
	case e.Result != nil:
		n += 4<<10 + len(e.Result.Output)
	case e.Kind != event.Text && e.Kind != event.Thinking:
		n += 4 << 10
	}
	return n
}

// flooded reports whether an event exceeds the limits of a turn. The event is then not recorded, and the turn is ended.
func (c *Conversation) flooded(e *event.Event) bool {
	t := c.turn
	if t == nil || t.ended {
		t = c.unprompted
	}
	if t == nil || e.Kind == event.Ended || e.Kind == event.Failed || e.Synthetic {
		return false
	}
	t.told += weight(e)
	if t.told <= mostTold && len(c.assembly.open) <= mostOpen {
		return false
	}
	if t.fault == nil {
		t.fault = limitFault(len(c.assembly.open) > mostOpen)
		c.endFlood(t)
	}
	return true
}

func limitFault(calls bool) *fault.Fault {
	if calls {
		return fault.New(fault.OutputLimit, "the agent began more than %d calls that did not end", mostOpen).
			With("limit_calls", mostOpen)
	}
	return fault.New(fault.OutputLimit, "the agent's output of one turn reached the limit of %d MiB", mostTold>>20).
		With("limit_bytes", mostTold)
}

// endFlood kills the agent. A Recorder has no agent, and only records a notice.
func (c *Conversation) endFlood(t *turn) {
	switch {
	case c.mind == nil:
		c.record(event.Event{Kind: event.Notice, Turn: t.number, Synthetic: true, Text: t.fault.Message})
	case t == c.turn:
		c.kill()
	default:
		go c.mind.Kill()
	}
}
