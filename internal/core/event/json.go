package event

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// The input of a call is kept byte for byte as the model sent it: as a JSON string, whatever it contains. The types
// below add that member to the ordinary form of each struct.

// binary begins a string that stands for bytes which are not UTF-8, in base64. A string that itself begins with it is
// written in that form too.
const binary = "data:;base64,"

type plainCall Call

// MarshalJSON returns the JSON form, with the input as the string "arguments", and the canonical one as a string too.
func (c Call) MarshalJSON() ([]byte, error) {
	return text.JSON(struct {
		plainCall
		Arguments *string `json:"arguments,omitempty"`
		Canonical *string `json:"canonical,omitempty"`
	}{plainCall(c), verbatim(c.Input), verbatim(c.Canonical)})
}

// UnmarshalJSON reads that form.
func (c *Call) UnmarshalJSON(data []byte) error {
	form := struct {
		*plainCall
		Arguments *string `json:"arguments"`
		Canonical *string `json:"canonical"`
	}{plainCall: (*plainCall)(c)}
	err := json.Unmarshal(data, &form)
	c.Input, c.Canonical = raw(form.Arguments), raw(form.Canonical)
	return err
}

type plainResult Result

// MarshalJSON returns the JSON form, with the input as the string "arguments".
func (r Result) MarshalJSON() ([]byte, error) {
	return text.JSON(struct {
		plainResult
		Arguments *string `json:"arguments,omitempty"`
	}{plainResult(r), verbatim(r.Input)})
}

// UnmarshalJSON reads that form.
func (r *Result) UnmarshalJSON(data []byte) error {
	form := struct {
		*plainResult
		Arguments *string `json:"arguments"`
	}{plainResult: (*plainResult)(r)}
	err := json.Unmarshal(data, &form)
	r.Input = raw(form.Arguments)
	return err
}

type plainReply Reply

// MarshalJSON returns the JSON form, with the input as the string "arguments".
func (r Reply) MarshalJSON() ([]byte, error) {
	return text.JSON(struct {
		plainReply
		Arguments *string `json:"arguments,omitempty"`
	}{plainReply(r), verbatim(r.Input)})
}

// UnmarshalJSON reads that form.
func (r *Reply) UnmarshalJSON(data []byte) error {
	form := struct {
		*plainReply
		Arguments *string `json:"arguments"`
	}{plainReply: (*plainReply)(r)}
	err := json.Unmarshal(data, &form)
	r.Input = raw(form.Arguments)
	return err
}

type plainEnd End

// MarshalJSON returns the JSON form, with the structured answer as a string.
func (e End) MarshalJSON() ([]byte, error) {
	return text.JSON(struct {
		plainEnd
		Structured *string `json:"structured,omitempty"`
	}{plainEnd(e), verbatim(e.Structured)})
}

// UnmarshalJSON reads that form.
func (e *End) UnmarshalJSON(data []byte) error {
	form := struct {
		*plainEnd
		Structured *string `json:"structured"`
	}{plainEnd: (*plainEnd)(e)}
	err := json.Unmarshal(data, &form)
	e.Structured = raw(form.Structured)
	return err
}

func verbatim(data json.RawMessage) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	if !utf8.ValidString(text) || strings.HasPrefix(text, binary) {
		text = binary + base64.StdEncoding.EncodeToString(data)
	}
	return &text
}

func raw(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	if encoded, is := strings.CutPrefix(*text, binary); is {
		if data, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return data
		}
	}
	return json.RawMessage(*text)
}

// ForHosts returns the call with the input as hosts know it.
func (c *Call) ForHosts() *Call {
	if c.Canonical == nil {
		return c
	}
	known := *c
	known.Input, known.Canonical = c.Canonical, nil
	return &known
}

// Object returns the input as hosts know it, which is always an object. If the agent reports none, Object makes one
// from the known members of the call.
func (c *Call) Object() json.RawMessage {
	if c.Canonical != nil {
		return c.Canonical
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(c.Input, &members) == nil && members != nil {
		return c.Input
	}
	of := map[string]any{}
	if c.Command != "" {
		of["command"] = c.Command
	}
	if c.Path != "" {
		of["file_path"] = c.Path
	}
	if len(c.Input) > 0 && members == nil && json.Valid(c.Input) && string(c.Input) != "null" {
		of["input"] = c.Input
	}
	made, err := text.JSON(of)
	if err != nil {
		return json.RawMessage("{}")
	}
	return made
}
