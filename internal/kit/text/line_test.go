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
	if bytes.ContainsFunc(line, IsControl) || bytes.ContainsRune(line, '\x1b') || bytes.ContainsRune(line, '\n') ||
		!strings.Contains(string(line), "é😀") || !strings.Contains(string(line), "<&>") {
		t.Errorf("%q", line)
	}
	if _, err := Line(func() {}); err == nil {
		t.Error("invalid JSON has a line")
	}
}

func TestLenient(t *testing.T) {
	var v struct {
		A int
		B string
	}
	if !Lenient([]byte(`{"A":"one","B":"two"}`), &v) || v.A != 0 || v.B != "two" {
		t.Errorf("a member of another type: %+v", v)
	}
	if Lenient([]byte(`{"A":1`), &v) {
		t.Error("half an object is taken for JSON")
	}
}

func TestSameJSON(t *testing.T) {
	if !SameJSON([]byte(`{"a":1,"b":[2.0]}`), []byte(`{ "b":[2], "a":1e0 }`)) {
		t.Error("notation counts")
	}
	if SameJSON([]byte(`{"a":1}`), []byte(`{"a":"1"}`)) || SameJSON([]byte(`{`), []byte(`{`)) {
		t.Error("other values are the same")
	}
}

func TestFenced(t *testing.T) {
	if got := Fenced("go", "a\n```\nb\n"); got != "````go\na\n```\nb\n````" {
		t.Errorf("%q", got)
	}
}
