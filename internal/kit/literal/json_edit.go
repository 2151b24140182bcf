package literal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// SetJSON sets the member at the path to a value that encoding/json can write, in a document of JSON with comments. A
// member that exists keeps its place; an equal value changes nothing. A new member goes to the end of its object, and
// objects above it that are missing are made. An empty document becomes an object.
//
// It refuses to reach into anything but an object.
func SetJSON(data []byte, path []string, value any) ([]byte, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte(byteOrderMark)))) == 0 {
		data = append(bytes.Clone(data), "{}\n"...)
	}
	before, err := ParseJSON5(data)
	if err != nil {
		return nil, err
	}
	want, err := jsonValue(value)
	if err != nil {
		return nil, err
	}
	e := jsonEdit{data: data, feed: lineFeed(data), unit: unitOf(data, before)}
	object, rest, err := deepest(before, path)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		err = e.insert(object, rest, value)
	default:
		old, _ := before.Lookup(path...)
		if sameValue(old, want) {
			return bytes.Clone(data), nil
		}
		err = e.replace(old, value)
	}
	if err != nil {
		return nil, err
	}
	if err := checkSet(ParseJSON5, before, e.data, path, want); err != nil {
		return nil, err
	}
	return e.data, nil
}

// UnsetJSON removes the member at the path, with its comma and the rest of its lines. An object that becomes empty is
// kept. found is false if the member is missing.
func UnsetJSON(data []byte, path []string) (out []byte, found bool, err error) {
	if err := checkPath(path); err != nil {
		return nil, false, err
	}
	if len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte(byteOrderMark)))) == 0 {
		return bytes.Clone(data), false, nil
	}
	before, err := ParseJSON5(data)
	if err != nil {
		return nil, false, err
	}
	object, rest, err := deepest(before, path)
	if err != nil || len(rest) > 0 {
		return bytes.Clone(data), false, err
	}
	out = cutMember(data, object, path[len(path)-1])
	if err := checkCut(ParseJSON5, before, out, path); err != nil {
		return nil, false, err
	}
	return out, true, nil
}

// deepest walks down through objects. It returns the last one on the path, and the rest of the path if that is missing.
func deepest(v Value, path []string) (object Value, rest []string, err error) {
	for i, name := range path {
		if v.Kind != Object {
			what := "the document"
			if i > 0 {
				what = showPath(path[:i])
			}
			return Value{}, nil, &SyntaxError{Pos: v.Pos, Message: what + " is not an object"}
		}
		m, ok := v.Member(name)
		if !ok {
			return v, path[i:], nil
		}
		if i == len(path)-1 {
			break
		}
		v = m.Value
	}
	return v, nil, nil
}

func jsonValue(value any) (Value, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return Value{}, err
	}
	return ParseJSON5(text)
}

// unitOf returns the indentation of one level: that of the first member that stands on a line of its own, else two
// blanks.
func unitOf(data []byte, document Value) string {
	if document.Kind == Object && len(document.Members) > 0 {
		if indent, own := ownLine(data, document.Members[0].KeyPos.Offset); own && indent != "" {
			return indent
		}
	}
	return "  "
}

// ownLine returns the blanks before an offset, and whether nothing else precedes it on its line.
func ownLine(data []byte, offset int) (indent string, own bool) {
	start := bytes.LastIndexByte(data[:offset], '\n') + 1
	indent = string(data[start:offset])
	return indent, start > 0 && strings.Trim(indent, " \t") == ""
}

// jsonEdit is a document that is being edited.
type jsonEdit struct {
	data       []byte
	feed, unit string
}

// text writes a value, over several lines if indent is not "-".
func (e *jsonEdit) text(value any, indent string) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if indent != "-" {
		encoder.SetIndent(indent, e.unit)
	}
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", e.feed), nil
}

func (e *jsonEdit) replace(old Value, value any) error {
	indent := "-"
	if strings.Contains(string(e.data[old.Pos.Offset:old.End]), "\n") {
		start := bytes.LastIndexByte(e.data[:old.Pos.Offset], '\n') + 1
		indent = string(e.data[start:skipBlanks(e.data, start)])
	}
	text, err := e.text(value, indent)
	e.data = splice(e.data, old.Pos.Offset, old.End, text)
	return err
}

// insert adds a member at the end of an object. names has its name, and those of the objects in it that lead to the
// value.
func (e *jsonEdit) insert(object Value, names []string, value any) error {
	for i := len(names) - 1; i > 0; i-- {
		value = map[string]any{names[i]: value}
	}
	key, err := json.Marshal(names[0])
	if err != nil {
		return err
	}
	open, end := object.Pos.Offset, object.End-1
	if e.data[open] != '{' {
		return errors.New("the object has no braces")
	}
	outer := string(e.data[bytes.LastIndexByte(e.data[:open], '\n')+1 : open])
	outer = outer[:len(outer)-len(strings.TrimLeft(outer, " \t"))]
	if len(object.Members) == 0 {
		return e.fill(open, end, string(key), value, outer)
	}
	last := object.Members[len(object.Members)-1]
	indent, own := ownLine(e.data, last.KeyPos.Offset)
	if !own {
		indent = "-"
	}
	text, err := e.text(value, indent)
	if err != nil {
		return err
	}
	text = string(key) + ": " + text
	at, comma := last.Value.End, skipScript(e.data, last.Value.End)
	trailing := e.data[comma] == ','
	if trailing {
		at = comma + 1
	}
	if !own {
		if text = " " + text; trailing {
			text += ","
		} else {
			text = "," + text
		}
		e.data = splice(e.data, at, at, text)
		return nil
	}
	line := at + lineLength(e.data[at:])
	if rest := skipScript(e.data, at); rest < line { // the brace is on this line
		line = at
	}
	if trailing {
		e.data = splice(e.data, line, line, e.feed+indent+text+",")
		return nil
	}
	e.data = splice(e.data, line, line, e.feed+indent+text)
	e.data = splice(e.data, at, at, ",")
	return nil
}

// fill gives an empty object its first member. Comments in the object stay before it.
func (e *jsonEdit) fill(open, end int, key string, value any, outer string) error {
	indent := outer + e.unit
	text, err := e.text(value, indent)
	if err != nil {
		return err
	}
	inside := string(e.data[open+1 : end])
	kept := strings.TrimRight(inside, " \t\r\n")
	e.data = splice(e.data, open+1, end, kept+e.feed+indent+key+": "+text+e.feed+outer)
	return nil
}

// lineLength returns how many bytes there are up to the end of the line.
func lineLength(data []byte) int {
	n := bytes.IndexByte(data, '\n')
	if n < 0 {
		return len(data)
	}
	if n > 0 && data[n-1] == '\r' {
		n--
	}
	return n
}

// skipScript skips white space and comments of JavaScript.
func skipScript(data []byte, at int) int {
	p := &json5{data: data, at: at, locate: newLocator(data)}
	p.space()
	return p.at
}

// cutMember removes a member and one comma, and keeps the comments around it.
func cutMember(data []byte, object Value, key string) []byte {
	i := slices.IndexFunc(object.Members, func(m Member) bool { return m.Key == key })
	m := object.Members[i]
	start, end := m.KeyPos.Offset, m.Value.End
	comma := skipScript(data, end)
	switch {
	case data[comma] == ',' && strings.TrimSpace(string(data[end:comma])) == "":
		end = comma + 1
	case data[comma] == ',': // a comment stands before it
		data = splice(data, comma, comma+1, "")
	case i > 0: // the last one: the comma before it goes
		before := skipScript(data, object.Members[i-1].Value.End)
		data = splice(data, before, before+1, "")
		start, end = start-1, end-1
	}
	indent, own := ownLine(data, start)
	rest := data[end:]
	switch blank := strings.TrimLeft(string(rest), " \t"); {
	case own && lineEnd([]byte(blank)):
		// its lines, with the line feed before them
		start -= len(indent) + 1
		if start > 0 && data[start-1] == '\r' {
			start--
		}
		end += len(rest) - len(blank)
	case len(object.Members) > i+1:
		end += len(rest) - len(blank)
	default:
		start = len(bytes.TrimRight(data[:start], " \t"))
	}
	data = splice(data, start, end, "")
	if len(object.Members) > 1 {
		return data
	}
	open := object.Pos.Offset + 1
	if at := skipBlankLines(data, open); data[at] == '}' {
		return splice(data, open, at, "")
	}
	return data
}

func skipBlankLines(data []byte, at int) int {
	return at + len(data[at:]) - len(bytes.TrimLeft(data[at:], " \t\r\n"))
}
