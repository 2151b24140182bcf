// Package relay is a host and an agent that speak the same lines: Claude Code's stream-json on both sides. What one
// says goes to the other as it is.
//
// It promises that nothing of the agent's lines is changed or waited for, and that it costs no memory while it goes on;
// that a line of the host which the agent would die of (it is no JSON, too long, or of a type that there is not) is
// passed over and named, so that the conversation lives on; that a host which goes away takes the turn with it, and
// nothing survives; and an exit code that says how it went, as everywhere else. It refuses to look deeper: which flags
// the agent is started with, and whether it may be, is decided before.
package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/lines"
	"omniagent/internal/process"
	"omniagent/internal/text"
)

// Relay is one conversation.
type Relay struct {
	Launch  agent.Launch
	Name    string // of the program, as it is told to be called
	In      io.Reader
	Out     io.Writer
	Log     func(format string, args ...any) // for people
	Signals <-chan os.Signal
	Grace   time.Duration
	Stays   bool // it answers messages as long as In lasts: then a turn that failed is no exit code
	Quiet   bool // a denial is what was asked for
	Record  Record
}

// Record takes copies of what passes; nil: nothing does. It may be called from two goroutines.
type Record interface {
	Host(line []byte)  // a line that the agent is about to get
	Agent(data []byte) // what the host has got, cut anywhere
}

// The exit codes, which are those of an agent.
const (
	done    = 0
	failed  = 1
	usage   = 2
	blocked = 3
)

// Run relays until the agent has ended, and returns the exit code. The error is why it could not be started.
func (r Relay) Run(ctx context.Context) (int, error) {
	watch := NewWatch(r.Out)
	watch.record = r.Record
	in, feed := io.Pipe()
	started := make(chan struct{})
	var child *process.Child
	watch.gone = func() {
		<-started
		child.End(syscall.SIGTERM)
	}
	var err error
	child, err = process.Start(process.Plan{
		Path: r.Launch.Path, Argv: append([]string{r.Name}, r.Launch.Args...), Dir: r.Launch.Dir, Env: r.Launch.Env,
		Stdin: in, Stdout: watch, Stderr: tail{r.Log}, Grace: r.Grace,
	})
	if err != nil {
		return 0, err
	}
	close(started)
	over := make(chan struct{})
	go func() {
		defer feed.Close()
		r.forward(feed)
	}()
	go func() {
		select {
		case <-process.Unheard(r.Out):
			watch.lose(errors.New("nobody reads it"))
		case <-over:
		}
	}()
	heard := make(chan os.Signal, 1)
	go func() {
		select {
		case s := <-r.Signals:
			heard <- s
			child.End(s)
			select {
			case <-r.Signals:
				child.End(os.Kill)
			case <-over:
			}
		case <-ctx.Done():
			child.End(syscall.SIGTERM)
		case <-over:
		}
	}()
	end := child.Wait()
	close(over)
	_ = in.Close()
	select {
	case s := <-heard:
		if number, ok := s.(syscall.Signal); ok {
			return 128 + int(number), nil
		}
	default:
	}
	return r.code(end, watch), nil
}

func (r Relay) code(end process.Ending, w *Watch) int {
	last, lost := w.Last()
	switch {
	case lost != nil:
		r.Log("standard output cannot be written: %v", lost)
		return failed
	case end.ExitCode != 0 && slices.Contains(r.Launch.UsageCodes, end.ExitCode):
		return usage
	case end.Signal != "":
		r.Log("the agent was ended by %s", end.Signal)
		return failed
	case end.ExitCode != 0:
		if last == nil || !last.IsError {
			r.Log("the agent ended with exit code %d", end.ExitCode)
		}
		return failed
	case r.Stays:
		return done
	case last == nil:
		r.Log("the agent ended without a result")
		return failed
	case last.IsError:
		return failed
	case len(last.Denials) > 0 && !r.Quiet:
		return blocked
	}
	return done
}

// Speaker is a driver of an agent that speaks the lines itself.
type Speaker interface {
	// Relayed is the launch of a process whose lines go to the host as they are.
	Relayed(agent.Spec, Wishes) (agent.Launch, error)
}

// Wishes are what a host chooses of the lines.
type Wishes struct {
	CanAsk bool // it answers questions
	Pieces bool // it wants messages while they are made
	Denied bool // what would be asked about is denied, although it answers questions
	Forget bool // the agent keeps nothing of it
}

// longest is the longest line of a host that is read; images of some megabytes fit.
const longest = 64 << 20

// forward passes on the host's lines, but for those that the agent would die of.
func (r Relay) forward(to io.Writer) {
	var line []byte
	for in := lines.NewReader(r.In, longest); in.Next(); {
		why := wrong(in.Text)
		switch {
		case in.Long:
			r.Log("a line on standard input was passed over: it is longer than %d MiB", longest>>20)
			continue
		case why != "":
			r.Log("a line on standard input was passed over: %s", why)
			continue
		case len(bytes.TrimSpace(in.Text)) == 0:
			continue
		}
		line = append(append(line[:0], in.Text...), '\n')
		if r.Record != nil {
			r.Record.Host(line)
		}
		if _, failed := to.Write(line); failed != nil {
			return
		}
		if cap(line) > 1<<20 {
			line = nil
		}
	}
}

// wrong says why the agent would not take a line. Only what it dies of is looked for: all else it answers itself.
func wrong(line []byte) string {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return ""
	}
	var l struct {
		Type    string `json:"type"`
		Message *struct {
			Role string `json:"role"`
		} `json:"message"`
	}
	if line[0] != '{' || json.Unmarshal(line, &l) != nil {
		return "it is no JSON object of this protocol"
	}
	switch l.Type {
	case "user":
		if l.Message == nil || l.Message.Role != "user" {
			return "it is a message of nobody: message.role is not user"
		}
		return ""
	case "control_request", "control_response", "control_cancel_request", "keep_alive":
		return ""
	}
	return fmt.Sprintf("there is no type %q", text.Cut(l.Type, 40))
}

// tail says the lines of the agent's standard error.
type tail struct{ log func(string, ...any) }

func (t tail) Write(p []byte) (int, error) {
	for _, line := range bytes.Split(bytes.TrimRight(p, "\n"), []byte("\n")) {
		t.log("%s", line)
	}
	return len(p), nil
}

// Result is what of a result decides about the exit code.
type Result struct {
	Type    string            `json:"type"`
	IsError bool              `json:"is_error"`
	Denials []json.RawMessage `json:"permission_denials"`
}

// Watch is a writer that hands everything on as it comes and remembers the last result. While no result comes it looks
// at each byte once, and keeps only the beginning of a line that has no end yet.
type Watch struct {
	out    io.Writer
	gone   func() // the host does not read any more
	record Record

	mu    sync.Mutex
	mark  []byte
	lines lines.Cutter
	last  *Result
	lost  error
}

// NewWatch is one in front of out.
func NewWatch(out io.Writer) *Watch {
	return &Watch{out: out, mark: []byte(mark), lines: lines.Cutter{Most: longest}}
}

// mark is in every result, and in no text: there the quotes would be escaped.
const mark = `"type":"result"`

// Write hands on and looks.
func (w *Watch) Write(p []byte) (int, error) {
	if _, err := w.out.Write(p); err != nil {
		w.lose(err)
		return len(p), nil // the agent is ended by a signal, not by a pipe that breaks
	}
	if w.record != nil {
		w.record.Agent(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(p)
	return len(p), nil
}

// lose notes, once, that nothing can be handed on any more.
func (w *Watch) lose(why error) {
	w.mu.Lock()
	first := w.lost == nil
	if first {
		w.lost = why
	}
	w.mu.Unlock()
	if first && w.gone != nil {
		w.gone()
	}
}

func (w *Watch) look(p []byte) {
	for {
		line, rest, ok := w.lines.Cut(p)
		if !ok {
			return
		}
		if !line.Long && !another(line.Text) {
			w.line(line.Text)
		}
		p = rest
	}
}

// another says that the line begins with a type that is no result. Almost all lines do; in a result the type comes
// later.
func another(line []byte) bool {
	const begin, result = `{"type":"`, `result"`
	return len(line) > len(begin)+len(result) && string(line[:len(begin)]) == begin &&
		string(line[len(begin):len(begin)+len(result)]) != result
}

func (w *Watch) line(line []byte) {
	var r Result
	if bytes.Contains(line, w.mark) && json.Unmarshal(line, &r) == nil && r.Type == "result" {
		w.last = &r
	}
}

// Last is the last result, and why the host could not be written to.
func (w *Watch) Last() (*Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.lost
}
