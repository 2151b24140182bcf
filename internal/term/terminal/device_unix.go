//go:build unix

package terminal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
	"omniagent/internal/term/keys"
)

// device is a terminal of Unix.
type device struct {
	fd     int
	before unix.Termios // as it was
	raw    unix.Termios // as we set it

	wake    [2]*os.File // a pipe: a byte in it ends the wait for keys
	signals chan os.Signal
	ctx     context.Context
	cancel  context.CancelFunc
	gate    sync.Mutex    // held by a pause, and passed by the reader before each wait
	reading sync.Mutex    // held while keys are read
	early   atomic.Int64  // bytes that were typed before the terminal was raw
	asked   atomic.Bool   // the next SIGCONT ends a stop that Suspend asked for
	resumed chan struct{} // tells Suspend that it came
}

func (d *device) open(in *os.File) error {
	d.fd = int(in.Fd())
	now, err := unix.IoctlGetTermios(d.fd, getTermios)
	if err != nil {
		return err
	}
	if d.wake[0], d.wake[1], err = os.Pipe(); err != nil {
		return err
	}
	d.before, d.raw = *now, rawOf(*now)
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.signals = make(chan os.Signal, 8)
	d.resumed = make(chan struct{}, 1)
	signal.Notify(d.signals, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTERM, syscall.SIGHUP)
	return nil
}

// rawOf returns the raw mode that belongs to a state: every byte comes and goes at once and unchanged.
func rawOf(s unix.Termios) unix.Termios {
	s.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	s.Oflag &^= unix.OPOST
	s.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	s.Cflag &^= unix.CSIZE | unix.PARENB
	s.Cflag |= unix.CS8
	s.Cc[unix.VMIN], s.Cc[unix.VTIME] = 1, 0
	return s
}

// makeRaw also counts the bytes that were typed before: the terminal has turned Enter into newlines in them.
func (d *device) makeRaw() error {
	if err := unix.IoctlSetTermios(d.fd, setTermios, &d.raw); err != nil {
		return err
	}
	if n, err := unix.IoctlGetInt(d.fd, countInput); err == nil {
		d.early.Store(int64(n))
	}
	return nil
}

// Waiting returns how many bytes can be read from f at once: of a pipe, a socket or a terminal; 0 if it is not known.
func Waiting(f *os.File) int {
	n, err := unix.IoctlGetInt(int(f.Fd()), countInput)
	if err != nil {
		return 0
	}
	return n
}

func (d *device) restore() error { return unix.IoctlSetTermios(d.fd, setTermios, &d.before) }

// close ends the wait for keys and for signals.
func (d *device) close() {
	signal.Stop(d.signals)
	d.cancel()
	_ = d.wake[1].Close()
}

// pause returns when no key is being read, and none will be until resume.
func (d *device) pause() {
	d.gate.Lock()
	_, _ = d.wake[1].Write([]byte{0})
	d.reading.Lock()
}

func (d *device) resume() {
	d.reading.Unlock()
	d.gate.Unlock()
}

// read delivers keys until the input ends or the terminal is closed.
func (t *Terminal) read() {
	defer close(t.input)
	d := &t.device
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.follow()
	}()
	defer func() { <-done }()
	defer d.cancel()
	defer d.wake[0].Close()
	var decoder keys.Decoder
	block := make([]byte, 1<<16)
	for d.ctx.Err() == nil {
		found, err := d.next(&decoder, block)
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

var errEnded = errors.New("the terminal has gone")

// next waits for bytes, for the wake pipe or until what is pending has to be resolved.
func (d *device) next(decoder *keys.Decoder, block []byte) ([]keys.Key, error) {
	d.gate.Lock()
	d.reading.Lock()
	d.gate.Unlock()
	defer d.reading.Unlock()
	if d.ctx.Err() != nil {
		return nil, errEnded
	}
	wake := int(d.wake[0].Fd())
	var set unix.FdSet
	set.Set(d.fd)
	set.Set(wake)
	var limit *unix.Timeval
	if wait, pending := decoder.Pending(); pending {
		tv := unix.NsecToTimeval(int64(wait / time.Nanosecond))
		limit = &tv
	}
	n, err := unix.Select(max(d.fd, wake)+1, &set, nil, nil, limit)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil, nil
	case err != nil:
		return nil, err
	case n == 0:
		return decoder.Flush(), nil
	case set.IsSet(wake):
		_, err := d.wake[0].Read(block[:1])
		return nil, err // closed: the end
	}
	n, err = unix.Read(d.fd, block)
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return nil, nil
	case err != nil:
		return nil, err
	case n == 0:
		return decoder.Flush(), errEnded
	}
	if early := min(d.early.Load(), int64(n)); early > 0 {
		d.early.Add(-early)
		copy(block, bytes.ReplaceAll(block[:early], []byte("\n"), []byte("\r")))
	}
	return decoder.Feed(block[:n]), nil
}

// follow handles signals.
func (t *Terminal) follow() {
	d := &t.device
	for {
		select {
		case <-d.ctx.Done():
			return
		case s := <-d.signals:
			switch s {
			case syscall.SIGWINCH:
				t.deliver(d.ctx, keys.Key{Code: keys.Resize})
			case syscall.SIGCONT:
				t.continued()
			default: // the caller ends the program, but that may take a while
				_ = t.stop()
			}
		}
	}
}

// continued makes the terminal raw again after a stop that we did not ask for: the shell has changed it.
func (t *Terminal) continued() {
	if t.device.asked.Swap(false) {
		t.device.resumed <- struct{}{}
		return
	}
	t.mu.Lock()
	ours := t.raw
	if ours {
		_ = t.device.makeRaw()
		t.send(begin)
	}
	t.mu.Unlock()
	if ours {
		t.deliver(t.device.ctx, keys.Key{Code: keys.Continue})
	}
}

// Suspend stops the program and everything in its process group, as Ctrl-Z does in a shell, with the terminal as it
// was. It returns when the program goes on.
func (t *Terminal) Suspend() error {
	return t.Lend(func() error {
		t.device.asked.Store(true)
		process.StopSelf()
		select {
		case <-t.device.resumed:
		case <-time.After(time.Second): // nobody could continue us, so the system did not stop us
			t.device.asked.Store(false)
		}
		return nil
	})
}
