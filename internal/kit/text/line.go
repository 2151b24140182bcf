package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// Line returns a value as one line of JSON that is safe for a terminal: characters that a terminal would act on are
// escaped, which does not change the value.
func Line(v any) ([]byte, error) {
	line, err := JSON(v)
	if err != nil || !bytes.ContainsFunc(line, IsControl) {
		return line, err
	}
	var calm bytes.Buffer
	for _, r := range string(line) {
		if IsControl(r) {
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

// MustLine is Line for a value of our own, which always has a form in JSON.
func MustLine(v any) []byte {
	line, err := Line(v)
	if err != nil {
		panic(fmt.Sprintf("a line of our own cannot be encoded: %v", err))
	}
	return line
}

// Lenient decodes the members that have the expected type, and leaves the others as they are. It reports whether the
// data is JSON.
func Lenient(data []byte, v any) bool {
	err := json.Unmarshal(data, v)
	_, other := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || other
}

// SameJSON reports whether two JSON texts have the same value.
func SameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// IsControl reports whether a terminal acts on a character, it reverses the direction of text, or it stands for an
// invalid byte: encoding/json writes an escape for such a byte, so the character itself is escaped too, and a line that
// is read and written again is the same.
func IsControl(r rune) bool {
	return r == utf8.RuneError || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
