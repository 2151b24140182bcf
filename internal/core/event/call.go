package event

import (
	"cmp"
	"encoding/json"
)

// NewCall makes a call from what an agent reports. Its command is the member of that name; its path is the first of the
// given members that is a text.
func NewCall(id, name string, kind ToolKind, input json.RawMessage, paths ...string) *Call {
	c := &Call{ID: id, Name: name, Kind: kind, Input: input}
	switch kind {
	case Shell:
		c.Command = Texts(input, "command")["command"]
	case Read, Write:
		in := Texts(input, paths...)
		for _, member := range paths {
			c.Path = cmp.Or(c.Path, in[member])
		}
	}
	return c
}

// Texts returns those members of a tool's input that are texts: the model decides which type they have.
func Texts(input json.RawMessage, members ...string) map[string]string {
	var in map[string]json.RawMessage
	_ = json.Unmarshal(input, &in)
	found := map[string]string{}
	for _, member := range members {
		var word string
		if json.Unmarshal(in[member], &word) == nil {
			found[member] = word
		}
	}
	return found
}

// HandsOver returns to whom a call hands over work, and which; "" if it hands over nothing, or that is unknown.
func (c *Call) HandsOver() string {
	in := Texts(c.Object(), "agent", "goal")
	if c.Kind != Agent || in["agent"] == "" || in["goal"] == "" {
		return ""
	}
	return "to " + in["agent"] + ": " + in["goal"]
}
