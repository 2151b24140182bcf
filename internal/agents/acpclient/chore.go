package acpclient

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/live"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// chore handles a request for a file or a terminal: it passes it to the host, asks a person first, or refuses it.
//
//	fs/read_text_file       in every mode but deny; ask asks
//	fs/write_text_file      as the mode decides about a change of that file; auto-edit asks about hidden ones
//	terminal/create         as the mode decides about that command
//	the rest of terminal/   always: it is about a command that runs already
//
// A call that a person allowed when the agent asked for permission needs no second question in the same turn.
func (t *talk) chore(m jsonrpc.Message) []event.Event {
	c, ok := acp.ReadChore(m.Params)
	if !ok {
		t.AddLine(jsonrpc.Failure(m.ID, jsonrpc.Errorf(jsonrpc.InvalidParams, "%s: invalid parameters", m.Method)))
		return []event.Event{{Kind: event.Notice, Text: m.Method}}
	}
	about := &acp.Tool{ID: "c" + string(m.ID), Locations: []string{c.Path}}
	switch m.Method {
	case acp.ReadFile:
		about.Kind, about.Title = "read", "read "+c.Path
	case acp.WriteFile:
		about.Kind, about.Title = "edit", "write "+c.Path
		about.Content = []acp.Content{{Diff: &acp.Diff{Path: c.Path, New: c.Content}}}
	case acp.CreateTerminal:
		about.Kind, about.Title, about.Locations = "execute", t.commandOf(c), nil
	default:
		t.need(m.ID, m.Method, m.Params)
		return nil
	}
	call := t.call(about)
	switch allowed, decided := t.judgeChore(call, writtenBy(about)); {
	case decided && allowed:
		t.need(m.ID, m.Method, m.Params)
		return t.begins()
	case decided:
		t.deny(m.ID)
		return append(t.begins(), t.denial(call, "the mode is "+string(t.o.mode), false))
	}
	out := append(t.begins(), t.tell(t.merge(about))...)
	q := question{
		id: slices.Clone(m.ID), call: call, text: writtenBy(about), allow: event.Allow, method: m.Method,
		params: slices.Clone(m.Params),
	}
	ask := &event.Ask{ID: "q" + string(m.ID), Text: about.Title, Options: q.names(), Tool: call}
	t.Questions.Ask(ask.ID, q)
	return append(out, event.Event{Kind: event.Question, Session: t.offer.Session, Ask: ask})
}

// judgeChore decides about a chore by the mode, or by what a person has already allowed.
func (t *talk) judgeChore(c *event.Call, text *string) (allowed, decided bool) {
	switch {
	case t.granted[grantOf(c, text)]:
		return true, true
	case c.Kind == event.Read:
		return t.o.mode != setting.DenyAll, t.o.mode != setting.AskAll
	case t.o.mode == setting.AutoEdit && hiddenIn(t.o.dir, c.Path):
		return false, false // git's configuration and settings of agents, for example, decide what runs later
	}
	return t.judge(c)
}

// hiddenIn reports whether a path in dir has an element that begins with a dot.
func hiddenIn(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && slices.ContainsFunc(strings.Split(filepath.ToSlash(rel), "/"), func(name string) bool {
		return strings.HasPrefix(name, ".")
	})
}

// commandOf returns a command together with its variables and its directory, which affect what it does.
func (t *talk) commandOf(c acp.Chore) string {
	var words []string
	if c.Cwd != "" && filepath.Clean(c.Cwd) != filepath.Clean(t.o.dir) {
		words = append(words, "cd "+c.Cwd+" &&")
	}
	for _, v := range c.Env {
		words = append(words, v.Name+"="+v.Value)
	}
	return strings.Join(append(append(words, c.Command), c.Args...), " ")
}

// grant records what a person allowed, so that this turn does not ask about it again.
func (t *talk) grant(q *question) {
	if q.call == nil {
		return
	}
	if what := grantOf(q.call, q.text); what != "" {
		t.granted[what] = true
	}
}

// grantOf returns a key for exactly what a person allows with a call: to run this command, to read this file, or to
// write this text to it. It returns "" if that is not certain.
func grantOf(c *event.Call, text *string) string {
	switch {
	case c.Kind == event.Shell:
		return "run " + c.Command
	case c.Kind == event.Read:
		return "read " + c.Path
	case c.Kind == event.Write && text != nil:
		return "write " + c.Path + "\x00" + *text
	}
	return ""
}

// writtenBy returns the content of a file after a call, if the call shows all of it.
func writtenBy(t *acp.Tool) *string {
	for _, part := range t.Content {
		if part.Diff != nil && !part.Diff.Part {
			return &part.Diff.New
		}
	}
	return nil
}

// need passes a request to the host.
func (t *talk) need(id []byte, method string, params []byte) {
	name := string(id)
	t.chores[name] = slices.Clone(id)
	t.Step.Needs = append(t.Step.Needs, live.Need{ID: name, Chore: method, Message: slices.Clone(params)})
}

// deny refuses a request.
func (t *talk) deny(id []byte) {
	t.AddLine(jsonrpc.Failure(id, jsonrpc.Errorf(acp.RequestCancelled, "the user does not allow this")))
}

// hostAnswered answers a request that the host has served.
func (t *talk) hostAnswered(m live.HostAnswer) {
	id, known := t.chores[m.Need]
	if !known {
		return
	}
	delete(t.chores, m.Need)
	if m.Err == nil {
		t.AddLine(jsonrpc.Result(id, m.Result))
		return
	}
	told, is := errors.AsType[*jsonrpc.Error](m.Err)
	if !is {
		told = jsonrpc.Errorf(jsonrpc.InternalError, "%v", m.Err)
	}
	t.AddLine(jsonrpc.Failure(id, told))
}
