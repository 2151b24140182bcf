package event

import (
	"strconv"
	"unicode/utf8"
)

// AppendBody appends the JSON form of an event without its kind, as text.Line writes it, and reports true. It supports
// only pieces of text and thinking, which are nearly all events of a conversation; for others it appends nothing and
// reports false.
func (e *Event) AppendBody(dst []byte) ([]byte, bool) {
	if e.Kind != Text && e.Kind != Thinking || e.Blocks != nil || e.Facts != nil || e.Answer != nil || e.Call != nil ||
		e.Result != nil || e.Denial != nil ||
		e.Ask != nil || e.Reply != nil || e.Retry != nil || e.Fault != nil || e.Terminal || e.End != nil ||
		e.Compaction != nil {
		return dst, false
	}
	first := len(dst) + 1
	dst = append(dst, '{')
	name := func(name string) {
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), name...), '"', ':')
	}
	if e.Turn != 0 {
		name("turn")
		dst = strconv.AppendInt(dst, e.Turn, 10)
	}
	for _, m := range [...]struct{ name, value string }{
		{"agent_session", e.Session},
		{"parent", e.Parent},
		{"model", e.Model},
		{"text", e.Text},
	} {
		if m.value != "" {
			name(m.name)
			dst = appendString(dst, m.value)
		}
	}
	for _, m := range [...]struct {
		name string
		is   bool
	}{{"delta", e.Delta}, {"synthetic", e.Synthetic}, {"unasked", e.Unprompted}, {"denies", e.Denies}} {
		if m.is {
			name(m.name)
			dst = append(dst, "true"...)
		}
	}
	if e.Hash != "" {
		name("raw")
		dst = appendString(dst, e.Hash)
	}
	return append(dst, '}'), true
}

const hex = "0123456789abcdef"

// appendString appends a JSON string. It escapes what encoding/json escapes, and what a terminal acts on.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	escape := func(at, size int, as string) {
		dst = append(append(dst, s[start:at]...), as...)
		start = at + size
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				escape(i, 1, string([]byte{'\\', c}))
			case c == '\b':
				escape(i, 1, `\b`)
			case c == '\f':
				escape(i, 1, `\f`)
			case c == '\n':
				escape(i, 1, `\n`)
			case c == '\r':
				escape(i, 1, `\r`)
			case c == '\t':
				escape(i, 1, `\t`)
			case c < ' ' || c == 0x7f:
				escape(i, 1, string([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]}))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError: // a byte that is not UTF-8 has the same form as the character for it
			escape(i, size, `\ufffd`)
		case r <= 0x9f || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			escape(i, size, string([]byte{'\\', 'u', hex[r>>12], hex[r>>8&15], hex[r>>4&15], hex[r&15]}))
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}
