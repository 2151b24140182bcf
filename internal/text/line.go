package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Line is a value as JSON in one line that may be looked at in a terminal: what JSON would allow there and a terminal
// acts on is escaped, and says the same. Outside of strings there is none of it.
func Line(v any) ([]byte, error) {
	line, err := JSON(v)
	if err != nil || !bytes.ContainsFunc(line, Acted) {
		return line, err
	}
	var calm bytes.Buffer
	for _, r := range string(line) {
		if Acted(r) {
			fmt.Fprintf(&calm, "\\u%04x", r)
			continue
		}
		calm.WriteRune(r)
	}
	return calm.Bytes(), nil
}

// JSON is json.Marshal without the escapes for HTML, which would make text hard to read and to find.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Acted says of a character that a terminal acts on it, that it turns text around, or that it stands for a byte which
// is not UTF-8: encoding/json writes an escape for such a byte, so the character itself is escaped too, and a line that
// is read and written again is the same.
func Acted(r rune) bool {
	return r == utf8.RuneError || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
