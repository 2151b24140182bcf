package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"omniagent/internal/model"
)

// word is a string, or nothing where a server writes something else: what is beside the point must not spoil an answer.
type word string

// UnmarshalJSON reads a string; a number, as some servers write codes, is its digits.
func (w *word) UnmarshalJSON(data []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(data, &s) == nil {
		*w = word(s)
	} else if c := data[0]; c == '-' || c >= '0' && c <= '9' {
		*w = word(data)
	}
	return nil
}

// tally is a number of tokens, or none where something else stands.
type tally int64

// UnmarshalJSON reads a number.
func (t *tally) UnmarshalJSON(data []byte) error {
	*t = 0
	if n, err := strconv.ParseFloat(string(data), 64); err == nil && n > 0 && n < 1e15 {
		*t = tally(n)
	}
	return nil
}

// absent reports whether a member is missing or null.
func absent(data json.RawMessage) bool { return len(data) == 0 || string(data) == "null" }

// texts is the text and the thinking of content, which is a string or a list of parts.
func texts(content json.RawMessage) (text, thinking string) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 || content[0] != '[' {
		var s word
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
			Type     word            `json:"type"`
			Text     word            `json:"text"`
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
	if raw = bytes.TrimSpace(raw); absent(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func garbage(what string, err error) *model.Error {
	return &model.Error{Trouble: model.Garbage, Message: what, Cause: err}
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
	if absent(input) {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return input
}

// unfinished marks a call of which only the name came before the answer was cut off for its length: no arguments are
// not {} then.
func unfinished(blocks []model.Block) {
	if n := len(blocks) - 1; n >= 0 && blocks[n].Kind == model.Call && string(blocks[n].Input) == "{}" &&
		blocks[n].Broken == "" {
		blocks[n].Broken = model.CutOff
	}
}
