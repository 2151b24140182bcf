package text

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Line is a value as JSON in one line that may be looked at in a terminal: what JSON would allow there and a terminal acts on is escaped, and
// says the same. Outside of strings there is none of it.
func Line(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if !bytes.ContainsFunc(line, acted) {
		return line, nil
	}
	var calm bytes.Buffer
	for _, r := range string(line) {
		if acted(r) {
			fmt.Fprintf(&calm, "\\u%04x", r)
			continue
		}
		calm.WriteRune(r)
	}
	return calm.Bytes(), nil
}

// acted says of a character that a terminal acts on it, or that it turns text around.
func acted(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
