package event

import (
	"context"
	"io"
	"sync"
)

// Queue hands events on, in order, from whoever tells them to whoever hears them. Its methods may be called by several goroutines.
type Queue struct {
	most int

	mu      sync.Mutex
	events  []Event
	changed chan struct{} // closed, and replaced, when something changed for those who wait
	free    bool          // nobody waits for room
	closed  bool
}

// NewQueue is a queue in which so many events may wait to be heard before Put waits; 0: any number.
func NewQueue(most int) *Queue {
	return &Queue{most: most, changed: make(chan struct{}), free: most <= 0}
}

// Put adds an event. It waits for room, until Free or Close. What comes after Close is not heard.
func (q *Queue) Put(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.events) >= q.most && !q.free {
		changed := q.changed
		q.mu.Unlock()
		<-changed
		q.mu.Lock()
	}
	if !q.closed {
		q.events = append(q.events, e)
		q.stir()
	}
}

// PutNow adds an event without waiting for room, for the few events whose teller must not wait: it may be the goroutine
// that listens.
func (q *Queue) PutNow(e Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.events = append(q.events, e)
		q.stir()
	}
}

// Next is the next event. It waits for one, until ctx ends; behind the last one is io.EOF.
func (q *Queue) Next(ctx context.Context) (Event, error) {
	for {
		q.mu.Lock()
		if len(q.events) > 0 {
			e := q.events[0]
			q.events[0] = Event{} // it may be large
			if q.events = q.events[1:]; len(q.events) == q.most-1 {
				q.stir()
			}
			q.mu.Unlock()
			return e, nil
		}
		closed, changed := q.closed, q.changed
		q.mu.Unlock()
		if closed {
			return Event{}, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

// Free says that nobody may be listening any more: Put waits no longer.
func (q *Queue) Free() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free = true
	q.stir()
}

// Close says that there will be no more. What was put before is still heard.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free, q.closed = true, true
	q.stir()
}

// stir wakes all who wait. It is called with the lock.
func (q *Queue) stir() {
	close(q.changed)
	q.changed = make(chan struct{})
}
