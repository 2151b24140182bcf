package literal

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxTOML keeps every offset within the parser's 32 bits.
const maxTOML = 1 << 30

// ParseTOML reads a document; its Value is an Object. Dates have the kind Date. The error is a *SyntaxError.
func ParseTOML(data []byte) (Value, error) {
	_, v, err := readTOML(data)
	return v, err
}

// keyPart is one name of a dotted key.
type keyPart struct {
	name       string
	start, end int
}

// node is a value with the ranges that an edit needs.
type node struct {
	kind       Kind
	start, end int
	str, num   string
	bool       bool
	items      []node
	pairs      []pair // of an inline table
}

// pair is a key, dotted or not, with its value.
type pair struct {
	keys  []keyPart
	value node
}

// statement is a key with its value, or a header of a table.
type statement struct {
	header         bool
	array          bool // the header has two brackets
	pair                // of a header only the keys are set
	lineStart, end int  // end is after the line's line feed
}

// tomlScanner walks the tree of go-toml's parser. The parser keeps no ranges for arrays, so a cursor follows along in
// the text.
type tomlScanner struct {
	parser unstable.Parser
	data   []byte // without the byte order mark, ending in a line feed
	size   int    // without an added line feed
	base   int    // length of the prefix that was removed
	cursor int
	depth  int
}

func scanTOML(data []byte) ([]statement, error) {
	if len(data) > maxTOML {
		return nil, &SyntaxError{Pos: Pos{Line: 1, Col: 1}, Message: "the document is larger than 1 GiB"}
	}
	s := &tomlScanner{}
	s.data = bytes.Clone(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	s.size = len(s.data)
	s.base = len(data) - s.size
	if !bytes.HasSuffix(s.data, []byte{'\r'}) {
		// The parser reports an error at the end of the text at the last character; a line feed gives it a place of its
		// own.
		s.data = append(s.data, '\n')
	}
	s.parser.Reset(s.data)
	var statements []statement
	for s.parser.NextExpression() {
		st, err := s.statement(s.parser.Expression())
		if err != nil {
			return nil, s.syntaxError(data, err)
		}
		statements = append(statements, st)
	}
	if err := s.parser.Error(); err != nil {
		return nil, s.syntaxError(data, err)
	}
	return statements, nil
}

// misfit is a value that the parser accepts but the format does not allow.
type misfit struct {
	offset  int
	message string
}

func (m *misfit) Error() string { return m.message }

func (s *tomlScanner) syntaxError(data []byte, err error) *SyntaxError {
	offset, message := 0, err.Error()
	var refused *unstable.ParserError
	var bad *misfit
	switch {
	case errors.As(err, &refused):
		offset, message = s.explain(refused)
	case errors.As(err, &bad):
		offset = bad.offset
	}
	return &SyntaxError{Pos: newLocator(data).pos(offset), Message: message}
}

// explain rewords the most common errors: a key without a value, and text that just ends.
func (s *tomlScanner) explain(err *unstable.ParserError) (int, string) {
	at := cap(s.data) - cap(err.Highlight)
	for _, ending := range []string{"end of input", "unterminated", "not terminated", "incomplete"} {
		if strings.Contains(err.Message, ending) {
			at = s.size
		}
	}
	at = min(at, s.size)
	here := found(s.data[:s.size], at)
	message := err.Message
	switch {
	case strings.Contains(message, "at start of value"), strings.HasPrefix(message, "expected value"):
		message = "expected a value, found " + here
	case strings.Contains(message, "at start of key"), strings.HasPrefix(message, "expected key"):
		message = "expected a key, found " + here
	case strings.HasPrefix(message, "expected '=' after key"):
		message = "expected '=' after the key, found " + here
	case strings.HasSuffix(message, "strings cannot have new lines"), strings.HasPrefix(message, "unterminated"):
		message = "expected the string to be closed, found " + here
	case strings.HasPrefix(message, "expected newline"):
		message = "expected the end of the line, found " + here
	}
	return s.base + at, message
}

func (s *tomlScanner) statement(n *unstable.Node) (statement, error) {
	st := statement{header: n.Kind != unstable.KeyValue, array: n.Kind == unstable.ArrayTable}
	st.keys = s.keys(n.Key())
	first, last := st.keys[0], st.keys[len(st.keys)-1]
	st.lineStart = s.base + 1 + bytes.LastIndexByte(s.data[:first.start-s.base], '\n')
	after := last.end - s.base
	if !st.header {
		value, err := s.valueAfterKey(n.Value(), last)
		if err != nil {
			return statement{}, err
		}
		st.value = value
		after = value.end - s.base
	}
	st.end = s.base + s.size
	if feed := bytes.IndexByte(s.data[after:s.size], '\n'); feed >= 0 {
		st.end = s.base + after + feed + 1
	}
	return st, nil
}

func (s *tomlScanner) keys(it unstable.Iterator) []keyPart {
	var keys []keyPart
	for it.Next() {
		start := int(it.Node().Raw.Offset)
		keys = append(keys, keyPart{
			name:  string(it.Node().Data),
			start: s.base + start,
			end:   s.base + start + int(it.Node().Raw.Length),
		})
	}
	return keys
}

func (s *tomlScanner) valueAfterKey(n *unstable.Node, key keyPart) (node, error) {
	s.cursor = skipBlanks(s.data, key.end-s.base)
	s.cursor = skipBlanks(s.data, s.cursor+1) // the equals sign
	return s.value(n)
}

// value reads the node that starts at the cursor, and leaves the cursor behind it.
func (s *tomlScanner) value(n *unstable.Node) (node, error) {
	v := node{start: s.base + s.cursor}
	if s.depth++; s.depth > maxDepth {
		return node{}, &misfit{v.start, fmt.Sprintf("nested deeper than %d levels", maxDepth)}
	}
	defer func() { s.depth-- }()
	var err error
	switch n.Kind {
	case unstable.Array:
		err = s.array(n, &v)
	case unstable.InlineTable:
		err = s.inlineTable(n, &v)
	default:
		s.cursor = int(n.Raw.Offset + n.Raw.Length)
		err = scalar(n, &v)
	}
	v.end = s.base + s.cursor
	return v, err
}

func (s *tomlScanner) array(n *unstable.Node, v *node) error {
	v.kind, v.items = Array, []node{}
	s.cursor++
	for it := n.Children(); it.Next(); {
		s.cursor = skipTrivia(s.data, s.cursor, true)
		item, err := s.value(it.Node())
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	s.cursor = skipTrivia(s.data, s.cursor, true) + 1
	return nil
}

func (s *tomlScanner) inlineTable(n *unstable.Node, v *node) error {
	v.kind = Object
	s.cursor++
	for it := n.Children(); it.Next(); {
		p := pair{keys: s.keys(it.Node().Key())}
		var err error
		if p.value, err = s.valueAfterKey(it.Node().Value(), p.keys[len(p.keys)-1]); err != nil {
			return err
		}
		v.pairs = append(v.pairs, p)
	}
	s.cursor = skipTrivia(s.data, s.cursor, true) + 1
	return nil
}

func skipBlanks(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\t') {
		at++
	}
	return at
}

// skipTrivia skips blanks, newlines and comments within brackets, and commas if asked.
func skipTrivia(data []byte, at int, commas bool) int {
	for at < len(data) {
		switch c := data[at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || commas && c == ',':
			at++
		case c == '#':
			for at < len(data) && data[at] != '\n' {
				at++
			}
		default:
			return at
		}
	}
	return at
}

func scalar(n *unstable.Node, v *node) error {
	text := string(n.Data)
	switch n.Kind {
	case unstable.String:
		v.kind, v.str = String, text
	case unstable.Bool:
		v.kind, v.bool = Bool, text == "true"
	case unstable.Integer:
		v.kind, v.num = Number, text
		if _, err := strconv.ParseInt(text, 0, 64); err != nil {
			return &misfit{v.start, "the number does not fit in 64 bits"}
		}
	case unstable.Float:
		v.kind, v.num = Number, text
		if _, ok := (Value{Kind: Number, Num: text}).Float(); !ok {
			return &misfit{v.start, "the number does not fit in 64 bits"}
		}
	default:
		v.kind, v.str = Date, text
		if !validDate(text) {
			return &misfit{v.start, "there is no such date or time"}
		}
	}
	return nil
}

// validDate checks for TOML's four forms of RFC 3339: a date and a time, with an offset or without, a date, a time.
// Seconds are optional, as in TOML 1.1. time.Parse alone would also accept an hour of one digit and a comma before the
// fraction.
func validDate(text string) bool {
	const date, clock = `(\d{4}-\d\d-\d\d)`, `(\d\d:\d\d(?::\d\d(?:\.\d+)?)?)`
	form := regexp.MustCompile(`^(?:` + date + `(?:[Tt ]` + clock + `(?:[Zz]|[+-](\d\d:\d\d))?)?|` + clock + `)$`)
	parts := form.FindStringSubmatch(text)
	valid := func(part string, layouts ...string) bool {
		return part == "" || slices.ContainsFunc(layouts, func(layout string) bool {
			_, err := time.Parse(layout, part)
			return err == nil
		})
	}
	return parts != nil && valid(parts[1], time.DateOnly) && valid(parts[2], "15:04", time.TimeOnly) &&
		valid(parts[3], "15:04") && valid(parts[4], "15:04", time.TimeOnly)
}
