// Package literal reads values that people and models write by hand: JSON5, TOML, and the literal that a JavaScript or
// TypeScript module exports. The result is one tree in which every key and value has its place, so that a wrong value
// can be located.
//
// It promises that strict JSON reads as encoding/json reads it, that an error names one place and what was expected
// there, and that an edit changes only the bytes of the edited value: comments, order, blank lines, indentation, line
// endings and quoting are kept. An edit is parsed again and compared before it is returned.
//
// It refuses duplicate keys, Infinity and NaN in JSON5, invalid UTF-8, and nesting beyond 200 levels. It reads no
// files, runs nothing, and does not know the purpose of the values.
package literal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// maxDepth limits nesting, so that no input can exhaust the stack of code that walks the tree.
const maxDepth = 200

// Pos is a place in the text: line and column count from 1, columns in runes; Offset counts bytes from 0.
type Pos struct {
	Line, Col int
	Offset    int
}

func (p Pos) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Col) }

// Kind is the kind of a Value.
type Kind uint8

// The kinds. A Date is any of TOML's dates and times; its text is in Str.
const (
	Null Kind = iota
	Bool
	Number
	String
	Date
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "date", "array", "table"}[k]
}

// Value is one value with its place. A TOML table without braces has the place where its name is first written.
type Value struct {
	Kind    Kind
	Pos     Pos
	End     int // offset of the first byte after it
	Str     string
	Num     string // a number as written: 0x1F, 1_000 and 1e3 are unchanged
	Bool    bool
	Items   []Value
	Members []Member // in the order of the text
}

// Member is one key of an object with its value.
type Member struct {
	Key    string
	KeyPos Pos
	Value  Value
}

// SyntaxError is a place where a text is invalid, and why.
type SyntaxError struct {
	Pos     Pos
	Message string

	insert string // what Repair may insert at the offset at; empty if that is unknown
	at     int
}

func (e *SyntaxError) Error() string { return e.Pos.String() + ": " + e.Message }

// Member finds a key of an object, with the place of the key.
func (v Value) Member(key string) (Member, bool) {
	for _, m := range v.Members {
		if m.Key == key {
			return m, true
		}
	}
	return Member{}, false
}

// Lookup walks down: through objects by key, through arrays by decimal index.
func (v Value) Lookup(path ...string) (Value, bool) {
	for _, step := range path {
		if v.Kind == Array {
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v.Items) {
				return Value{}, false
			}
			v = v.Items[i]
			continue
		}
		m, ok := v.Member(step)
		if !ok {
			return Value{}, false
		}
		v = m.Value
	}
	return v, true
}

// Int returns the value of a number that is written as a whole number and fits in 64 bits.
func (v Value) Int() (int64, bool) {
	if v.Kind != Number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Num, 0, 64)
	return n, err == nil
}

// Float returns the value of any number that fits.
func (v Value) Float() (float64, bool) {
	if v.Kind != Number {
		return 0, false
	}
	if n, ok := v.Int(); ok {
		return float64(n), true
	}
	num := strings.ReplaceAll(v.Num, "_", "")
	if strings.TrimLeft(num, "+-") == "nan" {
		num = "nan" // TOML allows a sign, strconv does not
	}
	f, err := strconv.ParseFloat(num, 64)
	return f, err == nil
}

// Any returns the value in Go's terms: map[string]any, []any, string (dates too), bool, nil, int64 for whole
// numbers, float64 for others, and json.Number for those that neither can hold without loss.
func (v Value) Any() any {
	switch v.Kind {
	case Bool:
		return v.Bool
	case Number:
		return v.number()
	case String, Date:
		return v.Str
	case Array:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = item.Any()
		}
		return items
	case Object:
		members := make(map[string]any, len(v.Members))
		for _, m := range v.Members {
			members[m.Key] = m.Value.Any()
		}
		return members
	}
	return nil
}

func (v Value) number() any {
	if n, ok := v.Int(); ok {
		return n
	}
	f, ok := v.Float()
	if whole := !strings.ContainsAny(v.Num, ".eEnif"); whole || !ok {
		return json.Number(strictNumber(v.Num))
	}
	return f
}

// JSON returns the value as strict JSON on one line, keys in the order of the text. Dates and TOML's inf and nan become
// strings.
func (v Value) JSON() []byte { return v.appendJSON(nil) }

func (v Value) appendJSON(out []byte) []byte {
	switch v.Kind {
	case Bool:
		return strconv.AppendBool(out, v.Bool)
	case Number:
		return append(out, strictNumber(v.Num)...)
	case String, Date:
		return appendJSONString(out, v.Str)
	case Array:
		out = append(out, '[')
		for i, item := range v.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.appendJSON(out)
		}
		return append(out, ']')
	case Object:
		out = append(out, '{')
		for i, m := range v.Members {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendJSONString(out, m.Key)
			out = append(out, ':')
			out = m.Value.appendJSON(out)
		}
		return append(out, '}')
	}
	return append(out, "null"...)
}

// strictNumber writes a number in the form that JSON allows.
func strictNumber(num string) string {
	plain := strings.TrimPrefix(strings.ReplaceAll(num, "_", ""), "+")
	sign := ""
	if rest, negative := strings.CutPrefix(plain, "-"); negative {
		sign, plain = "-", rest
	}
	switch {
	case plain == "inf" || plain == "nan":
		return strconv.Quote(sign + plain)
	case len(plain) > 1 && plain[0] == '0' && strings.ContainsRune("xXoObB", rune(plain[1])):
		n, _ := strconv.ParseInt(sign+plain, 0, 64) // both parsers refuse what does not fit
		return strconv.FormatInt(n, 10)
	}
	if strings.HasPrefix(plain, ".") {
		plain = "0" + plain
	}
	if dot := strings.IndexByte(plain, '.'); dot >= 0 && (dot+1 == len(plain) || plain[dot+1] < '0' ||
		plain[dot+1] > '9') {
		plain = plain[:dot] + plain[dot+1:]
	}
	return sign + plain
}

// appendJSONString does not escape <, > and &: the text is for people and models, not for HTML.
func appendJSONString(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, '\\', 'n')
		case r == '\r':
			out = append(out, '\\', 'r')
		case r == '\t':
			out = append(out, '\\', 't')
		case r < 0x20:
			out = append(out, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			out = append(out, string(r)...)
		}
	}
	return append(out, '"')
}
