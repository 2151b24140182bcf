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

	"omniagent/internal/sys/process"
)

// Main runs the program for this process and returns the exit status. args are the arguments without the program's
// name.
func (p *Program) Main(args []string) int {
	if PlainVersion(args, p.Version) {
		return 0
	}
	host := Process()
	host.Args = args
	signals := make(chan os.Signal, 4)
	process.NotifyOfEnd(signals)
	// Caught and dropped, not ignored: a write to a closed pipe then returns an error, and children still get
	// the default.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	words, _ := p.split(host.Args)
	if c, known := p.Find(strings.Join(words, " ")); !known || c.Class.enveloped() {
		if g := guardStdout(); g != nil {
			host.Stdout, host.stray = g.real, g.collect
		}
	}
	return p.Run(context.Background(), host, signals)
}

// PlainVersion answers the most frequent query, for the version, before anything is set up. It reports whether that was
// the query.
func PlainVersion(args []string, version string) bool {
	if len(args) != 1 || args[0] != "--version" && args[0] != "-V" {
		return false
	}
	_, err := os.Stdout.WriteString(version + "\n")
	return err == nil
}

// strayText is what other code wrote to standard output, up to a limit.
type strayText struct {
	mu   sync.Mutex
	data []byte
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
		s.data = append(s.data, buffer[:min(n, strayLimit-len(s.data))]...)
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// output returns the text so far. It does not wait for a child that holds our standard output open.
func (s *strayText) output() string {
	select {
	case <-s.done:
	case <-time.After(strayWait):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.data)
}
