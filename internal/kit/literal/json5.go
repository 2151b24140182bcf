package literal

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseJSON5 reads one value: JSON, and also comments, trailing commas, unquoted keys, single quotes, hexadecimal
// numbers, numbers that begin or end with a dot, a leading plus, and lines continued with a backslash. The error is a
// *SyntaxError.
func ParseJSON5(data []byte) (v Value, err error) {
	defer catch(&v, &err)
	p := &json5{data: data, locate: newLocator(data)}
	return p.document(), nil
}

// catch turns the panic with which a parser gives up into its error.
func catch(v *Value, err *error) {
	switch refused := recover().(type) {
	case nil:
	case *SyntaxError:
		*v, *err = Value{}, refused
	default:
		panic(refused)
	}
}

type json5 struct {
	data   []byte
	at     int
	locate *locator
	open   []byte // the closing bracket of every open one
	script bool   // JavaScript: templates, parentheses and types are read as well
	call   bool   // arguments of a call; see ParseCall
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

func (p *json5) document() Value {
	p.space()
	v := p.value()
	p.space()
	if !p.ended() {
		panic(p.fail(p.at, "expected nothing after the value, found %s", found(p.data, p.at)))
	}
	return v
}

// space skips white space and comments.
func (p *json5) space() {
	for !p.ended() {
		r, size := utf8.DecodeRune(p.data[p.at:])
		switch {
		case r == '/' && p.at+1 < len(p.data) && p.data[p.at+1] == '/':
			p.lineComment()
		case r == '/' && p.at+1 < len(p.data) && p.data[p.at+1] == '*':
			p.blockComment()
		case unicode.IsSpace(r) || string(r) == byteOrderMark:
			p.at += size
		default:
			return
		}
	}
}

func (p *json5) lineComment() {
	for !p.ended() && !lineEnd(p.data[p.at:]) {
		p.at++
	}
}

func (p *json5) blockComment() {
	start := p.at
	for p.at += 2; p.at+1 < len(p.data); p.at++ {
		if p.data[p.at] == '*' && p.data[p.at+1] == '/' {
			p.at += 2
			return
		}
	}
	panic(p.fail(start, "the comment is not closed with */"))
}

// lineEnd reports whether data begins with a line end of JavaScript: line feed, carriage return, U+2028 or U+2029.
func lineEnd(data []byte) bool {
	r, _ := utf8.DecodeRune(data)
	return r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029
}

func (p *json5) value() Value {
	v := p.operand()
	if p.call {
		v = p.joined(v)
	}
	return v
}

// operand reads a value up to an operator.
func (p *json5) operand() Value {
	start := p.at
	if p.ended() {
		panic(p.fail(start, "expected a value, found end of input"))
	}
	var v Value
	switch c := p.data[p.at]; {
	case c == '{':
		v = p.object()
	case c == '[':
		v = p.array()
	case c == '"' || c == '\'':
		v.Kind = String
		v.Str = p.text()
	case c == '+' || c == '-' || c == '.' || isDigit(c):
		v.Kind = Number
		v.Num = p.number()
	case p.script:
		v = p.scriptValue()
	default:
		v = p.word()
	}
	if v.End == 0 { // a value in parentheses has its own place
		v.Pos, v.End = p.locate.pos(start), p.at
	}
	if p.script {
		p.typed()
	}
	return v
}

func (p *json5) word() Value {
	start := p.at
	switch name := p.identifier(); name {
	case "true", "false":
		return Value{Kind: Bool, Bool: name == "true"}
	case "null":
		return Value{Kind: Null}
	case "":
		panic(p.fail(start, "expected a value, found %s", found(p.data, start)))
	case "Infinity", "NaN":
		panic(p.fail(start, "%s has no form in JSON", name))
	default:
		panic(p.fail(start, "expected a value, found %s: a string needs quotes", shorten(name)))
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

func (p *json5) enter(closer byte) {
	if len(p.open) >= maxDepth {
		panic(p.fail(p.at, "nested deeper than %d levels", maxDepth))
	}
	p.open = append(p.open, closer)
	p.at++
	p.space()
}

func (p *json5) leave() {
	p.open = p.open[:len(p.open)-1]
	p.at++
}

func (p *json5) array() Value {
	v := Value{Kind: Array, Items: []Value{}}
	p.enter(']')
	for {
		if p.ended() {
			panic(p.failWith(p.closing(), p.at, "expected a value or ']', found end of input"))
		}
		if p.data[p.at] == ']' {
			p.leave()
			return v
		}
		item := p.value()
		v.Items = append(v.Items, item)
		p.separator(']', "an item")
	}
}

func (p *json5) object() Value {
	v := Value{Kind: Object, Members: []Member{}}
	seen := map[string]Pos{}
	p.enter('}')
	for {
		if p.ended() {
			panic(p.failWith(p.closing(), p.at, "expected a key or '}', found end of input"))
		}
		if p.data[p.at] == '}' {
			p.leave()
			return v
		}
		m := p.member()
		if first, twice := seen[m.Key]; twice {
			panic(&SyntaxError{Pos: m.KeyPos, Message: fmt.Sprintf("key %q is given twice, first at %v",
				shorten(m.Key), first)})
		}
		seen[m.Key] = m.KeyPos
		if !p.call || string(p.data[m.Value.Pos.Offset:m.Value.End]) != "undefined" {
			v.Members = append(v.Members, m)
		}
		p.separator('}', "a member")
	}
}

func (p *json5) member() Member {
	start := p.at
	m := Member{KeyPos: p.locate.pos(start)}
	if c := p.data[p.at]; c == '"' || c == '\'' {
		m.Key = p.text()
	} else if m.Key = p.identifier(); m.Key == "" {
		panic(p.fail(start, "expected a key or '}', found %s", found(p.data, start)))
	}
	p.inherits(m)
	p.space()
	if p.ended() || p.data[p.at] != ':' {
		panic(p.fail(p.at, "expected ':' after the key %q, found %s", shorten(m.Key), found(p.data, p.at)))
	}
	p.at++
	p.space()
	m.Value = p.value()
	return m
}

// separator skips a comma, or stops before the closing bracket.
func (p *json5) separator(closer byte, after string) {
	afterValue := p.at
	p.space()
	if p.ended() {
		panic(p.failWith(p.closing(), p.at, "expected ',' or '%c' after %s, found end of input", closer, after))
	}
	switch c := p.data[p.at]; c {
	case closer:
		return
	case ',':
		p.at++
		p.space()
		return
	case '}', ']':
		panic(p.failWith(string(closer), p.at, "expected ',' or '%c' after %s, found '%c'", closer, after, c))
	default:
		if p.call && closer == '}' && strings.ContainsAny(string(p.data[afterValue:p.at]), "\r\n") {
			return
		}
		err := p.failWith(",", p.at, "expected ',' or '%c' after %s, found %s", closer, after, found(p.data, p.at))
		err.at = afterValue
		panic(err)
	}
}
