package terminal

import (
	"context"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/term"

	"omniagent/internal/kit/fault"
	"omniagent/internal/term/keys"
)

// device is a console of Windows. It sends and takes the same sequences as a terminal of Unix once it is asked to.
type device struct {
	in     *os.File
	before *term.State
	mode   uint32 // of the output, as it was

	ctx     context.Context
	cancel  context.CancelFunc
	reading sync.Mutex // held while keys are read
}

func forget(fd int) error { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) }

func (d *device) open(in *os.File) error {
	d.in = in
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return nil
}

func (d *device) makeRaw() (err error) {
	if d.before, err = term.MakeRaw(int(d.in.Fd())); err != nil {
		return err
	}
	out := windows.Handle(os.Stdout.Fd())
	if windows.GetConsoleMode(out, &d.mode) == nil {
		_ = windows.SetConsoleMode(out, d.mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
	in := windows.Handle(d.in.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(in, &mode); err != nil {
		return err
	}
	return windows.SetConsoleMode(in, mode|windows.ENABLE_VIRTUAL_TERMINAL_INPUT)
}

// Waiting returns 0: how many bytes can be read at once is not known here.
func Waiting(*os.File) int { return 0 }

func (d *device) restore() error {
	_ = windows.SetConsoleMode(windows.Handle(os.Stdout.Fd()), d.mode)
	return term.Restore(int(d.in.Fd()), d.before)
}

func (d *device) close() { d.cancel() }

func (d *device) pause() { d.reading.Lock() }

func (d *device) resume() { d.reading.Unlock() }

const (
	look  = 20 * time.Millisecond  // how long a wait for keys is, so that a pause comes in
	sizes = 250 * time.Millisecond // how often the size is looked at, since no signal tells
)

// read delivers keys until the input ends or the terminal is closed.
func (t *Terminal) read() {
	defer close(t.input)
	d := &t.device
	defer d.cancel()
	var decoder keys.Decoder
	block := make([]byte, 1<<16)
	columns, rows := t.Size()
	seen := time.Now()
	for d.ctx.Err() == nil {
		found, err := d.next(&decoder, block)
		if time.Since(seen) > sizes {
			c, r := t.Size()
			if c != columns || r != rows {
				columns, rows = c, r
				found = append(found, keys.Key{Code: keys.Resize})
			}
			seen = time.Now()
		}
		for _, key := range found {
			if !t.deliver(d.ctx, key) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (d *device) next(decoder *keys.Decoder, block []byte) ([]keys.Key, error) {
	d.reading.Lock()
	defer d.reading.Unlock()
	wait, pending := decoder.Pending()
	if !pending {
		wait = look
	}
	event, err := windows.WaitForSingleObject(windows.Handle(d.in.Fd()), uint32(wait/time.Millisecond))
	switch {
	case err != nil:
		return nil, err
	case event == uint32(windows.WAIT_TIMEOUT) && pending:
		return decoder.Flush(), nil
	case event == uint32(windows.WAIT_TIMEOUT):
		return nil, nil
	}
	n, err := d.in.Read(block)
	return decoder.Feed(block[:n]), err
}

// Suspend is refused: Windows stops no programs.
func (t *Terminal) Suspend() error {
	return fault.New(fault.Unsupported, "this system cannot stop a program and let it go on")
}

// A console forgets its mode with the program that set it, so there is nothing to record.

func (d *device) attach(in *os.File) { d.in = in }

func (d *device) name() string { return "" }

func (d *device) states() (before, raw []byte) { return nil, nil }

func (d *device) repair(_, _ []byte) bool { return false }

func alive(int, string) bool { return false }

func born(int) string { return "" }
