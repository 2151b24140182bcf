// Package relay connects a host and an agent that use the same lines: Claude Code's stream-json on both sides.
//
// It promises that the agent's lines are neither changed nor delayed; that a line of the host that would kill the agent
// (invalid JSON, too long, or of an unknown type) is skipped and reported; that the agent is ended, with all its
// processes, when the host no longer reads; and the usual exit codes. It does not choose the agent's flags, or check
// whether the agent may be started.
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

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
)

// Relay is one conversation.
//
//	host ── In ──▶ forward ──▶ agent ── its exit ──▶ code
//	host ◀── Out ── Watch ◀─── agent
//	a signal, ctx, or a host that no longer reads ──▶ the agent is ended; a second signal kills it
type Relay struct {
	Launch   agent.Launch
	Name     string // of the program, as the user should call it
	In       io.Reader
	Out      io.Writer
	Log      func(format string, args ...any) // for people
	Signals  <-chan os.Signal
	Grace    time.Duration
	UntilEOF bool // it answers messages until In ends: then a failed turn does not affect the exit code
	Quiet    bool // denials were asked for
	Record   Record
	// WithWalls changes the plan of the agent so that it runs in a sandbox; nil: it runs without one.
	WithWalls func(process.Plan) (process.Plan, error)
	// Register lists the agent while it runs. It may be nil.
	Register *process.Register
}

// Record gets copies of the lines. Its methods may be called concurrently.
type Record interface {
	Host(line []byte)  // a line that the agent is about to get
	Agent(data []byte) // output that the host got, split at any byte
}

// The exit codes, which are those of an agent.
const (
	done    = 0
	failed  = 1
	usage   = 2
	blocked = 3
)

// longestError is the number of bytes of a line of the agent's standard error that are logged.
const longestError = 16 << 10

// Run passes lines on until the agent has ended, and returns the exit code. It returns an error if the agent cannot be
// started.
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
	errs := &tail{log: r.Log, cuts: lines.Cutter{Most: longestError}}
	depth, _ := process.Value(r.Launch.Env, agent.DepthVariable)
	p := process.Plan{
		Path: r.Launch.Path, Argv: append([]string{r.Name}, r.Launch.Args...), Dir: r.Launch.Dir, Env: r.Launch.Env,
		Stdin: in, Stdout: watch, Stderr: errs, Grace: r.Grace, Register: r.Register, Note: depth,
	}
	var err error
	if r.WithWalls != nil {
		if p, err = r.WithWalls(p); err != nil {
			return 0, err
		}
	}
	if child, err = process.Start(p); err != nil {
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
		case <-process.ReaderGone(r.Out):
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
	errs.end()
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
	case r.UntilEOF:
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

// Speaker is a driver of an agent that uses this protocol itself.
type Speaker interface {
	// Relayed returns the launch of a process whose lines go to the host unchanged.
	Relayed(agent.Spec, Wishes) (agent.Launch, error)
}

// Wishes are the host's options.
type Wishes struct {
	CanAsk bool // it answers questions
	Pieces bool // it wants messages in pieces
	Denied bool // questions are denied, although it could answer them
	Forget bool // the agent keeps no session
}

// longest is the maximum length of a line of a host, with room for images.
const longest = 64 << 20

// longestResult is the maximum length of a result of the agent.
const longestResult = 8 << 20

// forward passes on the host's lines, except those that would kill the agent.
func (r Relay) forward(to io.Writer) {
	var line []byte
	for in := lines.NewReader(r.In, longest); in.Next(); {
		why := wrong(in.Text)
		switch {
		case in.Long:
			r.Log("a line on standard input was skipped: it is longer than %d MiB", longest>>20)
			continue
		case why != "":
			r.Log("a line on standard input was skipped: %s", why)
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

// wrong returns why a line would kill the agent, or "". The agent answers all other errors itself.
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
		return "it is not a JSON object of this protocol"
	}
	switch l.Type {
	case "user":
		if l.Message == nil || l.Message.Role != "user" {
			return "message.role is not user"
		}
		return ""
	case "control_request", "control_response", "control_cancel_request", "keep_alive":
		return ""
	}
	return fmt.Sprintf("there is no type %q", text.Cut(l.Type, 40))
}

// tail logs the lines of the agent's standard error.
type tail struct {
	log  func(string, ...any)
	cuts lines.Cutter
}

func (t *tail) Write(p []byte) (int, error) {
	for rest := p; ; {
		line, more, ok := t.cuts.Cut(rest)
		if !ok {
			return len(p), nil
		}
		t.log("%s", line.Text)
		rest = more
	}
}

// end logs a last line that has no end.
func (t *tail) end() {
	if line, ok := t.cuts.Last(); ok {
		t.log("%s", line.Text)
	}
}

// Result holds the fields of a result line that determine the exit code.
type Result struct {
	Type    string            `json:"type"`
	IsError bool              `json:"is_error"`
	Denials []json.RawMessage `json:"permission_denials"`
}

// Watch is a writer that passes everything on and remembers the last result. It scans each byte once, and keeps only
// the beginning of an incomplete line.
type Watch struct {
	out    io.Writer
	gone   func() // the host no longer reads
	record Record

	mu    sync.Mutex
	mark  []byte
	lines lines.Cutter
	last  *Result
	lost  error
}

// NewWatch returns a Watch that writes to out.
func NewWatch(out io.Writer) *Watch {
	return &Watch{out: out, mark: []byte(mark), lines: lines.Cutter{Most: longestResult}}
}

// mark is in every result. It cannot be in a text, whose quotes are escaped.
const mark = `"type":"result"`

// Write passes on p and scans it.
func (w *Watch) Write(p []byte) (int, error) {
	if _, err := w.out.Write(p); err != nil {
		w.lose(err)
		return len(p), nil // a signal ends the agent, not a broken pipe
	}
	if w.record != nil {
		w.record.Agent(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(p)
	return len(p), nil
}

// lose records, once, that the host cannot be written to, and calls gone.
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

// another reports whether the line begins with a type other than result. Almost all lines do; in a result the type
// comes later.
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

// Last returns the last result, and why the host could not be written to.
func (w *Watch) Last() (*Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last, w.lost
}
