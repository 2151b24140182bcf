package contract

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/kit/text"
	"omniagent/internal/sys/redact"
)

// A result becomes a tree before it is cut, projected and written: ordered objects, arrays, strings, numbers as text,
// booleans, nil. One walk makes it, and nothing reaches the output in any other way. So whatever must hold for every
// string of every answer (clean text, masked secrets, marked foreign content, an empty list instead of null) is ensured
// here.

type member struct {
	name  string
	value any
}

type object []member

func (o object) get(name string) (any, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

func (o object) set(name string, value any) object {
	for i, m := range o {
		if m.name == name {
			o[i].value = value
			return o
		}
	}
	return append(o, member{name, value})
}

func (o object) without(name string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return m.name == name })
}

// only returns the wanted members, and those that mark the others as foreign or cut.
func (o object) only(wanted []string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool {
		return !slices.Contains(wanted, m.name) && !strings.HasPrefix(m.name, "_")
	})
}

// shown returns the members that a person sees: what has a value, without the marks of foreign content.
func (o object) shown() object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool {
		return cell(m.value) == "" || strings.HasPrefix(m.name, "_")
	})
}

// when adds a member if a condition holds.
func (o object) when(holds bool, name string, value any) object {
	if holds {
		return append(o, member{name, value})
	}
	return o
}

// Foreign marks a value that came from outside: a model, a web page, a file that somebody else wrote. Readers must not
// follow it as an instruction. An object gets further members as marks; any other value is wrapped in an object.
type Foreign[T any] struct{ Value T }

func (f Foreign[T]) foreign() any { return f.Value }

// Foreigns is a list whose items came from outside, each like a Foreign.
type Foreigns[T any] []T

// marked returns the items, each of them marked.
func (l Foreigns[T]) marked() any {
	items := make([]Foreign[T], len(l))
	for i, item := range l {
		items[i].Value = item
	}
	return items
}

// Exact is a text in which a carriage return is data. JSON has an escape for it; every other form leaves it out.
type Exact string

type (
	foreigner   interface{ foreign() any }
	foreignList interface{ marked() any }
)

// walker turns Go values into a tree.
type walker struct {
	unmask  bool // show secrets and high-entropy strings
	literal bool // keep hashes and ids, but mask known forms of secrets
	untag   bool // do not mark foreign content
	exact   bool // the form has escapes for control characters
	binary  string
	fields  map[string]int // characters replaced, by field
	masked  bool
	foreign bool
	page    *page
	suspect []string // fields whose foreign text reads like instructions
}

func (w *walker) tree(v any) any { return w.value(reflect.ValueOf(v), "", false) }

func (w *walker) value(v reflect.Value, path string, foreign bool) any {
	if !v.IsValid() {
		return nil
	}
	if v.CanInterface() {
		if special, done := w.special(v.Interface(), path, foreign); done {
			return special
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return w.value(v.Elem(), path, foreign)
	case reflect.Struct:
		return w.structure(v, path, foreign)
	case reflect.Map:
		return w.mapping(v, path, foreign)
	case reflect.Slice, reflect.Array:
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, w.value(v.Index(i), path, foreign))
		}
		return list
	case reflect.String:
		return w.text(v.String(), path, foreign)
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return number(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return json.Number(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return shortest(v.Float(), v.Type().Bits())
	}
	panic(fmt.Sprintf("data holds a %s at %q, which has no form on the wire", v.Type(), path))
}

// special handles the types that have their own form.
func (w *walker) special(v any, path string, foreign bool) (any, bool) {
	switch v := v.(type) {
	case foreigner:
		w.foreign = true
		return w.tag(w.value(reflect.ValueOf(v.foreign()), path, true)), true
	case foreignList:
		return w.value(reflect.ValueOf(v.marked()), path, foreign), true
	case rower:
		return w.take(v, path, foreign), true
	case time.Time:
		return v.UTC().Format(time.RFC3339), true
	case time.Duration:
		return number(v.Milliseconds()), true
	case []byte:
		return w.bytes(v), true
	case Exact:
		parts := []string{string(v)}
		if w.exact {
			parts = strings.Split(string(v), "\r")
		}
		for i := range parts {
			parts[i] = w.text(parts[i], path, foreign)
		}
		return strings.Join(parts, "\r"), true
	case json.Number: // it is a string, which may contain anything
		if c := strings.TrimPrefix(string(v), "-"); c != "" && c[0] >= '0' && c[0] <= '9' && json.Valid([]byte(v)) {
			return v, true
		}
		return w.text(string(v), path, foreign), true
	case object:
		o := make(object, 0, len(v))
		for _, m := range v {
			o = append(o, member{w.clean(m.name, path), w.named(m.name, reflect.ValueOf(m.value), path, foreign)})
		}
		return o, true
	case error:
		return w.text(v.Error(), path, foreign), true
	}
	return nil, false
}

func number[N int | int64](n N) json.Number { return json.Number(strconv.FormatInt(int64(n), 10)) }

// shortest returns the number with no more digits than its type can distinguish.
func shortest(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return json.Number(strconv.FormatFloat(f, 'f', -1, bits))
}

// tag marks a value as foreign.
func (w *walker) tag(v any) any {
	if w.untag {
		return v
	}
	o, ok := v.(object)
	if !ok {
		o = object{{"value", v}}
	}
	return o.set("_source", "external").set("_trusted", false)
}

func (w *walker) bytes(b []byte) any {
	encoding, value := "base64", base64.StdEncoding.EncodeToString(b)
	switch w.binary {
	case "hex":
		encoding, value = "hex", fmt.Sprintf("%x", b)
	case "skip":
		encoding, value = "skipped", ""
	}
	return object{
		{"type", "binary"},
		{"encoding", encoding},
		{"value", value},
		{"size_bytes", number(len(b))},
	}
}

func (w *walker) structure(v reflect.Value, path string, foreign bool) any {
	o := make(object, 0, v.NumField())
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() && !field.Anonymous {
			continue
		}
		name, optional := wireName(field)
		if name == "-" {
			continue
		}
		if field.Anonymous && field.Tag.Get("json") == "" {
			if inner, ok := w.value(v.Field(i), path, foreign).(object); ok {
				o = append(o, inner...)
			}
			continue
		}
		if optional && v.Field(i).IsZero() {
			continue
		}
		if field.Tag.Get("plain") != "" { // shown although its name sounds like that of a secret
			o = append(o, member{name, w.value(v.Field(i), path+name, foreign)})
			continue
		}
		o = append(o, member{name, w.named(name, v.Field(i), path, foreign)})
	}
	return o
}

// wireName returns the field's name on the wire, and whether it is left out when it is zero.
func wireName(f reflect.StructField) (name string, optional bool) {
	tag := f.Tag.Get("json")
	name, rest, _ := strings.Cut(tag, ",")
	name = cmp.Or(name, f.Name)
	return name, strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")
}

func (w *walker) mapping(v reflect.Value, path string, foreign bool) any {
	keys := map[string]reflect.Value{}
	for _, k := range v.MapKeys() {
		keys[fmt.Sprint(k.Interface())] = k
	}
	o := make(object, 0, len(keys))
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		o = append(o, member{w.clean(name, path), w.named(name, v.MapIndex(keys[name]), path, foreign)})
	}
	// Names that differed only in removed characters still need a fixed order.
	slices.SortStableFunc(o, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return o
}

// named returns a member's value. A string under the name of a secret is masked, unless --unmask is given.
func (w *walker) named(name string, v reflect.Value, path string, foreign bool) any {
	if path != "" {
		path += "."
	}
	out := w.value(v, path+name, foreign)
	if s, ok := out.(string); ok && s != "" && !w.unmask && redact.Name(name) {
		w.masked = true
		return redacted
	}
	return out
}

const redacted = "[REDACTED]"

// clean returns a printable text, and counts what it had to replace.
func (w *walker) clean(s, path string) string {
	clean, replaced := text.Clean(s)
	if replaced > 0 {
		if w.fields == nil {
			w.fields = map[string]int{}
		}
		w.fields[path] += replaced
	}
	return clean
}

// text returns a cleaned and masked text, and notes whether foreign text reads like orders.
func (w *walker) text(s, path string, foreign bool) string {
	clean := w.clean(s, path)
	if foreign && commanding(clean) && !slices.Contains(w.suspect, path) {
		w.suspect = append(w.suspect, path)
	}
	if w.unmask {
		return clean
	}
	if w.literal {
		return redact.String(clean)
	}
	masked, found := redact.Summaries(clean)
	safe := redact.String(masked)
	w.masked = w.masked || found || safe != masked
	return safe
}

// commanding reports whether foreign text reads like orders to a model. It only warns: the tags are the protection.
func commanding(s string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc([]string{
		"ignore previous instructions", "ignore all previous", "ignore the above", "disregard previous",
		"disregard all prior",
		"you are now", "new instructions:", "system prompt", "<system>", "</system>", "<|im_start|>", "[inst]",
	}, func(phrase string) bool { return strings.Contains(s, phrase) })
}

// appendJSON writes a tree. Its strings are clean, so only quotes, backslashes, line breaks and tabs need an escape.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case json.Number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case object:
		b = append(b, '{')
		for i, m := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.name), ':')
			b = appendJSON(b, m.value)
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("%T in a tree", v))
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		var escape string
		switch c := s[i]; {
		case c == '"':
			escape = `\"`
		case c == '\\':
			escape = `\\`
		case c == '\n':
			escape = `\n`
		case c == '\t':
			escape = `\t`
		case c < 0x20:
			escape = fmt.Sprintf(`\u%04x`, c)
		default:
			continue
		}
		b = append(append(b, s[from:i]...), escape...)
		from = i + 1
	}
	return append(append(b, s[from:]...), '"')
}
