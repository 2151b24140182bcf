package contract

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// out is standard output: whole lines, one writer at a time, and it remembers how writing went.
type out struct {
	mu     sync.Mutex
	w      io.Writer
	err    error
	broken bool // the reader has gone
	last   bool // the answer is written: nothing may follow it
}

func (o *out) write(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(b)
}

func (o *out) put(b []byte) {
	if o.err != nil || o.broken {
		return
	}
	_, err := o.w.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		o.broken = true
		return
	}
	o.err = err
}

// beat writes what comes before the answer: a sign of life, a row. It is false once nothing more may come, or nobody reads.
func (o *out) beat(b []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last {
		return false
	}
	o.put(b)
	return o.err == nil && !o.broken
}

// end promises that no sign of life comes from here on.
func (o *out) end() {
	o.mu.Lock()
	o.last = true
	o.mu.Unlock()
}

func (o *out) state() (broken bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.broken, o.err
}

// deliver writes and waits, but not for a reader that has stopped reading once a signal says that the call is over. Who reads gets the
// answer all the same: the signal may be one that was on its way before there was anything to write.
func (o *out) deliver(b []byte, signals <-chan os.Signal) (os.Signal, bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.write(b)
	}()
	select {
	case <-done:
		return nil, true
	case s := <-signals:
		select {
		case <-done:
			return nil, true
		case <-time.After(handGrace):
			return s, false
		}
	}
}
