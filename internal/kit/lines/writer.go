package lines

import (
	"io"
	"sync"
)

// Full is how many lines wait when a Writer counts as full.
const Full = 64

// Writer writes lines to a reader that may not read. Put never waits; Send waits while the writer is full.
type Writer struct {
	written chan struct{}
	failure error // read it behind written

	mu     sync.Mutex
	filled sync.Cond
	room   chan struct{} // closed when the writer is no longer full
	lines  [][]byte      // first the one that is being written
	count  int64         // of those that were
	over   bool          // no more will come
}

// NewWriter begins to write what it is given.
func NewWriter(out io.Writer) *Writer {
	w := &Writer{room: make(chan struct{}), written: make(chan struct{})}
	w.filled.L = &w.mu
	go w.run(out)
	return w
}

func (w *Writer) run(out io.Writer) {
	defer close(w.written)
	for line := w.next(); line != nil; line = w.next() {
		if _, w.failure = out.Write(line); w.failure != nil {
			return
		}
		w.wrote()
	}
}

// next waits for a line. nil: no more will come.
func (w *Writer) next() []byte {
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

func (w *Writer) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	w.lines[0] = nil
	if w.lines = w.lines[1:]; len(w.lines) == Full-1 {
		close(w.room)
		w.room = make(chan struct{})
	}
}

// Put takes a line, with its end.
func (w *Writer) Put(line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, line)
	w.filled.Signal()
}

// Send takes a line when there is room. not ok: stop was closed before, or nothing can be written any more.
func (w *Writer) Send(line []byte, stop <-chan struct{}) (ok bool) {
	for {
		select {
		case <-w.written:
			return false
		default:
		}
		room, taken := w.offer(line)
		if taken {
			return true
		}
		select {
		case <-room:
		case <-w.written:
			return false
		case <-stop:
			return false
		}
	}
}

// Offer takes a line if there is room.
func (w *Writer) Offer(line []byte) (ok bool) {
	_, ok = w.offer(line)
	return ok
}

func (w *Writer) offer(line []byte) (room <-chan struct{}, taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) >= Full {
		return w.room, false
	}
	w.lines = append(w.lines, line)
	w.filled.Signal()
	return nil, true
}

// Room returns a channel that is closed when the writer is no longer full.
func (w *Writer) Room() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.room
}

// State returns how many lines wait, and how many were written.
func (w *Writer) State() (waiting int, written int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines), w.count
}

// Finish says that no more lines will come.
func (w *Writer) Finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.filled.Signal()
}

// Written returns a channel that is closed when all lines are written, or writing has failed.
func (w *Writer) Written() <-chan struct{} { return w.written }

// Err returns why writing failed. It may be called once Written is closed.
func (w *Writer) Err() error { return w.failure }
