package acp

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
	wire "omniagent/internal/wire/acp"
)

// ResumableSessions finds the sessions of one agent that can be resumed.
type ResumableSessions struct {
	Store session.Store
	Agent string           // its name in journals; empty for the native agent
	Tools []event.ToolSpec // the native agent's tools, to describe their calls
}

// find returns an error unless the agent can resume the session.
func (p ResumableSessions) find(id string) error {
	v, err := p.Store.Show(id)
	if err != nil {
		return err
	}
	defer v.Close()
	if v.State.Begin.Agent == p.Agent {
		return nil
	}
	owner := cmp.Or(v.State.Begin.Agent, "native")
	return fault.New(fault.ArgError, "the session %s is one of the agent %s", id, owner).
		Hint("omniagent acp --agent %s", owner)
}

// list returns the sessions that have messages, the most recently used first. dir, if not empty, selects a directory.
func (p ResumableSessions) list(ctx context.Context, dir string) ([]wire.Session, error) {
	all, _, err := p.Store.List(ctx, session.Filter{})
	if err != nil {
		return nil, err
	}
	list := []wire.Session{}
	for _, i := range all {
		if i.Messages > 0 && i.Begin.Agent == p.Agent && (dir == "" || i.Begin.Cwd == dir) {
			list = append(list, wire.Session{
				ID: i.Begin.ID, Dir: i.Begin.Cwd, Title: i.Title, Updated: i.Updated.UTC().Format(time.RFC3339),
			})
		}
	}
	return list, nil
}

// remove removes a session, but not the installed agent's own records of it.
func (p ResumableSessions) remove(ctx context.Context, id string) error {
	if err := p.find(id); err != nil {
		return err
	}
	return p.Store.Delete(ctx, id)
}

// replay sends the client the messages of a session, including those that a compaction removed, because the person has
// seen them. Some things are not recorded in messages: changes of files, exit codes, costs, questions and answers, and
// the thinking of installed agents.
func (p ResumableSessions) replay(ctx context.Context, id string, tell func(wire.Update)) error {
	v, err := p.Store.Show(id)
	if err != nil {
		return err
	}
	defer v.Close()
	n := newNarrator("r", v.State.Begin.Cwd, nil)
	n.past = true
	last := int64(0)
	for e, err := range v.Entries() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m, is := e.Record.(session.Message)
		if err != nil || !is { // skip unreadable ones
			continue
		}
		message := "r" + strconv.FormatInt(e.Number, 10)
		if said := userBlocks(m.Message); said != nil {
			if m.Turn > last { // the first message of its turn, which was sent with this id
				message, last = "u"+strconv.FormatInt(m.Turn, 10), m.Turn
			}
			tell(wire.Update{Kind: wire.UserMessage, Message: message, Blocks: said})
		}
		for _, u := range p.updates(&n, m.Message, message) {
			tell(u)
		}
	}
	for _, call := range slices.Sorted(maps.Keys(n.calls)) { // calls whose process was killed
		tell(wire.Update{Kind: wire.ToolCall, Tool: &wire.Tool{ID: call, Status: wire.FailedCall}})
	}
	return nil
}

// userBlocks returns the user's own blocks of a message; nil if it has only results.
func userBlocks(m model.Message) []wire.Block {
	if m.Role != model.User {
		return nil
	}
	var said []wire.Block
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Text:
			said = append(said, wire.Block{Text: b.Text})
		case model.Image, model.File:
			said = append(said, wire.Block{Media: b.Media, Data: b.Data, Name: b.Name})
		}
	}
	return said
}

// updates returns the updates for the rest of a message.
func (p ResumableSessions) updates(n *narrator, m model.Message, id string) []wire.Update {
	var updates []wire.Update
	for i, b := range m.Blocks {
		message := id + "-" + strconv.Itoa(i)
		switch {
		case b.Kind == model.Text && m.Role == model.Assistant && b.Text != "":
			updates = append(updates, wire.Update{Kind: wire.Answer, Message: message, Text: b.Text})
		case b.Kind == model.Thinking && b.Text != "":
			updates = append(updates, wire.Update{Kind: wire.Thinking, Message: message, Text: b.Text})
		case b.Kind == model.Call:
			updates = append(updates, n.event(event.Event{Kind: event.ToolCall, Call: p.call(b)})...)
		case b.Kind == model.Result:
			updates = append(updates,
				n.event(event.Event{Kind: event.ToolResult, Result: &event.Result{
					ID: b.ID, Name: b.Name, Failed: b.Failed, Output: b.Text,
				}})...)
		}
	}
	return updates
}

// call returns a call of which only the input was recorded.
func (p ResumableSessions) call(b model.Block) *event.Call {
	c := &event.Call{ID: b.ID, Name: b.Name, Kind: event.Other, Input: b.Input}
	in := event.Texts(b.Input, "command", "file_path", "path", "notebook_path")
	i := slices.IndexFunc(p.Tools, func(t event.ToolSpec) bool { return t.Name == b.Name })
	if i >= 0 && p.Tools[i].Kind != event.Other {
		c.Kind = p.Tools[i].Kind
	} else if strings.HasPrefix(b.Name, "mcp__") {
		c.Kind = event.MCP
	} else if in["command"] != "" {
		c.Kind = event.Shell
	}
	if c.Kind == event.Shell {
		c.Command = in["command"]
	} else {
		c.Path = cmp.Or(in["file_path"], in["notebook_path"], in["path"])
	}
	return c
}
