package acpclient

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// toolCall collects what the agent has reported about a tool call. Some agents announce a call before the model has
// finished its input, so we report it only when it is complete.
type toolCall struct {
	acp.Tool
	terminal string // its id, in version 2
	told     bool
	ended    bool
}

// notified handles a notification.
func (t *talk) notified(m jsonrpc.Message) []event.Event {
	if m.Method == "$/cancel_request" {
		var p struct{ RequestID json.RawMessage }
		_ = json.Unmarshal(m.Params, &p)
		return t.Questions.Withdraw("q" + string(p.RequestID))
	}
	if m.Method != "session/update" {
		return []event.Event{{Kind: event.Notice, Text: m.Method}}
	}
	session, u, raw, known := acp.ReadUpdate(m.Params)
	switch {
	case !known:
		return []event.Event{{Kind: event.Notice, Text: strings.TrimSpace("session/update " + string(u.Kind))}}
	case t.open && session != t.offer.Session:
		return nil // from another session, such as a sub-agent's
	case u.Kind == acp.OptionsChanged:
		t.offer.Read(raw)
		return nil
	case u.Kind == acp.ContextUsage:
		t.facts.Window, t.cost = u.Usage.Size, cmp.Or(u.Usage.CostUSD, t.cost)
		return nil
	case !t.open: // it repeats earlier messages
		return nil
	case u.Kind == acp.Conditions:
		return t.state(u)
	}
	events := t.told(u)
	if len(events) > 0 && t.busy {
		events = append(t.begins(), events...)
	}
	return events
}

// told returns the events of an update.
func (t *talk) told(u acp.Update) []event.Event {
	one := func(e event.Event) []event.Event { return []event.Event{e} }
	switch u.Kind {
	case acp.Answer, acp.Thinking:
		kind := event.Text
		if u.Kind == acp.Thinking {
			kind = event.Thinking
		} else {
			t.last = u.Text
			t.pieces++
		}
		if u.Text != "" {
			return one(event.Event{Kind: kind, Text: u.Text, Delta: !u.Whole})
		}
	case acp.ToolCall:
		t.pieces = 0
		return t.tool(u.Tool)
	case acp.TerminalOutput:
		t.output(u.Tool)
	case acp.Plan:
		plan := "plan:"
		for _, s := range u.Steps {
			plan += "\n" + map[string]string{acp.Completed: "[x] ", acp.InProgress: "[>] "}[s.Status] + s.Text
		}
		if plan != t.plan {
			t.plan = plan
			return one(event.Event{Kind: event.Notice, Text: plan})
		}
	case acp.Commands:
		t.facts.Commands = strings.Fields(u.Text)
	case acp.Notice:
		return one(event.Event{Kind: event.Notice, Text: u.Text})
	case acp.Compaction:
		if u.State == acp.Completed {
			return one(event.Event{Kind: event.Compacted, Compaction: &event.Compaction{}})
		}
	}
	return nil
}

// state handles the state of the session, which in version 2 ends a turn.
func (t *talk) state(u acp.Update) []event.Event {
	switch {
	case u.State == "running" && !t.begun:
		return t.begins()
	case u.State != "idle" || !t.begun:
		return nil
	case u.Error != nil:
		return t.ended(u.Stop, t.faultOf("session/prompt", u.Error))
	}
	return t.ended(cmp.Or(u.Stop, "end_turn"), nil)
}

// tool handles a change of a call.
func (t *talk) tool(u *acp.Tool) []event.Event {
	c := t.merge(u)
	switch {
	case c.ended:
		return nil
	case u.Status == acp.InProgress:
		return t.tell(c)
	case u.Status == acp.Completed || u.Status == acp.FailedCall || u.Status == "cancelled":
		return t.result(c)
	}
	return nil
}

// merge adds a change to a call.
func (t *talk) merge(u *acp.Tool) *toolCall {
	c := t.calls[u.ID]
	if c == nil {
		c = &toolCall{}
		t.calls[u.ID] = c
		t.order = append(t.order, u.ID)
	}
	old := c.Tool
	c.Tool = *u
	c.Name, c.Title, c.Kind = cmp.Or(u.Name, old.Name), cmp.Or(u.Title, old.Title), cmp.Or(u.Kind, old.Kind)
	c.Output, c.Parent = cmp.Or(u.Output, old.Output), cmp.Or(u.Parent, old.Parent)
	c.Terminal, c.Status = cmp.Or(u.Terminal, old.Terminal), cmp.Or(u.Status, old.Status)
	if old.Terminal != nil && u.Terminal != nil && u.Terminal.Output == nil {
		c.Terminal.Output = old.Terminal.Output
	}
	if u.Input == nil {
		c.Input = old.Input
	} else {
		c.Input = slices.Clone(u.Input)
	}
	if len(u.Locations) == 0 {
		c.Locations = old.Locations
	}
	switch {
	case u.More:
		c.Content = append(old.Content, u.Content...)
	case u.Content == nil:
		c.Content = old.Content
	}
	for _, part := range u.Content {
		c.terminal = cmp.Or(part.Terminal, c.terminal)
	}
	return c
}

// output handles the output of a terminal.
func (t *talk) output(u *acp.Tool) {
	at := t.terminals[u.ID]
	if at == nil {
		at = &acp.Terminal{}
		t.terminals[u.ID] = at
	}
	if data := u.Terminal.Output; data != nil {
		whole := *data
		if u.More && at.Output != nil {
			whole = *at.Output + whole
		}
		at.Output = &whole
	}
	if u.Terminal.Ended {
		at.Ended, at.Exit = true, u.Terminal.Exit
	}
}

// tell reports a call, once.
func (t *talk) tell(c *toolCall) []event.Event {
	if c.told {
		return nil
	}
	c.told = true
	return []event.Event{{Kind: event.ToolCall, Session: t.offer.Session, Parent: c.Parent, Call: t.call(&c.Tool)}}
}

// call converts a call to an event's call.
func (t *talk) call(c *acp.Tool) *event.Call {
	kind := kindOf(c.Kind)
	call := event.NewCall(c.ID, cmp.Or(c.Name, c.Kind, "tool"), kind, c.Input, "file_path", "filePath", "filepath",
		"path")
	var diff *acp.Diff
	for _, part := range c.Content {
		diff = cmp.Or(diff, part.Diff)
	}
	switch {
	case kind == event.Shell:
		call.Command = cmp.Or(call.Command, c.Title)
	case kind == event.Read || kind == event.Write:
		if len(c.Locations) > 0 {
			call.Path = c.Locations[0]
		} else if diff != nil {
			call.Path = diff.Path
		}
		call.Path = t.absolute(call.Path)
	}
	if c.Input != nil || diff == nil || diff.Part {
		return call
	}
	input := map[string]string{"file_path": diff.Path, "content": diff.New}
	if diff.Old != nil && *diff.Old != "" {
		input = map[string]string{"file_path": diff.Path, "old_string": *diff.Old, "new_string": diff.New}
	}
	call.Canonical, _ = text.JSON(input) // input is made of valid texts
	return call
}

func (t *talk) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(t.o.dir, path)
}

func kindOf(kind string) event.ToolKind {
	return cmp.Or(map[string]event.ToolKind{
		"execute": event.Shell, "read": event.Read, "edit": event.Write, "delete": event.Write, "move": event.Write,
		"search": event.Search, "fetch": event.Web,
	}[kind], event.Other)
}

// result reports the result of a call.
func (t *talk) result(c *toolCall) []event.Event {
	out := t.tell(c)
	c.ended = true
	r := &event.Result{ID: c.ID, Name: cmp.Or(c.Name, c.Kind, "tool"), Failed: c.Status != acp.Completed}
	terminal := cmp.Or(t.terminals[c.terminal], c.Terminal, &acp.Terminal{})
	r.ExitCode = terminal.Exit
	var words []string
	for _, part := range c.Content {
		switch d := part.Diff; {
		case d == nil && part.Text != "":
			words = append(words, part.Text)
		case d != nil && !d.Part && r.Change == nil && !r.Failed:
			r.Change = &event.Change{Path: t.absolute(d.Path), Old: d.Old, New: d.New}
		}
	}
	switch r.Output = strings.Join(words, "\n"); {
	case terminal.Output != nil:
		r.Output = *terminal.Output
	case c.Output != "":
		r.Output = c.Output
	}
	if t.o.Exit != nil && r.ExitCode == nil && kindOf(c.Kind) == event.Shell {
		r.ExitCode = t.o.Exit(r.Output)
	}
	out = append(out, event.Event{Kind: event.ToolResult, Session: t.offer.Session, Parent: c.Parent, Result: r})
	if c.Code == "denied" {
		out = append(out, t.denial(t.call(&c.Tool), r.Output, false))
	}
	return out
}

func (t *talk) denial(call *event.Call, reason string, byUser bool) event.Event {
	return event.Event{Kind: event.Denied, Session: t.offer.Session, Denial: &event.Denial{
		CallID: call.ID, Tool: call.Name, Reason: cli.FirstLine(reason), ByUser: byUser,
	}}
}

// callsLeft reports the calls that were only announced, and forgets all calls of the turn.
func (t *talk) callsLeft() (out []event.Event) {
	for _, id := range t.order {
		out = append(out, t.tell(t.calls[id])...)
	}
	t.calls, t.order, t.terminals = map[string]*toolCall{}, nil, map[string]*acp.Terminal{}
	clear(t.granted)
	return out
}
