package cli

import (
	"slices"
	"time"

	"omniagent/internal/core/event"
)

// Calls collects the tool calls in the records of an agent. Its zero value is ready to use.
type Calls struct {
	all  []event.FinishedCall
	open map[string]int // the calls without a result, by their ids
}

// mostCalls limits the number of calls.
const mostCalls = 10000

// Begin adds a call.
func (c *Calls) Begin(call *event.Call, at time.Time) {
	if call == nil || len(c.all) == mostCalls {
		return
	}
	if c.open == nil {
		c.open = map[string]int{}
	}
	c.open[call.ID] = len(c.all)
	c.all = append(c.all, event.FinishedCall{Call: *call, Began: at, Ended: at})
}

// End adds the result of a call.
func (c *Calls) End(id string, at time.Time, failed bool) {
	if i, known := c.open[id]; known {
		delete(c.open, id)
		c.all[i].Ended, c.all[i].Failed = at, failed
	}
}

// Drop removes a call that was refused.
func (c *Calls) Drop(id string) {
	c.all = slices.DeleteFunc(c.all, func(d event.FinishedCall) bool { return d.ID == id })
	delete(c.open, id)
	for i := range c.all {
		if _, known := c.open[c.all[i].ID]; known {
			c.open[c.all[i].ID] = i
		}
	}
}

// Done returns the calls, in order.
func (c *Calls) Done() []event.FinishedCall { return c.all }
