package cli

import (
	"bytes"
	"cmp"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/text"
)

const (
	maxLine    = 64 << 20
	quotedLine = 4 << 10 // of one that is longer, as evidence
)

// JSONLines is a Decoder for agents that print one JSON object a line. Parse is called with each line that is not
// blank, without its end; what it returns for one that it cannot read should be a Notice. The bytes may be cut
// anywhere. A line of more than 64 MiB is Unreadable, and only its beginning is kept.
type JSONLines struct {
	Parse   func(line []byte) []event.Event
	partial []byte
	skips   bool // the rest of a line that is too long
	most    int  // what a line may have; 0: maxLine
	ended   bool
}

// Feed takes the next bytes.
func (d *JSONLines) Feed(data []byte) []event.Event {
	var out []event.Event
	most := cmp.Or(d.most, maxLine)
	for {
		i := bytes.IndexByte(data, '\n')
		piece := data
		if i >= 0 {
			piece = data[:i]
		}
		if !d.skips && len(d.partial)+len(piece) > most {
			d.skips = true
			begin := append(d.partial[:min(len(d.partial), quotedLine)], piece[:min(len(piece), quotedLine)]...)
			out = append(out, Unreadable(bytes.Clone(begin[:min(len(begin), quotedLine)]))...)
			d.partial = nil
		}
		if i < 0 {
			if !d.skips {
				d.partial = append(d.partial, piece...)
			}
			return out
		}
		data = data[i+1:]
		if d.skips {
			d.skips = false
			continue
		}
		if len(d.partial) > 0 {
			piece = append(d.partial, piece...)
			d.partial = nil
		}
		out = append(out, d.line(piece)...)
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

// End reads a last line without an end. Where the agent said nothing of its end, an Ended of our own follows, marked as
// such.
func (d *JSONLines) End(x agent.Exit) []event.Event {
	var out []event.Event
	if rest := d.partial; len(rest) > 0 {
		d.partial = nil
		out = d.line(rest)
	}
	if !d.ended {
		d.ended = true
		out = append(out, event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: event.FailedTurn}})
	}
	return out
}

// Unreadable is the event for a line that is no JSON.
func Unreadable(line []byte) []event.Event {
	return []event.Event{{Kind: event.Notice, Text: "a line that cannot be read", Raw: line}}
}

// FirstLine is the first line of what an agent says, at most 300 bytes of it.
func FirstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return text.Cut(s, 300)
}
