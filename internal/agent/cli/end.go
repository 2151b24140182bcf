package cli

import (
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/redact"
	"omniagent/internal/text"
)

// mended is the end of a turn with what the agent itself did not say: the tokens and the denials of its records, and why it failed.
func (s *session) mended(t *turn, last event.Event, x agent.Exit, e agent.Evidence) (out []event.Event) {
	end := *last.End
	last.End = &end
	if end.Usage == nil {
		end.Usage = e.Usage
	}
	if last.Model == "" {
		last.Model = e.Model
	}
	if !slices.ContainsFunc(t.told, func(o event.Event) bool { return o.Kind == event.Denied }) { // records may have ids of their own
		for _, d := range e.Denials {
			out = append(out, event.Event{Kind: event.Denied, Denial: &d, Synthetic: true})
		}
	}
	if f := s.why(t, last, x, e); f != nil && !end.OK {
		out = append(out, event.Event{Kind: event.Failed, Fault: f, Terminal: true, Synthetic: true})
	}
	return append(out, last)
}

// why is the fault that a turn failed with, where the agent has not said one that tells more.
func (s *session) why(t *turn, last event.Event, x agent.Exit, e agent.Evidence) *fault.Fault {
	if last.End.OK {
		return nil
	}
	f := s.driver.Classify(x, append(t.told, last))
	if general(f) && e.Fault != nil && x.ByUs == "" {
		f = e.Fault
	}
	if f == nil || f.Code == fault.NoAnswer {
		f = fault.New(fault.AgentFailed, "the agent ended without a result")
	}
	if words := lastWords(x.Stderr, s.spec.Env); words != "" && f.Code == fault.AgentFailed && x.ByUs == "" {
		said := *f
		said.Message += ": " + words
		f = &said
	}
	return f
}

// general says that a fault names no cause.
func general(f *fault.Fault) bool {
	return f == nil || f.Code == fault.AgentFailed || f.Code == fault.NoAnswer || f.Code == fault.Blocked
}

// lastWords are the last lines of what an agent wrote on standard error, as far as they are its own and without secrets: neither what looks like one
// nor one of the environment.
func lastWords(stderr []byte, env []string) string {
	const most = 300
	var kept []string
	length := 0
	lines := strings.Split(string(stderr), "\n")
	for i := len(lines) - 1; i >= 0 && len(kept) < 3 && length < most; i-- {
		line, _ := text.Clean(lines[i])
		line = strings.Join(strings.Fields(line), " ")
		if line == "" || strings.HasPrefix(line, "at ") { // a step of a stack
			continue
		}
		kept = append([]string{line}, kept...)
		length += len(line)
	}
	words := redact.Known(redact.Secrets(env)...).String(redact.String(strings.Join(kept, "; ")))
	if len(words) > most {
		words = "…" + strings.ToValidUTF8(words[len(words)-most:], "")
	}
	return words
}
