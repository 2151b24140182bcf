package order

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/proto/claude"
	"omniagent/internal/setting"
	"omniagent/internal/stream"
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

// Told is what hosts of both dialects hear of a conversation in which that happened: the flat lines, and the nested ones.
func Told(events []event.Event, f event.Facts) (flat, nested []string) {
	n := 0
	uuid := func() string { n++; return fmt.Sprintf("u%d", n) }
	return hear(events, f, &stream.Yume{Mode: "default", Meaning: func(string) setting.Approval { return setting.Default }}),
		hear(events, f, &stream.Claude{Encoder: claude.Encoder{UUID: uuid, Version: "0"}})
}

func hear(events []event.Event, f event.Facts, d stream.Dialect) []string {
	var out bytes.Buffer
	turns, all := 0, slices.Clone(events)
	for i := range all {
		all[i].Unasked = false // each turn gets a message
		if all[i].Kind == event.Ended {
			turns++
		}
	}
	frames := make(chan stream.Said, turns)
	for range turns {
		frames <- stream.Said{Frame: stream.Frame{User: []event.Block{{Text: "go"}}}}
	}
	close(frames)
	h := stream.New(&out, d, stream.Lines)
	h.Session = &player{facts: f, left: all, now: event.NewQueue(0)}
	h.Log, h.Detail = func(string, ...any) {}, func(string, ...any) {}
	h.Frames, h.Stays = frames, true
	h.Run(context.Background())
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// player is a session in which all is known that will happen: a turn for each message.
type player struct {
	left []event.Event
	now  *event.Queue

	mu    sync.Mutex
	facts event.Facts
	id    string
}

var _ agent.Session = (*player)(nil)

// ID is the one that was told.
func (p *player) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// Facts are those from outside, and what was told.
func (p *player) Facts() event.Facts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.facts
}

// Next is the next event.
func (p *player) Next(ctx context.Context) (event.Event, error) {
	e, err := p.now.Next(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Session != "" {
		p.id = e.Session
	}
	if e.Kind == event.Started && e.Model != "" {
		p.facts.Model = e.Model
	}
	return e, err
}

// Send lets a turn happen.
func (p *player) Send(context.Context, []event.Block) error {
	n := 1 + slices.IndexFunc(p.left, func(e event.Event) bool { return e.Kind == event.Ended })
	if n == 0 {
		return io.EOF
	}
	for _, e := range p.left[:n] {
		p.now.Put(e)
	}
	p.left = p.left[n:]
	return nil
}

// Answer is heard and has no effect.
func (p *player) Answer(context.Context, string, event.Reply) error { return nil }

// Set has no effect.
func (p *player) Set(context.Context, agent.Change) error { return nil }

// Interrupt has no effect.
func (p *player) Interrupt(context.Context) error { return nil }

// Close ends it.
func (p *player) Close(context.Context) (agent.Outcome, error) {
	p.now.Close()
	return agent.Outcome{}, nil
}

// Golden is a stream as people read it: a line each, without what is the same in all of them.
func Golden(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &m) == nil && string(m["subtype"]) == `"init"` {
			line = fmt.Sprintf(`{"type":"system","subtype":"init","session_id":%s,"model":%s,…}`, m["session_id"], m["model"])
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
