package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"omniagent/internal/model"
	"omniagent/internal/model/wire"
)

// texts is the text and the thinking of content, which is a string or a list of parts.
func texts(content json.RawMessage) (text, thinking string) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 || content[0] != '[' {
		var s wire.Word
		_ = json.Unmarshal(content, &s)
		if len(content) > 0 && content[0] == '"' {
			text = string(s)
		}
		return text, ""
	}
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return "", ""
	}
	var said, thought strings.Builder
	for _, raw := range parts {
		var p struct {
			Type     wire.Word       `json:"type"`
			Text     wire.Word       `json:"text"`
			Thinking json.RawMessage `json:"thinking"` // a list of parts itself
		}
		if json.Unmarshal(raw, &p) != nil {
			continue
		}
		said.WriteString(string(p.Text))
		if p.Type == "thinking" {
			inner, _ := texts(p.Thinking)
			thought.WriteString(inner)
		}
	}
	return said.String(), thought.String()
}

// arguments returns a call's arguments, which come as a string or as the object itself.
func arguments(raw json.RawMessage) string {
	if raw = bytes.TrimSpace(raw); wire.Absent(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// input returns a call's arguments for the API, which wants a string.
func input(b model.Block) string {
	if !json.Valid(b.Input) {
		return "{}"
	}
	return string(b.Input)
}

// schema returns the schema of a tool; a tool without one takes no arguments.
func schema(input json.RawMessage) json.RawMessage {
	if wire.Absent(input) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return input
}
