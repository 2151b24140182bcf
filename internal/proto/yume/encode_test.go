package yume

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestLinesCanBeLookedAt: what a terminal acts on is escaped in every string of a line, also where JSON would not ask for it, and the line says the same.
func TestLinesCanBeLookedAt(t *testing.T) {
	evil := "a\x1b[2J\u009b31m\x7f\u202e\u2066é😀\u2028"
	lines := encode(ordered{{evil, evil}, {"b", json.RawMessage(`{"x":"` + "\u009b\u202e" + `"}`)}})
	var got map[string]any
	if err := json.Unmarshal(lines[0], &got); err != nil || got[evil] != evil || got["b"].(map[string]any)["x"] != "\u009b\u202e" {
		t.Errorf("%v: %s", err, lines[0])
	}
	if bytes.ContainsFunc(lines[0], acted) || bytes.ContainsRune(lines[0], '\x1b') || !strings.Contains(string(lines[0]), "é😀") {
		t.Errorf("%q", lines[0])
	}
}
