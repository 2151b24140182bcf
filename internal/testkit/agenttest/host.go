//go:build unix

package agenttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/session"
)

// host is the built program as a host, and a client of it.
type host struct {
	t     *testing.T
	p     *place
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}
	name  string // of the conversation, as soon as it is known

	mu      sync.Mutex
	stderr  bytes.Buffer
	lines   []string
	grew    chan struct{}
	stopped bool // the client reads no more
	slim    bool // long lines are not kept
	resume  chan struct{}
}

// launch starts the program.
func launch(t *testing.T, s Subject, w wish, built Built, args ...string) *host {
	t.Helper()
	h := &host{t: t, p: w.in, ended: make(chan struct{}), grew: make(chan struct{}), resume: make(chan struct{})}
	h.cmd = exec.Command(string(built), args...)
	h.cmd.Dir = w.in.work
	h.cmd.Env = append(slices.Clone(w.in.env), "OMNIAGENT_GRACE="+w.grace.String())
	h.cmd.Env = append(h.cmd.Env, w.in.more...)
	h.cmd.Stderr = h
	var err error
	if h.in, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		<-h.ended
		if t.Failed() {
			t.Logf("%q wrote to standard error:\n%s", h.cmd.Args[1:], h.errors())
		}
	})
	go h.listen(out)
	return h
}

// Write keeps what goes to standard error.
func (h *host) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.Write(data)
}

func (h *host) errors() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stderr.String()
}

func (h *host) listen(out io.Reader) {
	defer close(h.ended)
	in := bufio.NewReaderSize(out, 64<<10)
	for {
		h.mu.Lock()
		stopped := h.stopped
		h.mu.Unlock()
		if stopped {
			<-h.resume
		}
		line, err := in.ReadString('\n')
		h.mu.Lock()
		if line != "" && !(h.slim && len(line) > floodPiece) {
			h.lines = append(h.lines, trimmed(line))
		}
		close(h.grew)
		h.grew = make(chan struct{})
		h.mu.Unlock()
		if err != nil {
			_ = h.cmd.Wait()
			return
		}
	}
}

// printed returns the lines so far.
func (h *host) printed() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// await waits for a line that matches, from index from on, and returns it and the index after it.
func (h *host) await(what string, from int, match func(line string) bool) (string, int) {
	h.t.Helper()
	over := time.NewTimer(patience)
	defer over.Stop()
	for ended := false; ; {
		h.mu.Lock()
		grew, lines := h.grew, h.lines
		h.mu.Unlock()
		for i := from; i < len(lines); i++ {
			if match(lines[i]) {
				return lines[i], i + 1
			}
		}
		if ended {
			h.t.Fatalf("it ended without %s:\n%s\n%s", what, strings.Join(lines, "\n"), h.errors())
		}
		select {
		case <-grew:
		case <-h.ended:
			ended = true
		case <-over.C:
			h.t.Fatalf("no %s:\n%s\n%s", what, strings.Join(lines, "\n"), h.errors())
		}
	}
}

// frame writes a line.
func (h *host) frame(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = h.in.Write(append(data, '\n'))
	return err
}

// close ends the program as a system that shuts down does.
func (h *host) close() error {
	_ = h.cmd.Process.Signal(syscall.SIGTERM)
	return h.wait()
}

// hangUp closes its input.
func (h *host) hangUp() error {
	_ = h.in.Close()
	return h.wait()
}

func (h *host) wait() error {
	select {
	case <-h.ended:
		return nil
	case <-time.After(patience):
		return errors.New("the program does not end: " + h.errors())
	}
}

// next reads the journal from the first record to its end, while the program writes it.
func (h *host) next(name func() string) func(context.Context) (event.Event, error) {
	var r *session.Reader
	return func(ctx context.Context) (event.Event, error) {
		for {
			ended := false
			select {
			case <-h.ended:
				ended = true
			default:
			}
			if r == nil && name() != "" {
				r, _ = h.p.store().Reader(name(), 1, false) // not there yet
			}
			if r != nil {
				switch e, err := r.Next(ctx); {
				case err == nil && e.Event() != nil:
					return *e.Event(), nil
				case err == nil:
					continue
				case !errors.Is(err, io.EOF):
					return event.Event{}, err
				}
			}
			if ended {
				return event.Event{}, io.EOF
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return event.Event{}, ctx.Err()
			}
		}
	}
}

// agentArgs returns the flags that choose the agent and its model.
func (s Subject) agentArgs(p *place) []string {
	if s.Driver == nil {
		return []string{"--provider", "anthropic", "--model", "claude-sonnet-5-5", "--api-base", p.model.URL()}
	}
	return []string{"--agent", s.Driver.Name()}
}

// names gives each conversation a name of its own.
func newName(t *testing.T) string {
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", time.Now().UnixNano()&0xffffffffffff)
}

// stop makes the client read nothing more, until goOn.
func (h *host) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
}

func (h *host) goOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		h.stopped = false
		close(h.resume)
	}
}

// memory returns the peak memory of the program.
func (h *host) memory() int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return int64(number(strings.Fields(rest)[0])) << 10
		}
	}
	return 0
}

// modeFlag returns a mode as a value of --permission-mode.
func modeFlag(m setting.Approval) string {
	if m == setting.Yolo {
		return "auto"
	}
	return string(m)
}
