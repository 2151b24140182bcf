package yume

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// Frame is a line of a host. One field is set, apart from Steer.
type Frame struct {
	User      []event.Block
	Steer     bool // User is for the running turn
	Interrupt bool
	Mode      setting.Approval // set_permission_mode
	Approval  *Approval        // tool_approval
}

// Approval answers a question.
type Approval struct {
	ID     string // of the question, or of its call
	Option string
	Reason string
}

// ModeWord returns a mode in the words of this dialect.
func ModeWord(mode setting.Approval) string {
	switch mode {
	case setting.Yolo:
		return "auto"
	case setting.AskAll:
		return "interactive"
	}
	return string(mode)
}

// Modes returns the permission modes of this dialect: first its own words, then the words that all hosts share.
func Modes() []string {
	return []string{"default", "interactive", "auto", "deny", "ask", "plan", "prompt", "auto-edit", "yolo"}
}

// Parse reads a line of the host. An error is about the line only; the conversation continues.
func Parse(data []byte) (Frame, error) {
	var f struct {
		Type     string          `json:"type"`
		Content  json.RawMessage `json:"content"`
		Message  json.RawMessage `json:"message"`
		Mode     string          `json:"mode"`
		ID       string          `json:"id"`
		Approved *bool           `json:"approved"`
		Option   string          `json:"option"`
		Steer    bool            `json:"steer"`
		Reason   string          `json:"reason"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		if _, syntax := errors.AsType[*json.SyntaxError](err); syntax {
			return Frame{}, fmt.Errorf(`it is not JSON: %w; a message is {"type":"user","content":"TEXT"}`, err)
		}
		return Frame{}, fmt.Errorf("it cannot be read: %w", fault.InJSON(err))
	}
	switch f.Type {
	case "user":
		said, err := content(f.Content, f.Message)
		return Frame{User: said, Steer: f.Steer}, err
	case "interrupt":
		return Frame{Interrupt: true}, nil
	case "set_permission_mode":
		mode, ok := setting.ParseApproval(f.Mode)
		if !ok {
			return Frame{}, fmt.Errorf("set_permission_mode: unknown mode %q; the modes are %s", f.Mode,
				strings.Join(Modes(), ", "))
		}
		return Frame{Mode: mode}, nil
	case "tool_approval":
		a := &Approval{f.ID, f.Option, f.Reason}
		if f.Approved != nil && *f.Approved {
			a.Option = event.Allow
		} else if f.Approved != nil {
			a.Option = event.Deny
		}
		if a.ID == "" || a.Option == "" {
			return Frame{}, errors.New("tool_approval: id, which is the question_id of the request, and approved, " +
				"true or false, are needed")
		}
		return Frame{Approval: a}, nil
	case "":
		return Frame{}, errors.New("the control frame has no type")
	}
	return Frame{}, fmt.Errorf("unknown control frame %q", f.Type)
}

// content returns the blocks of a text, or of a list of blocks in Claude's format.
func content(plain, message json.RawMessage) ([]event.Block, error) {
	if plain == nil && message != nil {
		var m struct {
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return nil, fmt.Errorf("user: %w", fault.InJSON(err))
		}
		plain = m.Content
	}
	var text string
	if err := json.Unmarshal(plain, &text); err == nil {
		if strings.TrimSpace(text) == "" {
			return nil, errors.New("user: content is empty")
		}
		return []event.Block{{Text: text}}, nil
	}
	var blocks []struct {
		Type, Text string
		Source     struct {
			MediaType string `json:"media_type"`
			Data      []byte `json:"data"`
		}
	}
	if err := json.Unmarshal(plain, &blocks); err != nil {
		return nil, errors.New("user: content must be a text or a list of blocks")
	}
	var said []event.Block
	for _, b := range blocks {
		switch b.Type {
		case "text":
			said = append(said, event.Block{Text: b.Text})
		case "image", "document":
			said = append(said, event.Block{Media: b.Source.MediaType, Data: b.Source.Data})
		default:
			return nil, fmt.Errorf("user: a block of type %q cannot be sent", b.Type)
		}
	}
	if len(said) == 0 {
		return nil, errors.New("user: content is empty")
	}
	return said, nil
}
