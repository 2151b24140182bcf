package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// request is the body of a request.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int64     `json:"max_tokens,omitempty"`
	System    []*block  `json:"system,omitempty"`
	Messages  []message `json:"messages"`
	Tools     []*tool   `json:"tools,omitempty"`
	Stream    bool      `json:"stream,omitempty"`
}

type message struct {
	Role    model.Role `json:"role"`
	Content []any      `json:"content"` // blocks, once complete

	blocks []*block
}

type tool struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input_schema,omitempty"`
	MaxUses     int             `json:"max_uses,omitempty"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

type cache struct {
	Type string `json:"type"`
}

// block is any part of a message or of an answer.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Citations json.RawMessage `json:"citations,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUse   string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Title     string          `json:"title,omitempty"`
	Cache     *cache          `json:"cache_control,omitempty"`

	raw json.RawMessage // the whole block, as the API sent it
}

type source struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  any    `json:"data"`
}

// Defaults for an unknown model.
const (
	usualOutput = 8192
	searches    = 8 // most searches in one answer
)

func (c *client) request(q model.Request) *request {
	r := &request{Model: c.model, MaxTokens: c.profile.Output, Messages: conversation(q.Messages), Stream: true}
	if r.MaxTokens <= 0 {
		r.MaxTokens = usualOutput
	}
	for _, s := range q.System {
		if strings.TrimSpace(s) != "" {
			r.System = append(r.System, &block{Type: "text", Text: s})
		}
	}
	if q.Search {
		r.Tools = append(r.Tools, &tool{Type: "web_search_20250305", Name: "web_search", MaxUses: searches})
	}
	for _, t := range q.Tools {
		form := t.Input
		if len(form) == 0 {
			form = json.RawMessage(`{"type":"object"}`)
		}
		r.Tools = append(r.Tools, &tool{Name: t.Name, Description: t.Description, Input: form})
	}
	if !q.NoCache {
		r.mark()
	}
	for i := range r.Messages {
		r.Messages[i].write()
	}
	return r
}

// write fills Content. Blocks of the API go back unchanged.
func (m *message) write() {
	m.Content = make([]any, len(m.blocks))
	for i, b := range m.blocks {
		m.Content[i] = b
		if b.raw != nil {
			m.Content[i] = b.raw
		}
	}
}

// mark sets the cache breakpoints: after the tools, after the parts of the system prompt, and after each of the last
// two messages of the user. The earlier message finds the cache of the last request, and the later one leaves a cache
// for the next. The API allows four.
func (r *request) mark() {
	kept := &cache{Type: "ephemeral"}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].Cache = kept
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].Cache = kept
	}
	marks := 2
	for i := len(r.Messages) - 1; i >= 0 && marks > 0; i-- {
		if m := r.Messages[i]; m.Role == model.User {
			m.blocks[len(m.blocks)-1].Cache = kept
			marks--
		}
	}
}

// opaque is the content of model.Block.Opaque for this wire: a whole block, which has a type, or additional data of a
// text or a thought.
type opaque struct {
	Type      string          `json:"type,omitempty"`
	ID        string          `json:"id,omitempty"`
	ToolUse   string          `json:"tool_use_id,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Citations json.RawMessage `json:"citations,omitempty"`
}

func opaqueOf(b model.Block) (k opaque) {
	if b.Wire == Wire {
		_ = json.Unmarshal(b.Opaque, &k)
	}
	return k
}

// assistantBlock converts a block of the model, or returns nil if the API does not accept it.
func assistantBlock(b model.Block) *block {
	k := opaqueOf(b)
	switch {
	case k.Type != "":
		return &block{Type: k.Type, ID: k.ID, ToolUse: k.ToolUse, raw: b.Opaque}
	case b.Kind == model.Text && strings.TrimSpace(b.Text) != "":
		return &block{Type: "text", Text: b.Text, Citations: k.Citations}
	case b.Kind == model.Thinking && k.Signature != "":
		return &block{Type: "thinking", Thinking: &b.Text, Signature: k.Signature}
	case b.Kind == model.Call:
		input := b.Input
		if len(input) == 0 || b.Broken != "" {
			input = json.RawMessage("{}")
		}
		return &block{Type: "tool_use", ID: b.ID, Name: wire.Identifier(b.Name, 128), Input: input}
	}
	return nil
}

// userBlock converts a block of the user or of a result.
func userBlock(b model.Block) *block {
	switch b.Kind {
	case model.Text:
		if strings.TrimSpace(b.Text) != "" {
			return &block{Type: "text", Text: b.Text}
		}
	case model.Image:
		switch b.Media {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
			if len(b.Data) > 0 {
				return &block{Type: "image", Source: &source{"base64", b.Media, b.Data}}
			}
		}
		return &block{Type: "text", Text: b.InWords()}
	case model.File:
		media, _, _ := strings.Cut(b.Media, ";")
		switch {
		case len(bytes.TrimSpace(b.Data)) == 0:
		case media == "application/pdf":
			return &block{Type: "document", Source: &source{"base64", media, b.Data}, Title: b.Name}
		case strings.HasPrefix(media, "text/") || media == "application/json":
			return &block{Type: "document", Source: &source{"text", "text/plain", string(b.Data)}, Title: b.Name}
		}
		return &block{Type: "text", Text: b.InWords()}
	}
	return nil
}

// result converts the result of a tool.
func result(b model.Block, id string) *block {
	r := &block{Type: "tool_result", ToolUse: id, IsError: b.Failed}
	text := b.Text
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	var parts []*block
	if text != "" {
		parts = append(parts, &block{Type: "text", Text: text})
	}
	for _, p := range b.Parts {
		if s := userBlock(p); s != nil {
			parts = append(parts, s)
		}
	}
	switch {
	case len(parts) > 1 || len(parts) == 1 && text == "":
		r.Content = parts
	case text != "":
		r.Content = text
	case b.Failed: // the API requires a text in an error
		r.Content = "it failed and did not say why"
	default:
		r.Content = "(no output)"
	}
	return r
}
