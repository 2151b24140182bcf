package modelserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"omniagent/internal/kit/text"
)

// Wire is one model API.
type Wire string

// The wires.
const (
	Messages  Wire = "messages"  // Anthropic Messages
	Responses Wire = "responses" // OpenAI Responses
	Chat      Wire = "chat"      // OpenAI Chat Completions and what is compatible with it
	Gemini    Wire = "gemini"    // Gemini generateContent and streamGenerateContent
)

// Request is one question to a model, in one form for all wires.
type Request struct {
	Number   int         `json:"number"` // 1, 2, 3… in the order of arrival
	Wire     Wire        `json:"wire"`
	Path     string      `json:"path"`
	Model    string      `json:"model"`
	Stream   bool        `json:"stream"`
	System   string      `json:"system,omitempty"`
	Messages []Message   `json:"messages"`
	Tools    []Tool      `json:"tools,omitempty"`
	Forced   string      `json:"forced,omitempty"` // the tool that must be called
	Schema   JSON        `json:"schema,omitempty"` // of the answer, where one is asked for
	Header   http.Header `json:"header"`
	Raw      JSON        `json:"-"` // the body as it came; nil for old requests, since what is kept is bounded

	usage bool // Chat: the stream ends with an event for the usage
	array bool // Gemini: the stream is an array rather than events
}

// JSON is a value as it was sent.
type JSON = json.RawMessage

// The roles. What a tool answered is a block of a user message on every wire.
const (
	User      = "user"
	Assistant = "assistant"
	System    = "system" // also "developer"
)

// Message is what one side said until the other's turn; consecutive parts of one side's turn are one message.
type Message struct {
	Role   string  `json:"role"`
	Blocks []Block `json:"blocks"`
}

// BlockKind says what a block is.
type BlockKind string

// The kinds of blocks. Image stands for anything that is not text: what it holds is not kept.
const (
	Text     BlockKind = "text"
	Thinking BlockKind = "thinking"
	Calling  BlockKind = "call"
	Result   BlockKind = "result"
	Image    BlockKind = "image"
)

// Block is a part of a message.
type Block struct {
	Kind  BlockKind `json:"kind"`
	Text  string    `json:"text,omitempty"` // of a text, a thought or a result; the input of a custom tool
	ID    string    `json:"id,omitempty"`   // of a call or of the call that a result answers
	Name  string    `json:"name,omitempty"`
	Input JSON      `json:"input,omitempty"`
	Error bool      `json:"error,omitempty"` // a result that says it failed, where the wire can say so
}

// Tool is what the agent offers to the model.
type Tool struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	// function, custom, local_shell, or the wire's name of a tool that the model's side runs
	Kind        string `json:"kind"`
	Description string `json:"description,omitempty"`
	Schema      JSON   `json:"schema,omitempty"` // of the input
}

// Hosted reports whether the model's side would run the tool, not the agent.
func (t Tool) Hosted() bool {
	switch t.Kind {
	case "function", "custom", "local_shell":
		return false
	}
	return true
}

func (t Tool) call(input JSON) Call {
	return Call{Name: t.Name, Namespace: t.Namespace, Kind: t.Kind, Input: input}
}

// add appends blocks to the turn of one side: wires that send one item for each block give the same messages as those
// that do not.
func (r *Request) add(role string, blocks ...Block) {
	if role != User && role != Assistant {
		role = System
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role && role == Assistant {
		r.Messages[n-1].Blocks = append(r.Messages[n-1].Blocks, blocks...)
		return
	}
	r.Messages = append(r.Messages, Message{role, blocks})
}

// decode reads a body or a part of it; the error names the part.
func decode(data []byte, what string, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// absent reports whether a member is missing or null.
func absent(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) == 0 || string(data) == "null"
}

// part is a block of content as all wires but Gemini write it; each wire uses some of the members.
type part struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Refusal   string `json:"refusal"`
	Thinking  string `json:"thinking"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	Input     JSON   `json:"input"`
	ToolUseID string `json:"tool_use_id"`
	Content   JSON   `json:"content"`
	IsError   bool   `json:"is_error"`
	ToolName  string `json:"tool_name"`
}

// parts reads content that is either a text or a list.
func parts(data JSON, what string) ([]part, error) {
	data = bytes.TrimSpace(data)
	if absent(data) {
		return nil, nil
	}
	if data[0] == '"' {
		var s string
		err := decode(data, what, &s)
		return []part{{Type: "text", Text: s}}, err
	}
	var list []part
	err := decode(data, what, &list)
	return list, err
}

// plain is the text of content that is either a text or a list.
func plain(data JSON, what string) (string, error) {
	list, err := parts(data, what)
	if err != nil {
		return "", err
	}
	texts := []string{}
	for _, p := range list {
		switch {
		case p.Text != "":
			texts = append(texts, p.Text)
		case p.ToolName != "":
			texts = append(texts, p.ToolName)
		}
	}
	return strings.Join(texts, "\n"), nil
}

// sortedKeys are the names of members, in an order that does not change from call to call.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// object is a JSON object whose members keep their order: name, value, name, value…
func object(members ...any) JSON {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i+1 < len(members); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(members[i]))
		b.WriteByte(':')
		b.Write(encode(members[i+1]))
	}
	b.WriteByte('}')
	return b.Bytes()
}

// encode writes a value as the APIs do: on one line, with < and > as they are. What cannot be written is null.
func encode(v any) JSON {
	line, err := text.JSON(v)
	if err != nil {
		return JSON("null")
	}
	return line
}
