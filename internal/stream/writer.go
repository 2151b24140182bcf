package stream

import (
	"io"
	"sync"
)

// writer stands between us and a side that may not read. put never waits; who has much to write looks at full first.
type writer struct {
	room    chan struct{} // filled when it is full no more
	written chan struct{} // closed when all lines are written, or none can be any more
	failure error         // of the writing; read it behind written

	mu     sync.Mutex
	filled sync.Cond
	lines  [][]byte // first the one that is being written
	over   bool     // no more will come
}

// fullAt is how many lines wait when the writer counts as full.
const fullAt = 64

func newWriter(out io.Writer) *writer {
	w := &writer{room: make(chan struct{}, 1), written: make(chan struct{})}
	w.filled.L = &w.mu
	go w.run(out)
	return w
}

func (w *writer) run(out io.Writer) {
	defer close(w.written)
	for line := w.next(); line != nil; line = w.next() {
		if _, w.failure = out.Write(line); w.failure != nil {
			return
		}
		w.wrote()
	}
}

// next waits for a line. nil: no more will come.
func (w *writer) next() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.lines) == 0 && !w.over {
		w.filled.Wait()
	}
	if len(w.lines) == 0 {
		return nil
	}
	return w.lines[0]
}

func (w *writer) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines[0] = nil
	if w.lines = w.lines[1:]; len(w.lines) == fullAt-1 {
		select {
		case w.room <- struct{}{}:
		default:
		}
	}
}

// put takes a line.
func (w *writer) put(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	w.filled.Signal()
}

// waiting is how many lines are not written.
func (w *writer) waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines)
}

// finish says that no more will come.
func (w *writer) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.filled.Signal()
}
