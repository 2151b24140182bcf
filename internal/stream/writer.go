package stream

import (
	"errors"
	"io"
	"sync"
)

// writer stands between us and a side that may not read: lines are written in their order, one after the other, and who has one to write waits
// for nothing but room.
type writer struct {
	lines   chan []byte
	over    chan struct{} // closed when no more will come
	written chan struct{} // closed when all of them are, or none can be any more
	hurry   chan struct{} // closed when nothing is waited for any more
	failure error         // of the writing; read it behind written
	end     sync.Once
}

func newWriter(out io.Writer) *writer {
	w := &writer{lines: make(chan []byte, 64), over: make(chan struct{}), written: make(chan struct{}), hurry: make(chan struct{})}
	go func() {
		defer close(w.written)
		for {
			select {
			case line := <-w.lines:
				if _, w.failure = out.Write(line); w.failure != nil {
					return
				}
			case <-w.over:
				for {
					select {
					case line := <-w.lines:
						if _, w.failure = out.Write(line); w.failure != nil {
							return
						}
					default:
						return
					}
				}
			}
		}
	}()
	return w
}

// put takes a line. The error says that it will not be written.
func (w *writer) put(line []byte) error {
	select {
	case <-w.written:
		return w.gone()
	case w.lines <- line:
		return nil
	default:
	}
	select {
	case w.lines <- line:
		return nil
	case <-w.written:
		return w.gone()
	case <-w.hurry:
		return errors.New("nobody reads it")
	}
}

func (w *writer) gone() error {
	if w.failure == nil {
		return errors.New("nobody reads it")
	}
	return w.failure
}

// finish says that no more will come.
func (w *writer) finish() { w.end.Do(func() { close(w.over) }) }
