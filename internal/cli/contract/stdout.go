package contract

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// out is standard output: whole lines, one writer at a time, and a record of how writing went. A write may block as
// long as its reader likes, so the record has its own lock: reading it never waits for the reader.
//
//	open: beats and rows ─┬─ end ──────────────▶ last: only the answer is written
//	                      ├─ the reader leaves ▶ broken: nothing is written
//	                      └─ a write fails ────▶ err: nothing is written
type out struct {
	mu sync.Mutex // held while writing
	w  io.Writer

	stateMu sync.Mutex // guards the fields below; held only briefly
	err     error
	broken  bool // the reader has gone
	last    bool // the answer is written: nothing may follow
}

func (o *out) write(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(b)
}

// put writes unless an earlier write has failed. The caller holds mu.
func (o *out) put(b []byte) {
	if broken, err := o.state(); err != nil || broken {
		return
	}
	_, err := o.w.Write(b)
	o.stateMu.Lock()
	defer o.stateMu.Unlock()
	if o.broken = readerGone(err); !o.broken {
		o.err = err
	}
}

// beat writes what comes before the answer: a heartbeat, a row. It returns false once nothing more may come, or nobody
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

// end ensures that beat writes nothing from here on.
func (o *out) end() {
	o.stateMu.Lock()
	defer o.stateMu.Unlock()
	o.last = true
}

func (o *out) over() bool {
	o.stateMu.Lock()
	defer o.stateMu.Unlock()
	return o.last
}

func (o *out) state() (broken bool, err error) {
	o.stateMu.Lock()
	defer o.stateMu.Unlock()
	return o.broken, o.err
}

// stderrWriter is standard error. A reader that stops reading delays a call only briefly, and then gets nothing more.
type stderrWriter struct {
	mu   sync.Mutex
	w    io.Writer
	gone bool
	live int // width of the line that shows progress
	// asking means that a question is open, which no progress may overwrite.
	asking bool
	prompt bool // the last output is the prompt of a question, without a newline
}

func (p *stderrWriter) ask(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking = is
}

// prompted notes that the prompt of a question was written, or that a person has ended its line.
func (p *stderrWriter) prompted(is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prompt = is
}

// show replaces the line that shows progress, which has no newline; "" removes it.
func (p *stderrWriter) show(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := strings.Repeat(" ", max(0, p.live-len(line)))
	if p.live == 0 && line == "" || p.gone || p.asking {
		return
	}
	p.live = len(line)
	p.put([]byte("\r" + line + over + strings.Repeat("\b", len(over))))
	if line == "" {
		p.put([]byte("\r"))
	}
}

const patience = 2 * time.Second

func (p *stderrWriter) Write(b []byte) (int, error) {
	n := len(b)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live > 0 {
		b = append([]byte("\r"+strings.Repeat(" ", p.live)+"\r"), b...)
		p.live = 0
	}
	if p.prompt {
		b, p.prompt = append([]byte("\n"), b...), false
	}
	p.put(b)
	return n, nil
}

// put writes, and gives up on a reader that does not read.
func (p *stderrWriter) put(b []byte) {
	if p.gone {
		return
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
}

// deliver writes and waits. Once a signal says that the call is over, it does not wait for a reader that has stopped
// reading. A reader that still reads gets the answer in any case: the signal may have come before there was anything to
// write. over means that a time limit or a signal has already ended the call; then the reader has only a moment.
// deliver reports whether everything was written, and the signal that ended the wait.
func (o *out) deliver(b []byte, signals <-chan os.Signal, over bool) (os.Signal, bool) {
	var moment <-chan time.Time
	if over {
		moment = time.After(handlerGrace)
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
		case <-time.After(handlerGrace):
			return s, false
		}
	}
}
