// Package xnlcall lets a model that cannot call functions call tools in XNL, by the protocol of seed 2. It wraps any
// model.Client, so that the engine sees only ordinary calls.
//
//	request  ─▶ tools become documents in the prompt; calls and results become text ─▶ model
//	answer   ◀─ text without blocks, and calls ◀─ scanner ◀─ pieces of text ◀───────── model
//
// It promises: only complete blocks between !unquote_start and !unquote_end are calls, never what is quoted, thought,
// or appears word for word in a result or a preloaded file of the conversation; the calls are returned with the
// complete answer; the model gets back byte for byte what it wrote, so that the beginning of a conversation can be
// cached; and an invalid block gets an answer that says what is missing.
//
// It runs nothing. For a request without tools, it only changes the form of earlier calls.
package xnlcall

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
)

// The protocols of tool calls, as in the flag --tool-protocol and in the configuration.
const (
	XNL    = "xnl"
	Native = "native"
)

// wire is the value of model.Block.Wire for calls that were written as text.
const wire = "xnl"

// origin is the original form of such a call, kept in model.Block.Opaque.
type origin struct {
	ID  string `json:"id,omitempty"` // as the model wrote it; empty: it wrote no valid one
	Raw string `json:"raw,omitempty"`
}

// originOf returns the origin of a call. ok is false if the call was not written as text.
func originOf(b model.Block) (o origin, ok bool) {
	return o, b.Kind == model.Call && b.Wire == wire && json.Unmarshal(b.Opaque, &o) == nil
}

// Wrap returns a client whose model calls tools in XNL.
func Wrap(c model.Client) model.Client { return &client{Client: c} }

// ScriptClient returns a client for the script of a rehearsal. The script makes ordinary calls; they are written in
// XNL, as a model would write them, and parsed like any answer.
func ScriptClient(c model.Client) model.Client { return &client{Client: script{c}, plays: true} }

// script writes the calls of an answer as text.
type script struct{ model.Client }

// Close closes the underlying client, if it can be closed.
func (s script) Close() error { return model.Close(s.Client) }

// Ask implements model.Client.
func (s script) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	n := namesOf(q.Tools)
	q.Tools = slices.Clone(q.Tools)
	for i, t := range q.Tools { // scripts use the plain names
		q.Tools[i].Name = strings.TrimPrefix(t.Name, tool.Namespace+".")
	}
	answer, err := s.Client.Ask(ctx, q, hear)
	if err != nil || len(answer.Calls()) == 0 {
		return answer, err
	}
	wrote := *answer
	wrote.Blocks, wrote.Stop = slices.Clone(answer.Blocks), model.Done
	for i, b := range wrote.Blocks {
		if b.Kind == model.Call {
			wrote.Blocks[i].Name = n.native(b.Name)
		}
	}
	wrote.Blocks = n.said(wrote.Blocks)
	return &wrote, nil
}

type client struct {
	model.Client
	plays bool // a script answers, and gets the tools
}

// sent returns a request as it is sent.
func (c *client) sent(q model.Request) model.Request {
	if c.plays {
		return q
	}
	return written(q)
}

// Count counts the tokens of a request as it would be sent.
func (c *client) Count(ctx context.Context, q model.Request) (tokens int64, exact bool, err error) {
	return c.Client.Count(ctx, c.sent(q))
}

// Close closes the underlying client, if it can be closed.
func (c *client) Close() error { return model.Close(c.Client) }

// Ask sends a request as text, and reads calls from the text of the answer.
func (c *client) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	if len(q.Tools) == 0 {
		return c.Client.Ask(ctx, c.sent(q), hear)
	}
	if hear == nil {
		hear = func(model.Piece) {}
	}
	r := newReader(namesOf(q.Tools))
	tell := func(text string) {
		if text != "" {
			hear(model.Piece{Kind: model.Text, Text: text})
		}
	}
	var heard strings.Builder
	answer, err := c.Client.Ask(ctx, c.sent(q), func(p model.Piece) {
		if p.Kind != model.Text {
			hear(p)
			return
		}
		heard.WriteString(p.Text)
		tell(r.feed(p.Text))
	})
	if err != nil {
		return answer, visible(err, r.names)
	}
	tell(r.end(answer.Stop))
	if heard.String() != answer.Text() {
		r = read(r.names, answer.Text(), answer.Stop)
	}
	return r.answer(*answer, q.Messages), nil
}

// read parses a complete text.
func read(n names, text string, stop model.Stop) *reader {
	r := newReader(n)
	r.feed(text)
	r.end(stop)
	return r
}

// visible returns an error whose partial answer has no calls and ends before an incomplete block, so that the model
// continues there.
func visible(err error, n names) error {
	var e *model.Error
	if !errors.As(err, &e) || len(e.Partial) == 0 {
		return err
	}
	plain := *e
	plain.Partial = slices.DeleteFunc(slices.Clone(e.Partial), func(b model.Block) bool { return b.Kind == model.Call })
	for i, b := range plain.Partial {
		if b.Kind == model.Text {
			r := newReader(n)
			plain.Partial[i].Text = r.feed(b.Text)
		}
	}
	return &plain
}

// answer returns the answer with its calls. messages are the conversation before it.
func (r *reader) answer(a model.Answer, messages []model.Message) *model.Answer {
	blocks := slices.DeleteFunc(slices.Clone(a.Blocks), func(b model.Block) bool {
		return b.Kind == model.Text || b.Kind == model.Call
	})
	quoted := quotedIn(messages)
	for _, s := range r.segments {
		if s.call == nil {
			blocks = append(blocks, model.Block{Kind: model.Text, Text: s.text})
			continue
		}
		if s.call.problem == "" && quoted(s.call.code) {
			s.call.reject(standsElsewhere)
		}
		blocks = append(blocks, s.call.block())
	}
	for _, b := range a.Calls() { // the model called a function although it was offered none
		b.Name = r.names.native(b.Name)
		blocks = append(blocks, b)
	}
	if a.Blocks = blocks; len(a.Calls()) > 0 {
		a.Stop = model.Calls
	}
	return &a
}

const standsElsewhere = "this call stands word for word in a result or a file of the conversation, so it counts as " +
	"quoted and was not run. If the user's task needs it, write it in your own words"

// quotedIn returns a function that reports whether a text occurs in a result of a tool or in a preloaded file.
func quotedIn(messages []model.Message) func(code string) bool {
	return func(code string) bool {
		code = strings.TrimSpace(code)
		for _, m := range messages {
			for _, b := range m.Blocks {
				foreign := b.Kind == model.Result && b.Name != tool.RejectedName ||
					b.Kind == model.Text && m.Role == model.User && strings.HasPrefix(b.Text, "@file:")
				if foreign && strings.Contains(b.Text, code) {
					return true
				}
			}
		}
		return false
	}
}

// block returns the call as the engine gets it.
func (c *writtenCall) block() model.Block {
	b := model.Block{Kind: model.Call, ID: c.id, Name: c.name, Input: c.input, Wire: wire}
	b.Opaque, _ = json.Marshal(origin{c.id, c.raw}) // two strings
	if c.problem != "" {
		b.Name = tool.RejectedName
		b.Input, _ = json.Marshal(struct {
			Call    string `json:"call,omitempty"`
			Problem string `json:"problem"`
		}{c.name, c.problem})
	}
	return b
}

// names maps the names that the model writes to the tools of a request.
type names struct {
	real map[string]string // by the written name
	list []string          // the written names, in order
}

// others is the namespace of the tools that are not routes of seed 2.
const others = "Tools"

func namesOf(tools []event.ToolSpec) names {
	n := names{real: map[string]string{}}
	for _, t := range tools {
		if t.Name == tool.RejectedName {
			continue
		}
		name := t.Name
		if !strings.HasPrefix(name, tool.Namespace+".") {
			name = others + "." + identifier(name)
			for n.real[name] != "" {
				name += "_"
			}
		}
		n.real[name] = t.Name
		n.list = append(n.list, name)
	}
	return n
}

// identifier returns a name as a JavaScript identifier.
func identifier(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	if plain == "" || plain[0] >= '0' && plain[0] <= '9' {
		plain = "_" + plain
	}
	return plain
}

// native returns the tool for the name in a native call of the API.
func (n names) native(name string) string {
	if real := n.real[name]; real != "" {
		return real
	}
	plain := name
	for _, prefix := range []string{
		"functions.", tool.Namespace + ".", tool.Namespace + "_", others + ".", others + "_",
	} {
		plain = strings.TrimPrefix(plain, prefix)
	}
	if route := tool.RouteNamed(plain); n.real[route] != "" {
		return route
	}
	if real := n.real[others+"."+identifier(plain)]; real != "" {
		return real
	}
	return tool.RouteOf(name)
}
