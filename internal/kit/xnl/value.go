package xnl

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

func nameStart(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func nameByte(c byte) bool { return nameStart(c) || isDigit(c) || c == '-' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isName reports whether s is a name, so that it needs no quotes as a key and can be a marker.
func isName(s string) bool {
	if s == "" || !nameStart(s[0]) {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

// name reads a name, or "".
func (p *parser) name() string {
	start := p.at
	if p.ended() || !nameStart(p.text[p.at]) {
		return ""
	}
	for p.at < len(p.text) && nameByte(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at]
}

// key reads a name or a string.
func (p *parser) key() (key string, ok bool) {
	if c := p.peek(); c == '"' || c == '\'' {
		return p.quoted(), true
	}
	key = p.name()
	return key, key != ""
}

func (p *parser) value() any {
	if p.ended() {
		p.fail(UnexpectedEOF, p.at, "Unexpected end of input")
	}
	switch c := p.text[p.at]; {
	case c == '"' || c == '\'':
		return p.quoted()
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case isDigit(c) || c == '-' || c == '+':
		return p.number()
	}
	word := p.name()
	switch word {
	case "":
		r, _ := utf8.DecodeRuneInString(p.text[p.at:])
		p.fail(InvalidLiteral, p.at, "Unexpected literal starting with '%c'", r)
	case "true", "false":
		p.bounded()
		return word == "true"
	case "null":
		p.bounded()
		return nil
	}
	p.fail(InvalidLiteral, p.at, "Bare identifier '%s' is not allowed; use quoted string", word)
	return nil
}

func (p *parser) object() any {
	p.enter()
	p.at++
	o := Object{}
	for {
		p.skip()
		if p.peek() == '}' {
			p.at++
			p.depth--
			return o.distinct()
		}
		o = append(o, p.member("key in object literal"))
	}
}

func (p *parser) array() any {
	p.enter()
	p.at++
	items := []any{}
	for p.more(']', "array literal", "") {
		items = append(items, p.value())
		p.apart()
	}
	p.depth--
	return items
}

// apart requires a blank between a string and the next value of a list.
func (p *parser) apart() {
	if before := p.text[p.at-1]; before == '"' || before == '\'' {
		p.bounded()
	}
}

// bounded requires that the value before ends here.
func (p *parser) bounded() {
	if c := p.peek(); nameByte(c) || c == '"' || c == '\'' || c == '+' || c == '.' {
		p.fail(InvalidLiteral, p.at, "Missing blank between values")
	}
}

func (p *parser) digits() bool {
	start := p.at
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
		p.at++
	}
	return p.at > start
}

func (p *parser) number() any {
	start := p.at
	if c := p.text[p.at]; c == '-' || c == '+' {
		p.at++
	}
	if !p.digits() {
		p.fail(InvalidLiteral, start, "Unexpected literal starting with '%c'", p.text[start])
	}
	whole := true
	if p.peek() == '.' {
		whole = false
		if p.at++; !p.digits() {
			p.fail(InvalidLiteral, p.at, "Invalid float literal")
		}
	}
	if p.peek()|0x20 == 'e' {
		whole = false
		p.at++
		if c := p.peek(); c == '-' || c == '+' {
			p.at++
		}
		if !p.digits() {
			p.fail(InvalidLiteral, p.at, "Invalid exponent in number")
		}
	}
	written := p.text[start:p.at]
	p.bounded()
	if whole {
		if n, err := strconv.ParseInt(written, 10, 64); err == nil {
			return n
		}
	}
	f, err := strconv.ParseFloat(written, 64)
	if err != nil {
		p.fail(InvalidLiteral, start, "Number out of range")
	}
	return f
}

// quoted reads a string in either kind of quotes.
func (p *parser) quoted() string {
	quote := p.text[p.at]
	p.at++
	start := p.at
	end := strings.IndexByte(p.text[start:], quote)
	if end < 0 {
		p.fail(UnexpectedEOF, len(p.text), "Unterminated string literal")
	}
	if plain := p.text[start : start+end]; strings.IndexByte(plain, '\\') < 0 {
		p.at = start + end + 1
		return plain
	}
	var b strings.Builder
	for p.at < len(p.text) {
		switch c := p.text[p.at]; c {
		case quote:
			b.WriteString(p.text[start:p.at])
			p.at++
			return b.String()
		case '\\':
			b.WriteString(p.text[start:p.at])
			if p.at++; p.ended() {
				continue
			}
			b.WriteString(escaped(p.text[p.at]))
			if p.text[p.at] < utf8.RuneSelf {
				p.at++
			}
			start = p.at
		default:
			p.at++
		}
	}
	p.fail(UnexpectedEOF, len(p.text), "Unterminated string literal")
	return ""
}

// escaped returns what a byte after a backslash stands for. Any other than these stands for itself; a character of
// several bytes is left to the caller.
func escaped(c byte) string {
	switch {
	case c == 'n':
		return "\n"
	case c == 't':
		return "\t"
	case c == 'r':
		return "\r"
	case c >= utf8.RuneSelf:
		return ""
	}
	return string(rune(c))
}
