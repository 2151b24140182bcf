package run

import (
	"time"

	"omniagent/internal/core/event"
)

// Progress is a report of an owner about its run.
type Progress struct {
	State  State        // the state that was entered; empty if Event is set
	Behind string       // the earlier run that a queued one waits behind, if any
	Event  *event.Event // an event of the running attempt's conversation
}

// lastWord is how long a Tell that blocks may delay a run that is over.
const lastWord = time.Second

// tell reports progress, and waits until Tell returns. Once the run is cancelled or out of time, it waits for at most
// lastWord, and if Tell still blocks then, never calls it again.
func (o *Owner) tell(p Progress) {
	if o.Tell == nil || o.unread {
		return
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		o.Tell(p)
	}()
	select {
	case <-told:
		return
	case <-o.over:
	}
	select {
	case <-told:
	case <-time.After(lastWord):
		o.unread = true
	}
}
