package measure

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/creack/pty"
)

// Echo is the program to compare keys with: raw mode, a ticker for the tokens, and each key printed as it comes.
const Echo = `package main

import (
	"os"
	"os/exec"
	"time"
)

func main() {
	raw := exec.Command("stty", "raw", "-echo")
	raw.Stdin = os.Stdin
	_ = raw.Run()
	typed := make(chan byte)
	go func() {
		for b := make([]byte, 1); ; typed <- b[0] {
			_, _ = os.Stdin.Read(b)
		}
	}()
	os.Stdout.WriteString("> ")
	for tick := time.Tick(time.Millisecond); ; {
		select {
		case b := <-typed:
			os.Stdout.Write([]byte{b})
		case <-tick:
			os.Stdout.WriteString("word ")
		}
	}
}
`

// shown is longer than anything takes on a screen.
const shown = 60 * time.Second

// Screen is a program on a pseudo terminal of 80 columns and 24 rows.
type Screen struct {
	Cmd    *exec.Cmd
	master *os.File
	mu     sync.Mutex
	all    []byte
	at     []time.Time // when each byte came
	grew   chan struct{}
}

// Sit starts a program on a terminal.
func Sit(file string, args ...string) (*Screen, error) {
	cmd := exec.Command(file, args...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=")
	return SitAt(cmd)
}

// SitAt starts a command on a terminal.
func SitAt(cmd *exec.Cmd) (*Screen, error) {
	s := &Screen{Cmd: cmd, grew: make(chan struct{}, 1)}
	master, err := pty.StartWithSize(s.Cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		return nil, err
	}
	s.master = master
	go s.read()
	return s, nil
}

func (s *Screen) read() {
	block := make([]byte, 1<<16)
	for {
		n, err := s.master.Read(block)
		now := time.Now()
		s.mu.Lock()
		s.all = append(s.all, block[:n]...)
		for range n {
			s.at = append(s.at, now)
		}
		s.mu.Unlock()
		select {
		case s.grew <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Type presses keys.
func (s *Screen) Type(keys string) error {
	_, err := s.master.WriteString(keys)
	return err
}

// Close kills the program.
func (s *Screen) Close() {
	_ = s.Cmd.Process.Kill()
	_ = s.Cmd.Wait()
	_ = s.master.Close()
}

// Size returns how many bytes the program has written.
func (s *Screen) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// Await returns when a text came, behind the first so many bytes.
func (s *Screen) Await(text string, from int) (time.Time, error) {
	limit := time.After(shown)
	for {
		s.mu.Lock()
		i := bytes.Index(s.all[from:], []byte(text))
		var at time.Time
		if i >= 0 {
			at = s.at[from+i+len(text)-1]
		}
		s.mu.Unlock()
		if i >= 0 {
			return at, nil
		}
		select {
		case <-s.grew:
		case <-limit:
			s.mu.Lock()
			defer s.mu.Unlock()
			return at, fmt.Errorf("no %q came; the last bytes are %q", text, s.all[max(0, len(s.all)-300):])
		}
	}
}
