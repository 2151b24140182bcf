package cli

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/text"
)

const (
	maxLine    = 8 << 20
	quotedLine = 4 << 10 // kept of a longer line, as evidence
)

// JSONLines is a Decoder for agents that print one JSON object a line. It calls Parse with each line that is not blank,
// without the line break; Parse should return a Notice for a line that it cannot read. A line of more than 8 MiB is
// Unreadable, and only its beginning is kept.
type JSONLines struct {
	Parse func(line []byte) []event.Event
	most  int // longest line; 0 means maxLine
	ended bool
	cut   lines.Cutter
}

// Feed takes the next bytes.
func (d *JSONLines) Feed(data []byte) []event.Event {
	var out []event.Event
	d.cut.Most = cmp.Or(d.most, maxLine)
	for {
		line, rest, ok := d.cut.Cut(data)
		if !ok {
			return out
		}
		if line.Long {
			out = append(out, Unreadable(bytes.Clone(line.Text[:min(len(line.Text), quotedLine)]))...)
		} else {
			out = append(out, d.line(line.Text)...)
		}
		data = rest
	}
}

func (d *JSONLines) line(line []byte) []event.Event {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return nil
	}
	events := d.Parse(line)
	for i := range events {
		if events[i].Raw == nil {
			events[i].Raw = line
		}
		d.ended = d.ended || events[i].Kind == event.Ended
	}
	return events
}

// Flush reads a last line without a line break.
func (d *JSONLines) Flush() []event.Event {
	if rest, torn := d.cut.Last(); torn {
		return d.line(rest.Text)
	}
	return nil
}

// End reads the rest of the output. If the agent reported no end, it adds a synthetic Ended.
func (d *JSONLines) End(agent.Exit) []event.Event {
	out := d.Flush()
	if !d.ended {
		d.ended = true
		out = append(out, Unfinished("", ""))
	}
	return out
}

// Unfinished returns the synthetic end of a turn that the agent did not end. said is the agent's reason, if known.
func Unfinished(session, said string) event.Event {
	end := &event.End{Reason: event.FailedTurn, AgentReason: said}
	return event.Event{Kind: event.Ended, Session: session, Synthetic: true, End: end}
}

// Unreadable returns the event for a line that is not JSON.
func Unreadable(line []byte) []event.Event {
	return []event.Event{{Kind: event.Notice, Text: unreadable, Raw: line}}
}

// IsUnreadable recognises the event of Unreadable.
func IsUnreadable(e event.Event) bool { return e.Kind == event.Notice && e.Text == unreadable }

const unreadable = "a line that cannot be read"

// ExitCode returns the exit code that the first line of a command's output has after these words, or nil.
func ExitCode(output, words string) *int {
	first, _, _ := strings.Cut(output, "\n")
	digits, told := strings.CutPrefix(first, words)
	code, err := strconv.Atoi(digits)
	if !told || err != nil {
		return nil
	}
	return &code
}

// FirstLine returns the first line of a text, up to 300 bytes.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return text.Cut(s, 300)
}
