package claude

import (
	"encoding/json"
	"strings"
)

// Line is a line of the CLI, with the members that we read. Which are set depends on its type.
type Line struct {
	Type       string          `json:"type"`
	Subtype    string          `json:"subtype"`
	Session    string          `json:"session_id"`
	Message    json.RawMessage `json:"message"` // a message of the API; a text in a denial
	ParentTool string          `json:"parent_tool_use_id"`

	// system
	Model   string  `json:"model"`
	Tool    string  `json:"tool_name"`
	ToolUse string  `json:"tool_use_id"`
	Reason  string  `json:"decision_reason"`
	Why     string  `json:"decision_reason_type"`
	Attempt int     `json:"attempt"`
	Of      int     `json:"max_retries"`
	Delay   float64 `json:"retry_delay_ms"`
	Status  int     `json:"error_status"`
	Summary string  `json:"summary"`
	Mode    string  `json:"permissionMode"`

	Compact compactLine `json:"compact_metadata"`

	// a result, or an error in a message
	Error     json.RawMessage `json:"error"`
	APIError  bool            `json:"is_api_error_message"`
	APIStatus int             `json:"api_error_status"`
	APIType   string          `json:"api_error_type"`

	// user
	Meta []struct {
		ID       string   `json:"id"`
		Kind     string   `json:"non_execution_kind"`
		Decision Decision `json:"permission_decision"`
	} `json:"tool_result_meta"`

	// stream_event
	Event struct {
		Type  string `json:"type"`
		Delta struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
		} `json:"delta"`
	} `json:"event"`

	// command_lifecycle
	Command string `json:"command_uuid"`
	State   string `json:"state"`

	// control_request
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
}

// Control returns the readable part of the CLI's request.
func (l *Line) Control() (c Control) {
	_ = json.Unmarshal(l.Request, &c)
	return c
}

// Message is a message of the API, both in the output and in transcripts.
type Message struct {
	Model   string          `json:"model"`
	Content json.RawMessage `json:"content"`     // a text or a list of blocks
	Stop    string          `json:"stop_reason"` // why the model stopped
}

// Declined is the stop reason of a model that refuses to answer.
const Declined = "refusal"

// Block is a part of a message.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"` // the content of a result: a text or a list of blocks
	IsError   bool            `json:"is_error"`
}

// Blocks reads the content of a message in either form.
func Blocks(raw json.RawMessage) []Block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []Block{{Type: "text", Text: text}}
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	list := make([]Block, 0, len(parts))
	for _, part := range parts {
		var b Block
		if json.Unmarshal(part, &b) == nil { // skip unusual blocks
			list = append(list, b)
		}
	}
	return list
}

// Plain returns the text of a content, with newlines between its blocks.
func Plain(raw json.RawMessage) string {
	var parts []string
	for _, b := range Blocks(raw) {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Decision is the CLI's record about a tool that was not run. An interruption also has a kind, but is not a decision.
type Decision struct {
	Decision string `json:"decision"`
	Source   string `json:"source"`
	Code     string `json:"reasonCode"`
}
