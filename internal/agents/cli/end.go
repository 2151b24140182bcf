package cli

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// completed adds what the agent did not report to the end of a turn: tokens and denials from its records, and the
// reason for a failure.
func (r *run) completed(last event.Event, x agent.Exit, e agent.Evidence) (out []event.Event) {
	end := *last.End
	last.End = &end
	end.Usage = cmp.Or(end.Usage, e.Usage)
	last.Model = cmp.Or(last.Model, e.Model)
	denied := func(o event.Event) bool { return o.Kind == event.Denied }
	if !slices.ContainsFunc(r.notes, denied) { // records may have other ids
		for _, d := range e.Denials {
			out = append(out, event.Event{Kind: event.Denied, Denial: &d, Synthetic: true})
		}
	}
	if !end.OK {
		f := turnFault(r.mind.driver, r.mind.spec.Env, x, e, append(r.notes, last))
		switch {
		case x.EndedBy == silence:
			f = silent(r.mind.driver, r.mind.services.Connect)
		case x.EndedBy != "" && last.Synthetic:
			end.Reason = event.Cancelled
		}
		out = append(out, event.Event{Kind: event.Failed, Fault: f, Terminal: true, Synthetic: true})
	}
	return append(out, last)
}

// silence is the reason for killing an agent that prints nothing in time.
const silence = "timeout"

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
