package acp

import (
	"context"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/event"
	"omniagent/internal/model"
	wire "omniagent/internal/proto/acp"
	"omniagent/internal/session"
)

// Keeper knows the sessions that can be gone on with.
type Keeper interface {
	// NewID is an id for a new session.
	NewID() string
	// Keep takes a session for this process, and notes from now on what is told of it.
	Keep(context.Context, Kept) (Record, error)
	// Find is a session; a fault of code NOT_FOUND: there is none.
	Find(ctx context.Context, id string) (Kept, error)
	// List tells of all sessions, the one that was used last first.
	List(context.Context) ([]Kept, error)
	// Replay tells what was said in a session, from the beginning.
	Replay(ctx context.Context, id string, tell func(wire.Update)) error
	// Fork makes a session of another.
	Fork(ctx context.Context, id, newID string) (Kept, error)
	Delete(ctx context.Context, id string) error
}

// Kept is a session that is kept.
type Kept struct {
	ID, Dir, Title string
	Dirs           []string
	Updated        time.Time
	Resume         string // what the agent calls it; empty: nothing was said yet
	Shared         bool   // of a fork: Resume is the other session, which the agent has to copy
}

// Record notes what is told of a session.
type Record interface {
	Tell(wire.Update)
	Resume(id string)
	Close()
}

// Native keeps the sessions of our own agent, which has a journal of each.
type Native struct{ Store session.Store }

var _ Keeper = Native{}

// NewID is an id for a new session.
func (Native) NewID() string { return session.NewID() }

// Keep does nothing: the agent locks its sessions, and writes them.
func (Native) Keep(context.Context, Kept) (Record, error) { return nothing{}, nil }

type nothing struct{}

func (nothing) Tell(wire.Update) {}
func (nothing) Resume(string)    {}
func (nothing) Close()           {}

// Find is a session.
func (n Native) Find(_ context.Context, id string) (Kept, error) {
	v, err := n.Store.Show(id)
	if err != nil {
		return Kept{}, err
	}
	defer v.Close()
	return Kept{ID: id, Dir: v.State.Begin.Cwd, Title: v.State.Title, Updated: v.State.Updated, Resume: id}, nil
}

// List tells of all sessions in which something was said.
func (n Native) List(ctx context.Context) ([]Kept, error) {
	all, _, _, err := n.Store.List(ctx, session.Filter{})
	if err != nil {
		return nil, err
	}
	var list []Kept
	for _, i := range all {
		if i.Messages > 0 {
			list = append(list, Kept{ID: i.Begin.ID, Dir: i.Begin.Cwd, Title: i.Title, Updated: i.Updated, Resume: i.Begin.ID})
		}
	}
	return list, nil
}

// Delete takes a session away.
func (n Native) Delete(ctx context.Context, id string) error { return n.Store.Delete(ctx, id) }

// Fork makes a session of another.
func (n Native) Fork(ctx context.Context, id, newID string) (Kept, error) {
	forked, err := n.Store.Fork(ctx, id, newID)
	if err != nil {
		return Kept{}, err
	}
	return Kept{ID: newID, Resume: newID}, forked.Close()
}

// Replay tells what is in the journal. What was put aside since is told as well: the person has seen it.
func (n Native) Replay(ctx context.Context, id string, tell func(wire.Update)) error {
	v, err := n.Store.Show(id)
	if err != nil {
		return err
	}
	defer v.Close()
	past := newNarrator("r", v.State.Begin.Cwd, nil)
	past.past = true
	users := 0
	for e, err := range v.Entries() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m, is := e.Record.(session.Message)
		if err != nil || !is { // one that cannot be read keeps nobody from the others
			continue
		}
		if said := saidIn(m.Message); said != nil {
			users++
			tell(wire.Update{Kind: wire.Said, Message: "u" + strconv.Itoa(users), Blocks: said})
		}
		for _, u := range past.spoken(m.Message, "r"+strconv.FormatInt(e.Number, 10)) {
			tell(u)
		}
	}
	for _, u := range past.end(nil) {
		tell(u)
	}
	return nil
}

// saidIn is what the user said in a message, nil where it has only results.
func saidIn(m model.Message) []wire.Block {
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

// spoken is what the rest of a message looked like when it was told.
func (n *narrator) spoken(m model.Message, id string) []wire.Update {
	var updates []wire.Update
	for i, b := range m.Blocks {
		message := id + "-" + strconv.Itoa(i)
		switch {
		case b.Kind == model.Text && m.Role == model.Assistant && b.Text != "":
			updates = append(updates, wire.Update{Kind: wire.Answer, Message: message, Text: b.Text})
		case b.Kind == model.Thinking && b.Text != "":
			updates = append(updates, wire.Update{Kind: wire.Thought, Message: message, Text: b.Text})
		case b.Kind == model.Call:
			updates = append(updates, n.event(event.Event{Kind: event.ToolCall, Call: pastCall(b)})...)
		case b.Kind == model.Result:
			updates = append(updates, n.event(event.Event{Kind: event.ToolResult, Result: &event.Result{ID: b.ID, Name: b.Name, Failed: b.Failed, Output: b.Text}})...)
		}
	}
	return updates
}

// pastCall is a call of which only the input was kept.
func pastCall(b model.Block) *event.Call {
	kinds := map[string]event.ToolKind{
		"Bash": event.Shell, "Read": event.Read, "Write": event.Write, "Edit": event.Write, "MultiEdit": event.Write, "NotebookEdit": event.Write,
		"Glob": event.Search, "Grep": event.Search, "LS": event.Search, "WebFetch": event.Web, "Task": event.Agent,
	}
	c := &event.Call{ID: b.ID, Name: b.Name, Kind: event.Other, Input: b.Input}
	if kind, ok := kinds[b.Name]; ok {
		c.Kind = kind
	} else if strings.HasPrefix(b.Name, "mcp__") {
		c.Kind = event.MCP
	}
	in := texts(b.Input, "command", "file_path", "path", "notebook_path")
	if c.Kind == event.Shell {
		c.Command = in["command"]
	} else {
		c.Path = orWord(in["file_path"], orWord(in["notebook_path"], in["path"]))
	}
	return c
}
