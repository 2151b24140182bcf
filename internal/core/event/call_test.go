package event

import (
	"encoding/json"
	"testing"
)

// TestNewCall: what is known of a call, whatever types the model chose for its members.
func TestNewCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind          ToolKind
		input         string
		command, path string
	}{
		{Shell, `{"command":"ls","path":"x"}`, "ls", ""},
		{Shell, `{"command":["ls"]}`, "", ""},
		{Read, `{"command":"ls","path":"x","file_path":"y"}`, "", "y"},
		{Write, `{"file_path":7,"path":"x"}`, "", "x"},
		{Write, `{"file_path":null,"path":"x"}`, "", "x"},
		{Search, `{"path":"x"}`, "", ""},
		{Read, `"x"`, "", ""},
		{Read, ``, "", ""},
	} {
		got := NewCall("1", "n", c.kind, json.RawMessage(c.input), "file_path", "path")
		if got.Command != c.command || got.Path != c.path || string(got.Input) != c.input {
			t.Errorf("%s %s: %+v", c.kind, c.input, got)
		}
	}
}
