package literal

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// ParseJSON5 reads one value: JSON, and also comments, trailing commas, unquoted keys, single quotes, hexadecimal
// numbers, numbers that begin or end with a dot, a leading plus, and lines continued with a backslash. The error is a
// *SyntaxError.
func ParseJSON5(data []byte) (Value, error) {
	p := &json5{data: data, locate: newLocator(data)}
	v, err := p.document()
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

type json5 struct {
	data   []byte
	at     int
	locate *locator
	open   []byte // the closing bracket of every open one
	script bool   // JavaScript: templates, parentheses and types are read as well
}

func (p *json5) fail(offset int, format string, args ...any) *SyntaxError {
	return &SyntaxError{Pos: p.locate.pos(offset), Message: fmt.Sprintf(format, args...)}
}

// failWith is fail with a text whose insertion could help.
func (p *json5) failWith(insert string, offset int, format string, args ...any) *SyntaxError {
	err := p.fail(offset, format, args...)
	err.insert, err.at = insert, offset
	return err
}

// closing returns what is missing if the text ends here.
func (p *json5) closing() string {
	rest := slices.Clone(p.open)
	slices.Reverse(rest)
	return string(rest)
}

func (p *json5) ended() bool { return p.at >= len(p.data) }

func (p *json5) document() (Value, *SyntaxError) {
	if err := p.space(); err != nil {
		return Value{}, err
	}
	v, err := p.value()
	if err != nil {
		return Value{}, err
	}
	if err := p.space(); err != nil {
		return Value{}, err
	}
	if !p.ended() {
		return Value{}, p.fail(p.at, "expected nothing after the value, found %s", found(p.data, p.at))
	}
	return v, nil
}

// space skips white space and comments.
func (p *json5) space() *SyntaxError {
	for !p.ended() {
		r, size := utf8.DecodeRune(p.data[p.at:])
		switch {
		case r == '/' && p.at+1 < len(p.data) && p.data[p.at+1] == '/':
			p.lineComment()
		case r == '/' && p.at+1 < len(p.data) && p.data[p.at+1] == '*':
			if err := p.blockComment(); err != nil {
				return err
			}
		case unicode.IsSpace(r) || string(r) == byteOrderMark:
			p.at += size
		default:
			return nil
		}
	}
	return nil
}

func (p *json5) lineComment() {
	for !p.ended() && !lineEnd(p.data[p.at:]) {
		p.at++
	}
}

func (p *json5) blockComment() *SyntaxError {
	start := p.at
	for p.at += 2; p.at+1 < len(p.data); p.at++ {
		if p.data[p.at] == '*' && p.data[p.at+1] == '/' {
			p.at += 2
			return nil
		}
	}
	return p.fail(start, "the comment is not closed with */")
}

// lineEnd reports whether data begins with a line end of JavaScript: line feed, carriage return, U+2028 or U+2029.
func lineEnd(data []byte) bool {
	r, _ := utf8.DecodeRune(data)
	return r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029
}

func (p *json5) value() (Value, *SyntaxError) {
	start := p.at
	if p.ended() {
		return Value{}, p.fail(start, "expected a value, found end of input")
	}
	var v Value
	var err *SyntaxError
	switch c := p.data[p.at]; {
	case c == '{':
		v, err = p.object()
	case c == '[':
		v, err = p.array()
	case c == '"' || c == '\'':
		v.Kind = String
		v.Str, err = p.text()
	case c == '+' || c == '-' || c == '.' || isDigit(c):
		v.Kind = Number
		v.Num, err = p.number()
	case p.script:
		v, err = p.scriptValue()
	default:
		v, err = p.word()
	}
	if err != nil {
		return Value{}, err
	}
	if v.End == 0 { // a value in parentheses has its own place
		v.Pos, v.End = p.locate.pos(start), p.at
	}
	if p.script {
		err = p.typed()
	}
	return v, err
}

func (p *json5) word() (Value, *SyntaxError) {
	start := p.at
	switch name := p.identifier(); name {
	case "true", "false":
		return Value{Kind: Bool, Bool: name == "true"}, nil
	case "null":
		return Value{Kind: Null}, nil
	case "":
		return Value{}, p.fail(start, "expected a value, found %s", found(p.data, start))
	case "Infinity", "NaN":
		return Value{}, p.fail(start, "%s has no form in JSON", name)
	default:
		return Value{}, p.fail(start, "expected a value, found %s: a string needs quotes", shorten(name))
	}
}

func shorten(word string) string {
	if runes := []rune(word); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return word
}

// identifier reads a JavaScript name without escapes, or "".
func (p *json5) identifier() string {
	start := p.at
	for !p.ended() {
		r, size := utf8.DecodeRune(p.data[p.at:])
		first := r == '$' || r == '_' || unicode.IsLetter(r)
		later := unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc) || r == 0x200C || r == 0x200D
		if !first && (p.at == start || !later) {
			break
		}
		p.at += size
	}
	return string(p.data[start:p.at])
}

func (p *json5) enter(closer byte) *SyntaxError {
	if len(p.open) >= maxDepth {
		return p.fail(p.at, "nested deeper than %d levels", maxDepth)
	}
	p.open = append(p.open, closer)
	p.at++
	return p.space()
}

func (p *json5) leave() {
	p.open = p.open[:len(p.open)-1]
	p.at++
}

func (p *json5) array() (Value, *SyntaxError) {
	v := Value{Kind: Array, Items: []Value{}}
	if err := p.enter(']'); err != nil {
		return Value{}, err
	}
	for {
		if p.ended() {
			return Value{}, p.failWith(p.closing(), p.at, "expected a value or ']', found end of input")
		}
		if p.data[p.at] == ']' {
			p.leave()
			return v, nil
		}
		item, err := p.value()
		if err != nil {
			return Value{}, err
		}
		v.Items = append(v.Items, item)
		if err := p.separator(']', "an item"); err != nil {
			return Value{}, err
		}
	}
}

func (p *json5) object() (Value, *SyntaxError) {
	v := Value{Kind: Object, Members: []Member{}}
	seen := map[string]Pos{}
	if err := p.enter('}'); err != nil {
		return Value{}, err
	}
	for {
		if p.ended() {
			return Value{}, p.failWith(p.closing(), p.at, "expected a key or '}', found end of input")
		}
		if p.data[p.at] == '}' {
			p.leave()
			return v, nil
		}
		m, err := p.member()
		if err != nil {
			return Value{}, err
		}
		if first, twice := seen[m.Key]; twice {
			return Value{}, &SyntaxError{Pos: m.KeyPos, Message: fmt.Sprintf("key %q is given twice, first at %v",
				shorten(m.Key), first)}
		}
		seen[m.Key] = m.KeyPos
		v.Members = append(v.Members, m)
		if err := p.separator('}', "a member"); err != nil {
			return Value{}, err
		}
	}
}

func (p *json5) member() (Member, *SyntaxError) {
	start := p.at
	m := Member{KeyPos: p.locate.pos(start)}
	var err *SyntaxError
	if c := p.data[p.at]; c == '"' || c == '\'' {
		m.Key, err = p.text()
	} else if m.Key = p.identifier(); m.Key == "" {
		err = p.fail(start, "expected a key or '}', found %s", found(p.data, start))
	}
	if err != nil {
		return Member{}, err
	}
	if err = p.inherits(m); err != nil {
		return Member{}, err
	}
	if err = p.space(); err != nil {
		return Member{}, err
	}
	if p.ended() || p.data[p.at] != ':' {
		return Member{}, p.fail(p.at, "expected ':' after the key %q, found %s", shorten(m.Key), found(p.data, p.at))
	}
	p.at++
	if err = p.space(); err != nil {
		return Member{}, err
	}
	m.Value, err = p.value()
	return m, err
}

// separator passes a comma, or stops before the closing bracket.
func (p *json5) separator(closer byte, after string) *SyntaxError {
	afterValue := p.at
	if err := p.space(); err != nil {
		return err
	}
	if p.ended() {
		return p.failWith(p.closing(), p.at, "expected ',' or '%c' after %s, found end of input", closer, after)
	}
	switch c := p.data[p.at]; c {
	case closer:
		return nil
	case ',':
		p.at++
		return p.space()
	case '}', ']':
		return p.failWith(string(closer), p.at, "expected ',' or '%c' after %s, found '%c'", closer, after, c)
	default:
		err := p.failWith(",", p.at, "expected ',' or '%c' after %s, found %s", closer, after, found(p.data, p.at))
		err.at = afterValue
		return err
	}
}
