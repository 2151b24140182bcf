//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// streams are the three standard streams of a child. A goroutine relays each one that is not a file.
type streams struct {
	given [3]*os.File // the child's ends
	close []*os.File  // those of them that we opened
	input *os.File    // our end of standard input, if it is relayed
	pumps []*pump
}

// pump copies from a pipe.
type pump struct {
	from *os.File
	to   io.Writer
	done chan error // gets one value
}

// openStreams creates the pipes. It opens the null device once, for reading and writing.
func openStreams(p Plan) (s *streams, err error) {
	s = &streams{}
	defer func() {
		if err != nil {
			s.abandon()
		}
	}()
	if f, ok := p.Stdin.(*os.File); ok {
		s.given[0] = f
	} else if p.Stdin != nil {
		var theirs *os.File
		if theirs, s.input, err = os.Pipe(); err != nil {
			return s, err
		}
		s.give(0, theirs)
	}
	for n, w := range []io.Writer{p.Stdout, p.Stderr} {
		if f, ok := w.(*os.File); ok {
			s.given[n+1] = f
		} else if n == 1 && w != nil && sameWriter(w, p.Stdout) {
			s.given[2] = s.given[1]
		} else if w != nil {
			ours, theirs, err := os.Pipe()
			if err != nil {
				return s, err
			}
			if n == 0 && p.Whole {
				keepWrites(theirs)
			}
			s.give(n+1, theirs)
			s.pumps = append(s.pumps, &pump{ours, w, make(chan error, 1)})
		}
	}
	for n, f := range s.given {
		if f != nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return s, err
		}
		s.give(n, null)
	}
	return s, nil
}

// sameWriter compares writers, also those that == panics on.
func sameWriter(a, b io.Writer) (same bool) {
	defer func() { _ = recover() }()
	return a == b
}

func (s *streams) give(n int, f *os.File) {
	s.given[n] = f
	s.close = append(s.close, f)
}

// descriptors returns the numbers of the child's ends. Fd makes those that we opened blocking, as programs expect.
func (s *streams) descriptors() []uintptr {
	return []uintptr{s.given[0].Fd(), s.given[1].Fd(), s.given[2].Fd()}
}

// abandon closes everything if the child was not started.
func (s *streams) abandon() {
	s.closeGiven()
	if s.input != nil {
		_ = s.input.Close()
	}
	for _, p := range s.pumps {
		_ = p.from.Close()
	}
}

// closeGiven closes the ends that only the child may hold.
func (s *streams) closeGiven() {
	for _, f := range s.close {
		_ = f.Close()
	}
	s.close = nil
}

// run starts the relays.
func (s *streams) run(stdin io.Reader) {
	if s.input != nil {
		go func() {
			_, _ = io.Copy(s.input, stdin) // a child that does not read is not an error
			_ = s.input.Close()
		}()
	}
	for _, p := range s.pumps {
		go func() { p.done <- p.run() }()
	}
}

// run copies to the end of the pipe, or until the deadline that finish sets, and then what is left in the pipe.
func (p *pump) run() error {
	_, err := io.Copy(p.to, onlyReader{p.from})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = p.drain()
	}
	_ = p.from.Close() // if the writer failed, the child gets a broken pipe, as it would without us
	return err
}

// onlyReader keeps io.Copy from using methods of the file that ignore deadlines.
type onlyReader struct{ io.Reader }

// drain copies what is in a pipe that another process keeps open, but no more than a pipe holds.
func (p *pump) drain() error {
	raw, err := p.from.SyscallConn()
	if err != nil {
		return err
	}
	if err = p.from.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for total := 0; total < 1<<20; {
		n, failed := 0, error(nil)
		err = raw.Read(func(fd uintptr) bool {
			for {
				if n, failed = syscall.Read(int(fd), block); !errors.Is(failed, syscall.EINTR) {
					return true
				}
			}
		})
		if err != nil || failed != nil || n <= 0 {
			break
		}
		if _, err = p.to.Write(block[:n]); err != nil {
			return err
		}
		total += n
	}
	return nil
}

// finish runs when the child's processes are dead. It waits until their output was passed on. It reads a pipe that
// another process keeps open for drainFor, and waits for a writer that blocks until asked is closed.
func (s *streams) finish(asked <-chan struct{}, hurry <-chan struct{}) (lost error) {
	if s.input != nil {
		_ = s.input.Close()
	}
	for _, p := range s.pumps {
		_ = p.from.SetReadDeadline(time.Now().Add(drainFor))
	}
	for _, p := range s.pumps {
		if err := p.wait(asked, hurry); err != nil && lost == nil {
			lost = err
		}
	}
	return lost
}

func (p *pump) wait(asked, hurry <-chan struct{}) error {
	select {
	case err := <-p.done:
		return err
	case <-asked:
	}
	over := time.NewTimer(drainFor)
	defer over.Stop()
	select {
	case err := <-p.done:
		return err
	case <-over.C:
	case <-hurry:
	}
	_ = p.from.Close()
	return os.ErrDeadlineExceeded
}
