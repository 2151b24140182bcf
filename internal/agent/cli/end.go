package cli

import (
	"slices"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/redact"
	"omniagent/internal/text"
)

// mended is the end of a turn with what the agent itself did not say: the tokens and the denials of its records, and
// why it failed.
func (r *run) mended(last event.Event, x agent.Exit, e agent.Evidence) (out []event.Event) {
	end := *last.End
	last.End = &end
	if end.Usage == nil {
		end.Usage = e.Usage
	}
	if last.Model == "" {
		last.Model = e.Model
	}
	denied := func(o event.Event) bool { return o.Kind == event.Denied }
	if !slices.ContainsFunc(r.notes, denied) { // records may have ids of their own
		for _, d := range e.Denials {
			out = append(out, event.Event{Kind: event.Denied, Denial: &d, Synthetic: true})
		}
	}
	if !end.OK {
		f := why(r.mind.driver, r.mind.spec.Env, x, e, append(r.notes, last))
		switch {
		case x.ByUs == silence:
			f = silent(r.mind.driver, r.mind.services.Connect)
		case x.ByUs != "" && last.Synthetic:
			end.Reason = event.Cancelled
		}
		out = append(out, event.Event{Kind: event.Failed, Fault: f, Terminal: true, Synthetic: true})
	}
	return append(out, last)
}

// silence is why we end an agent that gives no sign of life in time.
const silence = "timeout"

// silent is the fault of an agent that gave no sign of life in time.
func silent(d agent.Driver, limit time.Duration) *fault.Fault {
	return fault.New(fault.TimedOut, "%s gave no sign of life within %s of its start", d.Describe().Title, limit).
		Hint("--connect-timeout %s would wait longer", 2*limit)
}

// why is the fault that a turn without success ended with.
func why(d agent.Driver, env []string, x agent.Exit, e agent.Evidence, events []event.Event) *fault.Fault {
	f := d.Classify(x, events)
	if general(f) && e.Fault != nil && x.ByUs == "" {
		f = e.Fault
	}
	if f == nil || f.Code == fault.NoAnswer {
		f = fault.New(fault.AgentFailed, "the agent ended without a result")
	}
	if words := lastWords(x.Stderr, env); words != "" && f.Code == fault.AgentFailed && x.ByUs == "" {
		more := *f
		more.Message += ": " + words
		f = &more
	}
	return f
}

// general says that a fault names no cause.
func general(f *fault.Fault) bool {
	return f == nil || f.Code == fault.AgentFailed || f.Code == fault.NoAnswer || f.Code == fault.Blocked
}

// lastWords are the last lines of what an agent wrote on standard error, as far as they are its own and without
// secrets: neither what looks like one nor one of the environment.
func lastWords(stderr []byte, env []string) string {
	const most = 300
	var last []string
	length := 0
	lines := strings.Split(string(stderr), "\n")
	for i := len(lines) - 1; i >= 0 && len(last) < 3 && length < most; i-- {
		line := text.Flat(lines[i])
		if line == "" || strings.HasPrefix(line, "at ") { // a step of a stack
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
