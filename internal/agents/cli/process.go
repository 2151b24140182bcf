package cli

import (
	"cmp"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/redact"
)

// Process is a process of an agent that works for one turn or for many.
type Process struct {
	Driver   agent.Driver
	Services agent.Services
	Env      []string // of the conversation; the secrets in it are removed from what the agent says

	child    *process.Child
	observer agent.Observer
	stderr   process.Tail
	notes    []event.Event // events of the turn that Classify needs

	mu      sync.Mutex
	endedBy string // why we ended it
}

// DefaultGrace is how long an agent may take to end by itself, unless the host says otherwise.
const DefaultGrace = 5 * time.Second

// silence is the reason for killing an agent that prints nothing in time.
const silence = "timeout"

// Start writes the files of a launch and starts it, in the host's sandbox if there is one. s has the streams, except
// for standard error, and the standby. Services.Tap gets the output before the streams of s, and b after the start.
func (p *Process) Start(l agent.Launch, s process.Plan, b agent.Beginning) error {
	sv := p.Services
	if err := WriteFiles(l.Files); err != nil {
		return err
	}
	p.observer = p.Driver.Observe(l)
	s.Path, s.Argv, s.Dir, s.Env = l.Path, append([]string{p.Driver.Describe().Binary}, l.Args...), l.Dir, l.Env
	s.Grace, s.OwnPIDs, s.Register, s.Stderr = sv.Grace, sv.OwnPIDs, sv.Register, &p.stderr
	s.Note, _ = process.Value(l.Env, agent.DepthVariable) // the agent may clear its environment later
	if t := sv.Tap; t != nil {
		s.Whole = b.Plain
		s.Stdout, s.Stderr = io.MultiWriter(t.Stdout, s.Stdout), io.MultiWriter(t.Stderr, s.Stderr)
	}
	var err error
	if sv.WithWalls != nil {
		if s, err = sv.WithWalls(s); err != nil {
			return err
		}
	}
	sv.Register.Tidy() // remove the files of an agent that was killed together with its host
	b.RemoveIfEmpty = agent.Absent(p.Driver.Describe(), l)
	s.RemoveIfEmpty = b.RemoveIfEmpty
	if p.child, err = process.Start(s); err == nil && sv.Tap != nil {
		b.PID, b.Launch = p.child.PID(), l
		b.OwnPIDs = p.child.OwnPIDs() || sv.WithWalls != nil // walls have a PID namespace too
		sv.Tap.Began(b)
	}
	return err
}

// End ends the process with a signal, and kills it after the grace period or on a second call. The first reason counts.
func (p *Process) End(why string, with os.Signal) {
	p.mu.Lock()
	p.endedBy = cmp.Or(p.endedBy, why)
	p.mu.Unlock()
	p.child.End(with)
}

// EndSilent kills the process because it has printed nothing in time.
func (p *Process) EndSilent() { p.End(silence, os.Kill) }

// Tidy removes what the agent's own sandbox leaves behind after a turn.
func (p *Process) Tidy() { p.child.Tidy() }

// Wait waits until the process and all that it started have ended.
func (p *Process) Wait() agent.Exit {
	end := p.child.Wait()
	x := agent.Exit{Code: end.ExitCode, Signal: end.Signal, Stderr: p.stderr.Bytes()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if end.Ended {
		x.EndedBy = p.endedBy
	}
	return x
}

// After returns what the agent's records say.
func (p *Process) After(x agent.Exit) agent.Evidence { return p.observer.After(x) }

// BeginTurn forgets the events of the previous turn.
func (p *Process) BeginTurn() { p.notes = nil }

// Note adds an event of the turn, if Classify needs it. It keeps only one text.
func (p *Process) Note(e event.Event) {
	answer := func(o event.Event) bool { return o.Kind == event.Text || o.Kind == event.ToolCall }
	switch e.Kind {
	case event.Text, event.ToolCall:
		if slices.ContainsFunc(p.notes, answer) {
			return
		}
	case event.Denied, event.Failed:
	default:
		return
	}
	p.notes = append(p.notes, event.Event{Kind: e.Kind, Denial: e.Denial, Fault: e.Fault, Terminal: e.Terminal})
}

// Failed returns the event that says why a turn failed, and marks the end of one that was cancelled.
func (p *Process) Failed(x agent.Exit, e agent.Evidence, last *event.Event) event.Event {
	f := turnFault(p.Driver, p.Env, x, e, append(p.notes, *last))
	switch {
	case x.EndedBy == silence:
		f = silent(p.Driver, p.Services.Connect)
	case x.EndedBy != "" && last.Synthetic:
		end := *last.End
		end.Reason = event.Cancelled
		last.End = &end
	}
	return event.Event{Kind: event.Failed, Fault: f, Terminal: true, Synthetic: true}
}

// silent returns the fault of an agent that printed nothing in time.
func silent(d agent.Driver, limit time.Duration) *fault.Fault {
	return fault.New(fault.TimedOut, "%s printed nothing within %s of its start", d.Describe().Title, limit).
		With("connect_timeout", limit.String()).Hint("--connect-timeout %s would wait longer", 2*limit)
}

// turnFault returns the fault of a turn that failed.
func turnFault(d agent.Driver, env []string, x agent.Exit, e agent.Evidence, events []event.Event) *fault.Fault {
	f := d.Classify(x, events)
	if general(f) && e.Fault != nil && x.EndedBy == "" {
		f = e.Fault
	}
	if f == nil || f.Code == fault.NoAnswer {
		f = fault.New(fault.AgentFailed, "the agent ended without a result")
	}
	if words := lastWords(x.Stderr, env); words != "" && f.Code == fault.AgentFailed && x.EndedBy == "" {
		more := *f
		more.Message += ": " + words
		f = &more
	}
	return f
}

// general reports whether a fault names no specific cause.
func general(f *fault.Fault) bool {
	return f == nil || f.Code == fault.AgentFailed || f.Code == fault.NoAnswer || f.Code == fault.Blocked
}

// lastWords returns the last lines that an agent itself wrote to standard error. It removes the secrets of the
// environment, and everything that looks like a secret.
func lastWords(stderr []byte, env []string) string {
	const most = 300
	var last []string
	length := 0
	lines := strings.Split(string(stderr), "\n")
	for i := len(lines) - 1; i >= 0 && len(last) < 3 && length < most; i-- {
		line := text.Flat(lines[i])
		if line == "" || strings.HasPrefix(line, "at ") { // a line of a stack trace
			continue
		}
		last = append([]string{line}, last...)
		length += len(line)
	}
	words := redact.Known(redact.Secrets(env)...).String(redact.String(strings.Join(last, "; ")))
	if len(words) > most {
		words = "…" + strings.ToValidUTF8(words[len(words)-most:], "")
	}
	return words
}
