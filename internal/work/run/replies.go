package run

import (
	"sync"

	"omniagent/internal/core/event"
)

// replies holds back answers to questions until OnEvent has handled them. OnEvent takes a new index of the workspace,
// which must not include what the agent does with the answer.
type replies struct {
	mu     sync.Mutex
	seen   map[string]chan struct{} // by question; closed when OnEvent has returned
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

// await returns when See has handled the answer to a question, or the turn is over.
func (r *replies) await(question string) { <-r.of(question) }

// told records that See has handled an event.
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
