package order

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/host/stream"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/wire/claude"
)

// Read is what a decoder makes of that output, all at once.
func Read(d agent.Decoder, output []byte, x agent.Exit) []event.Event {
	var all []event.Event
	for _, e := range d.Feed(output) {
		e.Raw = slices.Clone(e.Raw)
		all = append(all, e)
	}
	return append(all, d.End(x)...)
}

// Recorded is how a conversation tells what an agent said: as it is on record, in order. Each turn had a message.
func Recorded(said []event.Event) ([]event.Event, error) {
	dir, err := os.MkdirTemp("", "omniagent-order-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	journal, err := session.Open(dir).Unlinked(session.Begin{ID: "s"})
	if err != nil {
		return nil, err
	}
	told := journal.Reader(journal.Last() + 1)
	var broken error
	r := conversation.Record(journal, func(format string, args ...any) { broken = fmt.Errorf(format, args...) })
	for _, e := range said {
		if e.Kind == event.Ended {
			r.Prompt([]event.Block{{Text: "go"}})
		}
	}
	for _, e := range said {
		e.Unprompted = false
		r.Tell(e)
	}
	if broken != nil {
		return nil, broken
	}
	var all []event.Event
	for last := journal.Last(); ; {
		entry, err := told.Next(context.Background())
		if err != nil {
			return nil, err
		}
		if e := entry.Event(); e != nil {
			all = append(all, *e)
		}
		if entry.Number == last {
			return all, r.Close()
		}
	}
}

// Told is what hosts of both dialects hear of a conversation in which an agent said that: the flat lines, and the
// nested ones.
func Told(said []event.Event, f event.Facts) (flat, nested []string, err error) {
	events, err := Recorded(said)
	if err != nil {
		return nil, nil, err
	}
	n := 0
	uuid := func() string { n++; return fmt.Sprintf("u%d", n) }
	hear := func(d stream.Dialect) (lines []string) {
		told := d.Begin("s", f)
		for _, e := range events {
			told = append(told, d.Event(e)...)
		}
		for _, line := range told {
			lines = append(lines, string(line))
		}
		return lines
	}
	return hear(stream.NewYume("s", "default")), hear(stream.NewClaude(claude.Encoder{UUID: uuid, Version: "0"})), nil
}

// Golden is a stream as people read it: a line each, without what is the same in all of them.
func Golden(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &m) == nil && string(m["subtype"]) == `"init"` {
			line = fmt.Sprintf(`{"type":"system","subtype":"init","session_id":%s,"model":%s,…}`, m["session_id"],
				m["model"])
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
