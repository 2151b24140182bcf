package stream

import (
	"bytes"
	"encoding/json"
	"sync"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/wire/claude"
)

// Recording records what a host and an agent exchange in Claude Code's lines. It gets copies, and cannot change a line.
// The lines wait for it only if its queue is full, and it ignores unreadable lines. Host and Agent may be called
// concurrently.
type Recording struct {
	recorder *conversation.Recorder
	decoder  agent.Decoder
	queue    chan said
	done     chan struct{}
	over     sync.Once
}

// said is a piece of the output of one side.
type said struct {
	data []byte
	host bool
}

// longestQueue is how many pieces are queued before Host and Agent block.
const longestQueue = 256

// Record begins a record. The decoder reads the agent's lines.
func Record(r *conversation.Recorder, d agent.Decoder) *Recording {
	g := &Recording{recorder: r, decoder: d, queue: make(chan said, longestQueue), done: make(chan struct{})}
	go g.run()
	return g
}

// Host records a line of the host. It is called before the agent gets the line.
func (g *Recording) Host(line []byte) { g.queue <- said{bytes.Clone(line), true} }

// Agent records bytes of the agent, which need not be whole lines.
func (g *Recording) Agent(data []byte) { g.queue <- said{bytes.Clone(data), false} }

// Close ends the record. Nothing may be recorded after it.
func (g *Recording) Close() error {
	g.over.Do(func() { close(g.queue) })
	<-g.done
	return g.recorder.Close()
}

func (g *Recording) run() {
	defer close(g.done)
	for s := range g.queue {
		if s.host {
			g.heard(s.data)
			continue
		}
		for _, e := range g.decoder.Feed(s.data) {
			g.recorder.Tell(e)
		}
	}
	for _, e := range g.decoder.End(agent.Exit{}) {
		if e.Kind != event.Ended { // a turn without an end gets one from the recorder
			g.recorder.Tell(e)
		}
	}
}

// heard records a line of the host, if it is a message or the answer to a question.
func (g *Recording) heard(line []byte) {
	f, err := claude.Parse(line)
	switch {
	case err != nil:
	case f.User != nil:
		g.recorder.Prompt(f.User.Blocks)
	case f.Reply != nil:
		var answer claude.Permission
		reply := event.Reply{Question: f.Reply.ID, Option: event.Deny, Text: f.Reply.Error}
		if f.Reply.Error == "" && json.Unmarshal(f.Reply.Body, &answer) == nil {
			reply.Text, reply.Input = answer.Message, answer.Input
			if answer.Behavior == "allow" {
				reply.Option = event.Allow
			}
		}
		g.recorder.Reply(reply)
	}
}
