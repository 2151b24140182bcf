package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// Frame is a line of a host. At most one of the pointers is set. If all are nil, the line is ignored.
type Frame struct {
	User    *User
	Request *Request
	Reply   *Reply
}

// User is a message.
type User struct {
	Blocks   []event.Block
	Message  json.RawMessage // unchanged
	Priority string          // now, next or later, or empty
	UUID     string          // the host's id; may be empty
}

// Steers reports whether the message is for the running turn, by its priority.
func (u User) Steers() bool { return u.Priority == "now" || u.Priority == "next" }

// Request is a request of the host that needs an answer.
type Request struct {
	ID      string
	Subtype string
	Body    json.RawMessage
}

// Reply answers one of our requests.
type Reply struct {
	ID    string
	Body  json.RawMessage // nil if Error is set
	Error string
}

// BadRequest is an invalid request with a readable id, so that it can be answered.
type BadRequest struct {
	ID  string
	Why string
}

func (b *BadRequest) Error() string { return "control_request: " + b.Why }

// Parse reads a line of the host. An error is about the line only; the conversation continues.
func Parse(data []byte) (Frame, error) {
	var f struct {
		Type      string          `json:"type"`
		Message   json.RawMessage `json:"message"`
		RequestID string          `json:"request_id"`
		Request   json.RawMessage `json:"request"`
		Response  json.RawMessage `json:"response"`
		Priority  string          `json:"priority"`
		UUID      string          `json:"uuid"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return Frame{}, fmt.Errorf("a line must be one JSON object: %w", fault.InJSON(err))
	}
	switch f.Type {
	case "user":
		u, err := parseUser(f.Message)
		if err != nil {
			return Frame{}, err
		}
		u.Priority, u.UUID = f.Priority, f.UUID
		return Frame{User: u}, nil
	case "control_request":
		return parseRequest(f.RequestID, f.Request)
	case "control_response":
		r, err := parseReply(f.Response)
		return Frame{Reply: r}, err
	case "control_cancel_request", "keep_alive": // requests are answered at once
		return Frame{}, nil
	case "":
		return Frame{}, errors.New("the line has no type")
	}
	return Frame{}, fmt.Errorf("unknown type of line %q", clipped(f.Type))
}

// clipped shortens a word of the host for a message.
func clipped(s string) string { return text.Cut(s, 60) }

func parseRequest(id string, raw json.RawMessage) (Frame, error) {
	var r struct {
		Subtype string `json:"subtype"`
	}
	err := json.Unmarshal(raw, &r)
	switch {
	case id == "":
		return Frame{}, errors.New("control_request: request_id is missing")
	case err != nil || r.Subtype == "":
		return Frame{}, &BadRequest{id, "it has no request with a subtype"}
	}
	return Frame{Request: &Request{id, r.Subtype, raw}}, nil
}

// parseReply reads a response. An unknown subtype is an error of the request, because its sender is waiting.
func parseReply(raw json.RawMessage) (*Reply, error) {
	var r struct {
		Subtype   string          `json:"subtype"`
		RequestID string          `json:"request_id"`
		Response  json.RawMessage `json:"response"`
		Error     string          `json:"error"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || r.RequestID == "" {
		return nil, errors.New("control_response: request_id is missing")
	}
	switch {
	case r.Subtype == "success":
		if r.Response == nil {
			r.Response = json.RawMessage("{}")
		}
		return &Reply{ID: r.RequestID, Body: r.Response}, nil
	case r.Error != "":
	case r.Subtype == "error":
		r.Error = "no reason was given"
	default:
		r.Error = fmt.Sprintf("a response of the unknown subtype %q", clipped(r.Subtype))
	}
	return &Reply{ID: r.RequestID, Error: r.Error}, nil
}

func parseUser(raw json.RawMessage) (*User, error) {
	var m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errors.New("user: message is missing")
	}
	if m.Role != "user" {
		return nil, fmt.Errorf("user: the message's role is %q", clipped(m.Role))
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return nil, errors.New("user: content is empty")
		}
		return &User{Blocks: []event.Block{{Text: text}}, Message: raw}, nil
	}
	var parts []json.RawMessage
	if json.Unmarshal(m.Content, &parts) != nil || len(parts) == 0 {
		return nil, errors.New("user: content must be a text or a list of blocks")
	}
	u := &User{Message: raw}
	for _, part := range parts {
		b, err := parseBlock(part)
		if err != nil {
			return nil, err
		}
		u.Blocks = append(u.Blocks, b)
	}
	return u, nil
}

// part is a block of a user's message.
type part struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Title  string `json:"title,omitempty"`
	Source source `json:"source,omitzero"`
}

// source is a file in a message: its bytes in base64, or a text.
type source struct {
	Type  string          `json:"type"`
	Media string          `json:"media_type"`
	Data  json.RawMessage `json:"data"`
}

// UserLine returns a message as a line. The error names an unsupported block.
func UserLine(uuid, session string, blocks []event.Block) ([]byte, error) {
	var parts []part
	for _, b := range blocks {
		kind := "image"
		switch {
		case b.Media == "":
			parts = append(parts, part{Type: "text", Text: b.Text})
			continue
		case b.Media == "application/pdf":
			kind = "document"
		case !strings.HasPrefix(b.Media, "image/"):
			return nil, fault.New(fault.Unsupported, "Claude Code accepts no %s in a message", b.Media)
		}
		parts = append(parts, part{Type: kind, Source: source{"base64", b.Media, encode(b.Data)}})
	}
	return encode(messageLine{
		Type: "user", Message: userMessage{"user", parts}, Session: session, Identifier: uuid,
	}), nil
}

func parseBlock(raw json.RawMessage) (event.Block, error) {
	var b part
	if err := json.Unmarshal(raw, &b); err != nil {
		return event.Block{}, errors.New("user: a block must be an object with a type")
	}
	switch b.Type {
	case "text":
		return event.Block{Text: b.Text}, nil
	case "image", "document":
		switch {
		case b.Source.Type == "text" && b.Type == "document":
			var text string
			if json.Unmarshal(b.Source.Data, &text) != nil {
				return event.Block{}, errors.New("user: a document has no text")
			}
			return event.Block{Text: text}, nil
		case b.Source.Type != "base64":
			return event.Block{}, fmt.Errorf("user: %s with a source of the type %q cannot be sent; base64 can", b.Type,
				clipped(b.Source.Type))
		}
		var data []byte
		if json.Unmarshal(b.Source.Data, &data) != nil || len(data) == 0 || b.Source.Media == "" {
			return event.Block{}, fmt.Errorf("user: %s has no data in base64, or no media_type", b.Type)
		}
		return event.Block{Media: b.Source.Media, Data: data, Name: b.Title}, nil
	}
	return event.Block{}, fmt.Errorf("user: a block of the type %q cannot be sent", clipped(b.Type))
}
