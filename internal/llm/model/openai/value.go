package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/wire"
)

// texts returns the text and the thinking of a content, which is a string or a list of parts.
func texts(content json.RawMessage) (text, thinking string) {
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		_ = json.Unmarshal(content, &text) // anything else counts as empty
		return text, ""
	}
	var said, thought strings.Builder
	for _, raw := range parts {
		var p struct {
			Type     wire.Word       `json:"type"`
			Text     wire.Word       `json:"text"`
			Thinking json.RawMessage `json:"thinking"` // itself a list of parts
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

// arguments returns a call's arguments, which are a string or an object.
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

// input returns a call's arguments as a string, as the API requires.
func input(b model.Block) string {
	if !json.Valid(b.Input) {
		return "{}"
	}
	return string(b.Input)
}

// schema returns the schema of a tool, or that of an empty object.
func schema(input json.RawMessage) json.RawMessage {
	if wire.Absent(input) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return input
}
