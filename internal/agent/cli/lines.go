package cli

import (
	"bytes"

	"omniagent/internal/agent"
	"omniagent/internal/event"
)

// JSONLines is a Decoder for agents that print one JSON object a line. Parse is called with each line that is not blank, without its
// end; what it returns for one that it cannot read should be a Notice. A line may be of any length, and the bytes may be cut anywhere.
type JSONLines struct {
	Parse   func(line []byte) []event.Event
	partial []byte
	ended   bool
}

// Feed takes the next bytes.
func (d *JSONLines) Feed(data []byte) []event.Event {
	var out []event.Event
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			d.partial = append(d.partial, data...)
			return out
		}
		line := data[:i]
		if len(d.partial) > 0 {
			line = append(d.partial, line...)
			d.partial = nil
		}
		data = data[i+1:]
		out = append(out, d.line(line)...)
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

// End reads a last line without an end. Where the agent said nothing of its end, an Ended of our own follows, marked as such.
func (d *JSONLines) End(x agent.Exit) []event.Event {
	var out []event.Event
	if rest := d.partial; len(rest) > 0 {
		d.partial = nil
		out = d.line(rest)
	}
	if !d.ended {
		d.ended = true
		out = append(out, event.Event{Kind: event.Ended, Synthetic: true, End: &event.End{Reason: "the agent ended without a result"}})
	}
	return out
}

// Unreadable is the event for a line that is no JSON.
func Unreadable(line []byte) []event.Event {
	return []event.Event{{Kind: event.Notice, Text: "a line that cannot be read", Raw: line}}
}
