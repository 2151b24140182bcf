// Package terminal is the device that a person sits at: raw mode, size, keys.
//
// It promises that the terminal is put back exactly as it was: by Close, also in a deferred call while a program
// panics; at once when SIGTERM or SIGHUP comes, whose end it leaves to the caller; while the program is stopped by
// Suspend or lent by Lend; and, where the program was killed, by Recover in the next one on the same terminal. Keys
// arrive in order, whatever the terminal sends, with what was typed before. Nothing is written but what the caller
// writes and the few sequences that switch pastes and focus reports.
//
// It refuses any other file. It knows nothing of lines, prompts or screens.
package terminal

import (
	"context"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"omniagent/internal/kit/fault"
	"omniagent/internal/term/keys"
)

// Options say which device it is.
type Options struct {
	In, Out *os.File
	// State is the directory of the program's state. A file in it records how the terminal was, for Recover; empty:
	// none is written.
	State string
}

// Terminal is a terminal in raw mode. Its methods may be called from any goroutine.
type Terminal struct {
	in, out *os.File
	input   chan keys.Key
	device  device
	marker  marker

	mu     sync.Mutex
	raw    bool // the terminal is ours now
	closed bool
	front  bool

	write sync.Mutex // a frame is never torn by a sequence of ours
}

// Switched on: pastes come in brackets, and the terminal tells when its window comes to the front. Switched off as
// well: a style and a hidden cursor that the last frame left.
const (
	begin = "\x1b[?2004h\x1b[?1004h"
	end   = "\x1b[?2004l\x1b[?1004l\x1b[m\x1b[?25h"
)

// Open makes a terminal raw and begins to read keys. Close it.
func Open(o Options) (*Terminal, error) {
	if !term.IsTerminal(int(o.In.Fd())) || !term.IsTerminal(int(o.Out.Fd())) {
		return nil, fault.New(fault.StdinRequired, "this needs a terminal for input and output")
	}
	t := &Terminal{in: o.In, out: o.Out, input: make(chan keys.Key, 64), front: true}
	if err := t.device.open(o.In); err != nil {
		return nil, failed("prepared", err)
	}
	t.marker = mark(o.State, &t.device)
	t.marker.write(&t.device) // first, so that there is no moment in which a raw terminal has none
	if err := t.start(); err != nil {
		t.marker.remove()
		t.device.close()
		return nil, failed("made raw", err)
	}
	go t.read()
	return t, nil
}

func failed(what string, err error) error {
	return fault.New(fault.Internal, "the terminal cannot be %s: %v", what, err).Because(err)
}

// start makes the terminal raw.
func (t *Terminal) start() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.raw || t.closed {
		return nil
	}
	if err := t.device.makeRaw(); err != nil {
		return err
	}
	t.raw = true
	t.send(begin)
	return nil
}

// stop puts the terminal back.
func (t *Terminal) stop() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.raw {
		return nil
	}
	t.raw = false
	t.send(end)
	return t.device.restore()
}

func (t *Terminal) send(sequence string) {
	t.write.Lock()
	defer t.write.Unlock()
	_, _ = t.out.WriteString(sequence)
}

// Close puts the terminal back as it was. Input ends. It may be called more than once.
func (t *Terminal) Close() error {
	err := t.stop()
	t.mu.Lock()
	again := t.closed
	t.closed = true
	t.mu.Unlock()
	if again {
		return nil
	}
	t.device.close()
	t.marker.remove()
	if err != nil {
		return failed("put back", err)
	}
	return nil
}

// Input returns the keys, and Resize and Continue in their order. It is closed when nothing can come any more.
func (t *Terminal) Input() <-chan keys.Key { return t.input }

// Write writes to the terminal.
func (t *Terminal) Write(p []byte) (int, error) {
	t.write.Lock()
	defer t.write.Unlock()
	return t.out.Write(p)
}

// Size returns the columns and rows of the window; 80 and 24 if they are not known.
func (t *Terminal) Size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// Front reports whether the window is in front, as far as the terminal tells; true if it does not.
func (t *Terminal) Front() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.front
}

// Lend puts the terminal back, lets another program have it for the time of use, and takes it again. No key is read
// meanwhile.
func (t *Terminal) Lend(use func() error) error {
	t.device.pause()
	defer t.device.resume()
	if err := t.stop(); err != nil {
		return failed("put back", err)
	}
	used := use()
	if err := t.start(); err != nil {
		return failed("made raw", err)
	}
	return used
}

// deliver passes a key on. It reports whether anybody takes keys.
func (t *Terminal) deliver(ctx context.Context, key keys.Key) bool {
	if key.Code == keys.FocusIn || key.Code == keys.FocusOut {
		t.mu.Lock()
		t.front = key.Code == keys.FocusIn
		t.mu.Unlock()
	}
	select {
	case t.input <- key:
		return true
	case <-ctx.Done():
		return false
	}
}

// In returns the file for input, for a program that the terminal is lent to.
func (t *Terminal) In() *os.File { return t.in }

// Out returns the file for output.
func (t *Terminal) Out() *os.File { return t.out }

// Forget drops what was typed and not read, so that it cannot answer a question that comes later.
func Forget(in io.Reader) {
	if f, is := in.(*os.File); is && term.IsTerminal(int(f.Fd())) {
		_ = forget(int(f.Fd()))
	}
}

// ReadLine reads what a person types up to Enter, and not a byte beyond it: the rest belongs to others.
func ReadLine(in io.Reader) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		n, err := in.Read(one)
		switch {
		case n == 1 && one[0] == '\n', n == 1 && one[0] == '\r':
			return string(line), nil
		case n == 1:
			line = append(line, one[0])
		}
		if err != nil {
			return string(line), err
		}
	}
}
