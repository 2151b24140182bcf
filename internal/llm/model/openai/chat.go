package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// chatWire is the value of Block.Wire for this API.
const chatWire = "openai-chat"

// NewChat returns a client of the Chat Completions API, of OpenAI or of a compatible server.
func NewChat(o Options) model.Client { return &chat{client: newClient(o)} }

type chat struct {
	client
	noStreamOptions atomic.Bool // the server refuses stream_options
	otherLimit      atomic.Bool // the server uses the other name for the limit of the answer
}

type chatRequest struct {
	Model         string        `json:"model"`
	Messages      []chatMessage `json:"messages"`
	Tools         []chatTool    `json:"tools,omitempty"`
	Stream        bool          `json:"stream"`
	Options       *chatOptions  `json:"stream_options,omitempty"`
	MaxTokens     int64         `json:"max_tokens,omitempty"`
	MaxCompletion int64         `json:"max_completion_tokens,omitempty"`
}

type chatOptions struct {
	Usage bool `json:"include_usage"`
}

type chatMessage struct {
	Role      string     `json:"role"`
	Content   any        `json:"content"` // a string, a list of chatPart, or nothing
	Thought   *string    `json:"reasoning_content,omitempty"`
	Reasoning *string    `json:"reasoning,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
	CallID    string     `json:"tool_call_id,omitempty"`
}

type chatPart struct {
	Type  string            `json:"type"`
	Text  string            `json:"text,omitempty"`
	Image map[string]string `json:"image_url,omitempty"`
	File  map[string]string `json:"file,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function chatDeclared `json:"function"`
}

type chatDeclared struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Ask sends one request. If the server refuses a member of it by name, Ask sends another one without that member: there
// was no answer yet, and there is no other way to learn which spelling a compatible server knows.
func (c *chat) Ask(ctx context.Context, q model.Request, hear func(model.Piece)) (*model.Answer, error) {
	for s := (spelling{c.noStreamOptions.Load(), c.otherLimit.Load()}); ; {
		a, err := c.ask(ctx, q, s, hear)
		better := c.learn(s, err)
		if better == s {
			return a, err
		}
		s = better
	}
}

// spelling says how to write a request, because servers differ.
type spelling struct {
	noStreamOptions bool // no stream_options
	otherLimit      bool // use the other name for the limit of the answer
}

// learn returns the spelling after an error. It learns each point only once, so that retries end.
func (c *chat) learn(s spelling, err error) spelling {
	e, is := errors.AsType[*model.Error](err)
	if !is || e.Trouble != model.Rejected || e.Emitted {
		return s
	}
	limit := "max_tokens"
	if c.vendor() != s.otherLimit {
		limit = "max_completion_tokens"
	}
	switch {
	case strings.Contains(e.Message, "stream_options"):
		s.noStreamOptions = true
		c.noStreamOptions.Store(true)
	case unknownMember(e.Message, limit):
		s.otherLimit = true
		c.otherLimit.Store(true)
	}
	return s
}

// unknownMember reports whether a message says that a member is unknown, not that its value is wrong.
func unknownMember(message, name string) bool {
	return wire.Mentions(message, name) &&
		wire.Mentions(message, "not permitted", "unsupported", "unrecognized", "unknown", "not supported")
}

func (c *chat) ask(ctx context.Context, q model.Request, s spelling, hear func(model.Piece)) (*model.Answer, error) {
	r := &chatReader{client: &c.client, b: &model.Builder{Emit: hear, Wire: chatWire}}
	err := c.api.Stream(ctx, "/chat/completions"+c.query, c.request(q, s), r.event)
	a, err := r.end(err)
	if err != nil {
		return nil, err
	}
	a.Complete(q, "call_openai")
	return a, nil
}

func (c *chat) request(q model.Request, s spelling) chatRequest {
	r := chatRequest{Model: c.model, Stream: true}
	if !s.noStreamOptions {
		r.Options = &chatOptions{Usage: true}
	}
	// OpenAI's models that think refuse max_tokens, and all its models accept the new name. Most other servers only
	// know the old name, and ignore unknown members. An ignored limit is worse than a refused one.
	if c.vendor() != s.otherLimit {
		r.MaxCompletion = c.profile.Limit
	} else {
		r.MaxTokens = c.profile.Limit
	}
	if first := system(q); first != "" {
		r.Messages = append(r.Messages, chatMessage{Role: "system", Content: first})
	}
	thought := thoughtMember(q)
	for _, m := range q.Messages {
		if m.Role == model.Assistant {
			r.Messages = append(r.Messages, chatAssistant(m, thought)...)
		} else {
			r.Messages = append(r.Messages, c.user(m)...)
		}
	}
	for _, t := range q.Tools {
		r.Tools = append(r.Tools,
			chatTool{Type: "function", Function: chatDeclared{t.Name, t.Description, schema(t.Input)}})
	}
	return r
}

// thoughtMember returns the server's name for thinking, or "" if it sent none in this conversation.
func thoughtMember(q model.Request) string {
	for _, m := range q.Messages {
		for _, b := range m.Blocks {
			var name string
			if b.Kind == model.Thinking && b.Wire == chatWire && json.Unmarshal(b.Opaque, &name) == nil {
				return name
			}
		}
	}
	return ""
}

// chatAssistant converts a message of the model. Thinking goes back only with calls, under its original name: servers
// whose models think between calls (DeepSeek, Kimi) refuse a conversation without it, and others drop or refuse it if
// there was no call.
func chatAssistant(m model.Message, thought string) []chatMessage {
	out := chatMessage{Role: "assistant"}
	var said, thinking strings.Builder
	for _, b := range m.Blocks {
		switch b.Kind {
		case model.Text:
			said.WriteString(b.Text)
		case model.Thinking:
			if b.Wire == chatWire {
				thinking.WriteString(b.Text)
			}
		case model.Call:
			out.Calls = append(out.Calls,
				chatCall{ID: b.ID, Type: "function", Function: chatFunction{wire.Identifier(b.Name, 64), input(b)}})
		}
	}
	if said.Len() > 0 {
		out.Content = said.String()
	}
	if out.Content == nil && len(out.Calls) == 0 {
		return nil
	}
	if back := thinking.String(); len(out.Calls) > 0 {
		switch thought {
		case "reasoning_content":
			out.Thought = &back
		case "reasoning":
			out.Reasoning = &back
		}
	}
	return []chatMessage{out}
}

// user converts the results of tools, and then the user's own blocks. A result can only be text, and results must be
// adjacent, so their images follow after them.
func (c *chat) user(m model.Message) []chatMessage {
	var out []chatMessage
	var shown, said []chatPart
	for _, b := range m.Blocks {
		if b.Kind != model.Result {
			said = append(said, c.part(b))
			continue
		}
		out = append(out, chatMessage{Role: "tool", CallID: b.ID, Content: b.Text})
		if len(b.Parts) > 0 {
			shown = append(shown,
				chatPart{Type: "text", Text: "[What the call " + b.ID + " returned beside its text:]"})
		}
		for _, p := range b.Parts {
			shown = append(shown, c.part(p))
		}
	}
	if content := chatContent(append(shown, said...)); content != nil {
		out = append(out, chatMessage{Role: "user", Content: content})
	}
	return out
}

func (c *chat) part(b model.Block) chatPart {
	switch {
	case b.Kind == model.Image && picture(b):
		return chatPart{Type: "image_url", Image: map[string]string{"url": dataURL(b)}}
	case b.Kind == model.File && b.Media == "application/pdf" && c.documents() && len(b.Data) > 0:
		return chatPart{Type: "file", File: map[string]string{"filename": fileName(b), "file_data": dataURL(b)}}
	case b.Kind == model.Image, b.Kind == model.File:
		return chatPart{Type: "text", Text: b.InWords()}
	}
	return chatPart{Type: "text", Text: b.Text}
}

// chatContent returns one string if there is only text, because some servers do not accept lists.
func chatContent(parts []chatPart) any {
	var list []chatPart
	var said []string
	for _, p := range parts {
		if p.Type == "text" && p.Text == "" {
			continue
		}
		list = append(list, p)
		if p.Type == "text" {
			said = append(said, p.Text)
		}
	}
	switch len(list) {
	case 0:
		return nil
	case len(said):
		return strings.Join(said, "\n\n")
	}
	return list
}
