package text

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestLinesCanBeLookedAt: what a terminal acts on is escaped in every string of a line, also where JSON would not ask
// for it, and the line says the same.
func TestLinesCanBeLookedAt(t *testing.T) {
	evil := "a\x1b[2J\u009b31m\x7f\u202e\u2066é😀\u2028<&>"
	line, err := Line(map[string]any{evil: evil, "b": json.RawMessage(`{"x":"` + "\u009b\u202e" + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(line, &got); err != nil || got[evil] != evil ||
		got["b"].(map[string]any)["x"] != "\u009b\u202e" {
		t.Errorf("%v: %s", err, line)
	}
	if bytes.ContainsFunc(line, Acted) || bytes.ContainsRune(line, '\x1b') || bytes.ContainsRune(line, '\n') ||
		!strings.Contains(string(line), "é😀") || !strings.Contains(string(line), "<&>") {
		t.Errorf("%q", line)
	}
	if _, err := Line(func() {}); err == nil {
		t.Error("invalid JSON has a line")
	}
}
