package contract

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Main runs the program as the process that it is, and returns the exit status. The arguments are those without the
// program's name.
func (p *Program) Main(args []string) int {
	if PlainVersion(args, p.Version) {
		return 0
	}
	host := Process()
	host.Args = args
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// Caught and dropped, not ignored: writing to a closed pipe is then an error that we see, and children still get
	// the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	words, _ := p.split(host.Args)
	if c, known := p.Find(strings.Join(words, " ")); !known || c.Class == Envelope {
		if g := guardStdout(); g != nil {
			host.Stdout, host.stray = g.real, g.collect
		}
	}
	return p.Run(context.Background(), host, signals)
}

// PlainVersion answers the most frequent question of all before anything is set up. It says whether that was the
// question.
func PlainVersion(args []string, version string) bool {
	if len(args) != 1 || args[0] != "--version" && args[0] != "-V" {
		return false
	}
	_, err := os.Stdout.WriteString(version + "\n")
	return err == nil
}

// strayText is what others wrote to standard output, as far as it is kept.
type strayText struct {
	mu   sync.Mutex
	kept []byte
	done chan struct{}
}

const (
	strayLimit = 64 << 10
	strayWait  = 100 * time.Millisecond
)

func (s *strayText) read(r io.Reader) {
	defer close(s.done)
	buffer := make([]byte, 4<<10)
	for {
		n, err := r.Read(buffer)
		s.mu.Lock()
		s.kept = append(s.kept, buffer[:min(n, strayLimit-len(s.kept))]...)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// said is what there is so far. A child that was given our standard output may hold it open for ever: it is not waited
// for.
func (s *strayText) said() string {
	select {
	case <-s.done:
	case <-time.After(strayWait):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.kept)
}
