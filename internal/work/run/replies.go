package run

import (
	"sync"

	"omniagent/internal/core/event"
)

// replies hold back the answers to questions until the run has seen that they were given: it makes its index of the
// workspace again then, and what the agent does with an answer must not be part of that.
type replies struct {
	mu     sync.Mutex
	seen   map[string]chan struct{} // by question; closed when See has returned
	closed bool
}

func (r *replies) of(question string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]chan struct{}{}
	}
	if r.seen[question] == nil {
		r.seen[question] = make(chan struct{})
		if r.closed {
			close(r.seen[question])
		}
	}
	return r.seen[question]
}

// await returns when the run has seen the answer to a question, or is over.
func (r *replies) await(question string) { <-r.of(question) }

// told records that See has returned from an event.
func (r *replies) told(e event.Event) {
	if e.Kind != event.Replied {
		return
	}
	seen := r.of(e.Reply.Question)
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-seen:
	default:
		close(seen)
	}
}

// close lets every answer pass.
func (r *replies) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, seen := range r.seen {
		select {
		case <-seen:
		default:
			close(seen)
		}
	}
}
