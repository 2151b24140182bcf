package contract

import (
	"io"
	"os"
	"sync"
	"time"
)

// out is standard output: whole lines, one writer at a time, and it remembers how writing went. A write may block for
// as long as its reader likes, so what is remembered has a lock of its own: nobody has to wait for a reader to learn
// how things stand.
type out struct {
	mu sync.Mutex // held while writing
	w  io.Writer

	known  sync.Mutex
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
	if broken, err := o.state(); err != nil || broken {
		return
	}
	_, err := o.w.Write(b)
	o.known.Lock()
	defer o.known.Unlock()
	if o.broken = readerGone(err); !o.broken {
		o.err = err
	}
}

// beat writes what comes before the answer: a sign of life, a row. It is false once nothing more may come, or nobody
// reads.
func (o *out) beat(b []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over() {
		return false
	}
	o.put(b)
	broken, err := o.state()
	return err == nil && !broken
}

// end promises that no sign of life comes from here on.
func (o *out) end() {
	o.known.Lock()
	defer o.known.Unlock()
	o.last = true
}

func (o *out) over() bool {
	o.known.Lock()
	defer o.known.Unlock()
	return o.last
}

func (o *out) state() (broken bool, err error) {
	o.known.Lock()
	defer o.known.Unlock()
	return o.broken, o.err
}

// patient is standard error: a reader that stopped reading holds nobody up for long, and then it hears nothing more.
type patient struct {
	mu   sync.Mutex
	w    io.Writer
	gone bool
}

const patience = 2 * time.Second

func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return len(b), nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.w.Write(b)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		p.gone = true
	}
	return len(b), nil
}

// deliver writes and waits, but not for a reader that has stopped reading once a signal says that the call is over. Who
// reads gets the answer all the same: the signal may be one that was on its way before there was anything to write. A
// call that was already ended by its clock or by a signal is over: then the reader has only a moment.
func (o *out) deliver(b []byte, signals <-chan os.Signal, over bool) (os.Signal, bool) {
	var moment <-chan time.Time
	if over {
		moment = time.After(handGrace)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.write(b)
	}()
	select {
	case <-done:
		return nil, true
	case <-moment:
		return nil, false
	case s := <-signals:
		select {
		case <-done:
			return nil, true
		case <-time.After(handGrace):
			return s, false
		}
	}
}
