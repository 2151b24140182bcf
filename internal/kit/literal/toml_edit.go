package literal

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SetTOML sets the key at the path to a string, bool, int64, float64 or []string. An existing key, even a dotted one or
// one in an inline table, keeps its line and its surroundings; an equal value changes nothing. A new key goes to the
// end of its table, which is created at the end of the document if needed; a new key without a table goes before the
// first header.
//
// It refuses to replace a table, and to reach into an array.
func SetTOML(data []byte, path []string, value any) ([]byte, error) {
	text, want, err := encodeTOML(value)
	if err != nil {
		return nil, err
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	statements, before, err := readTOML(data)
	if err != nil {
		return nil, err
	}
	old, exists, err := reach(before, path)
	if err != nil {
		return nil, err
	}
	var out []byte
	switch {
	case exists && isTable(data, old):
		return nil, fmt.Errorf("%s is a table and not a value", showPath(path))
	case exists && sameValue(old, want):
		return bytes.Clone(data), nil
	case exists:
		out = splice(data, old.Pos.Offset, old.End, text)
	default:
		out = insertKey(data, statements, path, text)
	}
	if err := checkSet(ParseTOML, before, out, path, want); err != nil {
		return nil, err
	}
	return out, nil
}

// UnsetTOML removes the key at the path, with the rest of its line. A table that becomes empty is kept. found is false
// if the key is missing. It refuses to remove a table.
func UnsetTOML(data []byte, path []string) (out []byte, found bool, err error) {
	return cutTOML(data, path, false)
}

// CutTOML removes everything at the path, which may be a table, with its headers and the blank line before each. found
// is false if there is nothing.
func CutTOML(data []byte, path []string) (out []byte, found bool, err error) {
	return cutTOML(data, path, true)
}

func cutTOML(data []byte, path []string, tables bool) (out []byte, found bool, err error) {
	if err := checkPath(path); err != nil {
		return nil, false, err
	}
	statements, before, err := readTOML(data)
	if err != nil {
		return nil, false, err
	}
	old, exists, err := reach(before, path)
	switch {
	case err != nil:
		return nil, false, err
	case !exists:
		return bytes.Clone(data), false, nil
	case !tables && isTable(data, old):
		return nil, false, fmt.Errorf("%s is a table and not a value", showPath(path))
	}
	out = bytes.Clone(data)
	var in []string
	var cut []statement
	for _, st := range statements {
		full := names(st.keys)
		if st.header {
			in = full
		} else {
			full = slices.Concat(in, full)
		}
		if len(full) >= len(path) && slices.Equal(full[:len(path)], path) {
			cut = append(cut, st)
		}
	}
	for _, st := range slices.Backward(cut) {
		start := st.lineStart
		for _, blank := range []string{"\r\n\r\n", "\n\n"} {
			if st.header && strings.HasSuffix(string(out[:start]), blank) {
				start -= len(blank) / 2
				break
			}
		}
		out = splice(out, start, st.end, "")
	}
	if len(cut) == 0 {
		out = cutKey(data, statements, old)
	}
	if err := checkCut(ParseTOML, before, out, path); err != nil {
		return nil, false, err
	}
	return out, true, nil
}

// checkSet reports an error unless out is the document that was before, but with want at the path.
func checkSet(parse func([]byte) (Value, error), before Value, out []byte, path []string, want Value) error {
	after, err := parse(out)
	if err != nil {
		return fmt.Errorf("the edit of %s would not be valid: %w", showPath(path), err)
	}
	if got, ok := after.Lookup(path...); !ok || !sameValue(got, want) || !sameExcept(before, after, path) {
		return fmt.Errorf("the edit of %s would change something else", showPath(path))
	}
	return nil
}

// checkCut reports an error unless out is the document that was before, without what is at the path.
func checkCut(parse func([]byte) (Value, error), before Value, out []byte, path []string) error {
	after, err := parse(out)
	if err != nil {
		return fmt.Errorf("without %s the document would not be valid: %w", showPath(path), err)
	}
	if _, still := after.Lookup(path...); still || !sameExcept(before, after, path) {
		return fmt.Errorf("taking %s away would change something else", showPath(path))
	}
	return nil
}

func checkPath(path []string) error {
	if len(path) == 0 {
		return errors.New("the path names no key")
	}
	for _, name := range path {
		if !utf8.ValidString(name) {
			return fmt.Errorf("the key %q is not UTF-8", name)
		}
	}
	return nil
}

func readTOML(data []byte) ([]statement, Value, error) {
	statements, err := scanTOML(data)
	if err != nil {
		return nil, Value{}, err
	}
	v, err := buildTOML(data, statements)
	return statements, v, err
}

// reach walks through tables only: a path cannot say which item of an array is meant.
func reach(v Value, path []string) (Value, bool, error) {
	for i, name := range path {
		if v.Kind != Object {
			return Value{}, false, fmt.Errorf("%s is not a table", showPath(path[:i]))
		}
		m, ok := v.Member(name)
		if !ok {
			return Value{}, false, nil
		}
		v = m.Value
	}
	return v, true, nil
}

// isTable reports whether a value is a table or an array of tables, which begins with the name in a header instead of a
// bracket.
func isTable(data []byte, v Value) bool {
	return v.Kind == Object || v.Kind == Array && data[v.Pos.Offset] != '['
}

func showPath(path []string) string { return shorten(encodePath(path)) }

func splice(data []byte, start, end int, text string) []byte {
	return slices.Concat(data[:start], []byte(text), data[end:])
}

// encodeTOML returns the value as text, and as it must read back.
func encodeTOML(value any) (string, Value, error) {
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return "", Value{}, errors.New("the value is not UTF-8")
		}
		return QuoteTOML(v), Value{Kind: String, Str: v}, nil
	case bool:
		return strconv.FormatBool(v), Value{Kind: Bool, Bool: v}, nil
	case int64:
		text := strconv.FormatInt(v, 10)
		return text, Value{Kind: Number, Num: text}, nil
	case float64:
		text := encodeFloat(v)
		return text, Value{Kind: Number, Num: text}, nil
	case []string:
		list := Value{Kind: Array}
		texts := make([]string, len(v))
		for i, item := range v {
			text, itemValue, err := encodeTOML(item)
			if err != nil {
				return "", Value{}, err
			}
			texts[i] = text
			list.Items = append(list.Items, itemValue)
		}
		return "[" + strings.Join(texts, ", ") + "]", list, nil
	}
	return "", Value{}, fmt.Errorf("a value of type %T cannot be written as TOML", value)
}

func encodeFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, 64)), "+")
	}
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// QuoteTOML writes a string as a basic string of TOML.
func QuoteTOML(s string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case r < 0x20 || r == 0x7F:
			fmt.Fprintf(&out, `\u%04X`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

// encodePath writes a dotted key, with quotes only where TOML requires them.
func encodePath(path []string) string {
	const bare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = name
		if name == "" || strings.Trim(name, bare) != "" {
			names[i] = QuoteTOML(name)
		}
	}
	return strings.Join(names, ".")
}

// sameValue compares values and ignores notation. A whole number and a fraction differ even if they are equal.
func sameValue(a, b Value) bool {
	if a.Kind != b.Kind || a.Str != b.Str || a.Bool != b.Bool || len(a.Items) != len(b.Items) ||
		len(a.Members) != len(b.Members) {
		return false
	}
	if a.Kind == Number && !sameNumber(a, b) {
		return false
	}
	for i := range a.Items {
		if !sameValue(a.Items[i], b.Items[i]) {
			return false
		}
	}
	others := byKey(b)
	for _, m := range a.Members {
		if other, ok := others[m.Key]; !ok || !sameValue(m.Value, other) {
			return false
		}
	}
	return true
}

func sameNumber(a, b Value) bool {
	x, xWhole := a.Int()
	y, yWhole := b.Int()
	if xWhole || yWhole {
		return xWhole && yWhole && x == y
	}
	f, _ := a.Float()
	g, _ := b.Float()
	return f == g || math.IsNaN(f) && math.IsNaN(g)
}

// sameExcept reports whether only the key at the path differs. Tables on the path may be added or removed if they are
// otherwise empty.
func sameExcept(before, after Value, path []string) bool {
	if before.Kind != Object || after.Kind != Object {
		return false
	}
	old, now := byKey(before), byKey(after)
	for key, value := range old {
		if other, ok := now[key]; key != path[0] && (!ok || !sameValue(value, other)) {
			return false
		}
	}
	for key := range now {
		if _, ok := old[key]; key != path[0] && !ok {
			return false
		}
	}
	if len(path) == 1 {
		return true
	}
	inBefore, had := old[path[0]]
	inAfter, has := now[path[0]]
	if !had {
		inBefore = Value{Kind: Object}
	}
	if !has {
		inAfter = Value{Kind: Object}
	}
	return sameExcept(inBefore, inAfter, path[1:])
}

func byKey(v Value) map[string]Value {
	values := make(map[string]Value, len(v.Members))
	for _, m := range v.Members {
		values[m.Key] = m.Value
	}
	return values
}
