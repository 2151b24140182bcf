package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"omniagent/internal/core/event"
)

// item is an event of a Mind, or a function for run to call.
type item struct {
	event      *event.Event
	generation int
	do         func()
}

// inbox is the queue of run. Adding an event blocks while the inbox is full; adding a function never blocks.
type inbox struct {
	mu      sync.Mutex
	room    sync.Cond // for events
	filled  sync.Cond
	items   []item
	spare   []item
	closed  bool
	waiting int // events among items
	size    int // of these events
}

// The limits of the events that wait for the journal. At a limit, the agent has to wait.
const (
	mostEvents = 256
	mostBytes  = 1 << 20
)

func (b *inbox) init() { b.room.L, b.filled.L = &b.mu, &b.mu }

// tell adds an event. It blocks while the inbox is full, that is, until run has written to the disk.
func (b *inbox) tell(i item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for (b.waiting >= mostEvents || b.size >= mostBytes) && !b.closed {
		b.room.Wait()
	}
	if !b.closed {
		b.waiting++
		if i.event != nil {
			b.size += weight(i.event)
		}
		b.add(i)
	}
}

// post adds a function and returns at once.
func (b *inbox) post(do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.add(item{do: do})
	}
}

func (b *inbox) add(i item) {
	b.items = append(b.items, i)
	b.filled.Signal()
}

// take waits for items and returns all of them. They are valid until the next call.
func (b *inbox) take() []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.items) == 0 {
		b.filled.Wait()
	}
	items := b.items
	clear(b.spare)
	b.items, b.spare, b.waiting, b.size = b.spare[:0], items, 0, 0
	b.room.Broadcast()
	return items
}

// close makes the inbox ignore what is added later.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.room.Broadcast()
}

// hash returns the hash of the line that an event was read from, or "" without a line.
func hash(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}
