package literal

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// expression reads a value. What is no literal is passed over and becomes a Value of the kind Code; an object or a list
// with a part that is code and could hold anything becomes that code.
func (p *js) expression(top bool) (Value, *SyntaxError) {
	if err := p.space(); err != nil {
		return Value{}, err
	}
	start, mark := p.at, p.mark()
	v, literal, err := p.operand()
	if err != nil {
		return Value{}, err
	}
	if literal {
		t, err := p.peek(token{kind: signToken, text: ")"})
		if err != nil {
			return Value{}, err
		}
		if !t.continues() {
			return v, nil
		}
	}
	p.reset(mark)
	if err := p.code(top); err != nil {
		return Value{}, err
	}
	v = Value{
		Kind: Code, Pos: p.locate.pos(start), End: p.at,
		Str: shorten(strings.TrimSpace(firstLine(p.data[start:p.at]))),
	}
	if name := string(p.data[start:p.at]); isName(name) {
		p.uses = append(p.uses, use{name, start})
	}
	return v, nil
}

func firstLine(data []byte) string {
	s := strings.ToValidUTF8(string(data[:min(len(data), 400)]), "\uFFFD")
	if end := strings.IndexAny(s, "\r\n\u2028\u2029"); end >= 0 {
		return s[:end]
	}
	return s
}

// operand reads a literal with what TypeScript may say behind it; false when it is none, wherever the reader then
// stands.
func (p *js) operand() (v Value, literal bool, err *SyntaxError) {
	start := p.at
	if p.ended() {
		return Value{}, false, p.fail(start, "expected a value, found end of input")
	}
	literal = true
	switch c := p.data[start]; {
	case c == '{':
		v, err = p.objectLiteral()
	case c == '[':
		v, err = p.arrayLiteral()
	case c == '(':
		return p.parenthesis()
	case c == '<':
		return p.assertion()
	case c == '"' || c == '\'':
		v.Kind = String
		v.Str, err = p.text()
	case c == '`':
		v.Kind = String
		v.Str, literal, err = p.template()
	case c == '-' || c == '+' || isDigit(c) || c == '.' && p.at+1 < len(p.data) && isDigit(p.data[p.at+1]):
		v.Kind = Number
		v.Num, literal, err = p.signedNumber()
	case c == '!':
		v.Kind = Bool
		v.Bool, literal = p.shortBool()
	case strings.IndexByte(",;:)]}", c) >= 0:
		return Value{}, false, p.fail(start, "expected a value, found %s", found(p.data, start))
	default:
		return p.wordValue()
	}
	if err != nil || !literal {
		return Value{}, false, err
	}
	if v.Kind != Code {
		v.Pos, v.End = p.locate.pos(start), p.at
	}
	return v, true, p.typed()
}

// typed passes over what TypeScript says of a value: as T, satisfies T, and a mark that it is there.
func (p *js) typed() *SyntaxError {
	for {
		t, err := p.peek(token{kind: signToken, text: ")"})
		switch {
		case err != nil:
			return err
		case t.newline:
			return nil
		case t.is("!"):
			p.at = t.start + 1
		case t.is("as", "satisfies"):
			p.at = t.start + len(t.text)
			if err := p.typ(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (p *js) parenthesis() (Value, bool, *SyntaxError) {
	start, mark := p.at, p.mark()
	if err := p.group(); err != nil {
		return Value{}, false, err
	}
	after, err := p.peek(token{kind: signToken, text: ")"})
	if err != nil || after.is("=>", ":", "{") { // the parameters of a function
		return Value{}, false, err
	}
	p.reset(mark)
	p.at = start
	if err := p.enter(')'); err != nil {
		return Value{}, false, err
	}
	v, err := p.expression(false)
	if err != nil {
		return Value{}, false, err
	}
	if err := p.space(); err != nil {
		return Value{}, false, err
	}
	if p.ended() || p.data[p.at] == ']' || p.data[p.at] == '}' || p.data[p.at] == ';' {
		return Value{}, false, p.failWith(")", p.at, "expected ')' after the value, found %s", found(p.data, p.at))
	}
	if p.data[p.at] != ')' || v.Kind == Code {
		return Value{}, false, nil
	}
	p.leave()
	return v, true, p.typed()
}

// assertion reads <T>value, the older form of value as T.
func (p *js) assertion() (Value, bool, *SyntaxError) {
	if err := p.deeper(); err != nil {
		return Value{}, false, err
	}
	defer func() { p.nesting-- }()
	if err := p.typeArguments(); err != nil {
		return Value{}, false, err
	}
	if err := p.space(); err != nil {
		return Value{}, false, err
	}
	return p.operand()
}

func (p *js) template() (string, bool, *SyntaxError) {
	start := p.at
	var out []byte
	for p.at++; !p.ended(); {
		switch c := p.data[p.at]; {
		case c == '`':
			p.at++
			return string(out), true, nil
		case c == '$' && p.at+1 < len(p.data) && p.data[p.at+1] == '{':
			return "", false, nil
		case c == '\\':
			var err *SyntaxError
			if out, err = p.escape(out); err != nil {
				return "", false, err
			}
		case c == '\r':
			out = append(out, '\n')
			if p.at++; !p.ended() && p.data[p.at] == '\n' {
				p.at++
			}
		default:
			r, size := utf8.DecodeRune(p.data[p.at:])
			if r == utf8.RuneError && size == 1 {
				return "", false, p.fail(p.at, "byte 0x%02X is not UTF-8", c)
			}
			out = append(out, p.data[p.at:p.at+size]...)
			p.at += size
		}
	}
	return "", false, p.failWith("`", p.at, "expected ` to close the template of %v, found end of input",
		p.locate.pos(start))
}

// signedNumber reads a number with any space behind its sign; a sign before anything else is arithmetic.
func (p *js) signedNumber() (string, bool, *SyntaxError) {
	sign := ""
	if c := p.data[p.at]; c == '-' || c == '+' {
		sign = string(c)
		p.at++
		if err := p.space(); err != nil {
			return "", false, err
		}
		if p.ended() || !isDigit(p.data[p.at]) && (p.data[p.at] != '.' || p.at+1 >= len(p.data) ||
			!isDigit(p.data[p.at+1])) {
			return "", false, nil
		}
	}
	num, err := p.number()
	return sign + num, err == nil, err
}

// shortBool knows !0 and !1, which tools write for true and false.
func (p *js) shortBool() (value, ok bool) {
	if p.at+1 >= len(p.data) || p.data[p.at+1] != '0' && p.data[p.at+1] != '1' {
		return false, false
	}
	value = p.data[p.at+1] == '0'
	p.at += 2
	return value, p.ended() || p.data[p.at] != '.' && !isDigit(p.data[p.at]) && p.identifier() == ""
}

func isName(s string) bool {
	p := json5{data: []byte(s)}
	return s != "" && p.identifier() == s
}

// wordValue reads what begins with a name: the words of the language that are values, and the names of literals.
func (p *js) wordValue() (Value, bool, *SyntaxError) {
	start := p.at
	v := Value{}
	switch name := p.identifier(); name {
	case "true", "false":
		v.Kind, v.Bool = Bool, name == "true"
	case "null":
		v.Kind = Null
	case "undefined":
		v.Kind = undefined
	case "void":
		if p.space() != nil || p.ended() || p.data[p.at] != '0' {
			return Value{}, false, nil
		}
		p.at++
		v.Kind = undefined
	case "":
		if strings.IndexByte("/~@#\\", p.data[start]) >= 0 {
			return Value{}, false, nil
		}
		return Value{}, false, p.fail(start, "expected a value, found %s", found(p.data, start))
	default:
		return p.reference(name)
	}
	v.Pos, v.End = p.locate.pos(start), p.at
	return v, true, p.typed()
}

// reference is the value of a name that was given a literal further up, or of a member of it. It keeps the place where
// it is written.
func (p *js) reference(name string) (Value, bool, *SyntaxError) {
	b, known := p.bindings[name]
	if !known || b.call || b.value.Kind == Code {
		return Value{}, false, nil
	}
	v := b.value
	for {
		t, err := p.peek(token{kind: wordToken})
		if err != nil || !t.is(".") {
			p.used = append(p.used, name)
			return v, true, p.typed()
		}
		p.at = t.start + 1
		if err := p.space(); err != nil {
			return Value{}, false, err
		}
		m, ok := v.Member(p.identifier())
		if v.Kind != Object || !ok || m.Value.Kind == Code {
			return Value{}, false, nil
		}
		v = m.Value
	}
}

func (p *js) arrayLiteral() (Value, *SyntaxError) {
	v := Value{Kind: Array, Items: []Value{}}
	var unknown *Value
	if err := p.enter(']'); err != nil {
		return Value{}, err
	}
	for {
		switch {
		case p.ended():
			return Value{}, p.failWith(p.closing(), p.at, "expected a value or ']', found end of input")
		case p.data[p.at] == ']':
			p.leave()
			if unknown != nil {
				return *unknown, nil
			}
			return v, nil
		case p.data[p.at] == ',':
			v.Items = append(v.Items, Value{Pos: p.locate.pos(p.at), End: p.at})
			p.at++
			if err := p.space(); err != nil {
				return Value{}, err
			}
			continue
		}
		start := p.at
		spread := p.spread()
		item, err := p.expression(false)
		if err != nil {
			return Value{}, err
		}
		switch {
		case !spread:
			v.Items = append(v.Items, item)
		case item.Kind == Array:
			v.Items = append(v.Items, item.Items...)
			if err := p.copied(start, len(item.Items)); err != nil {
				return Value{}, err
			}
		case unknown == nil:
			unknown = p.codeFrom(start)
		}
		if err := p.separator(']', "an item"); err != nil {
			return Value{}, err
		}
	}
}

func (p *js) spread() bool {
	if !strings.HasPrefix(string(p.data[p.at:min(len(p.data), p.at+3)]), "...") {
		return false
	}
	p.at += 3
	return true
}

func (p *js) codeFrom(start int) *Value {
	return &Value{Kind: Code, Pos: p.locate.pos(start), End: p.at, Str: shorten(firstLine(p.data[start:p.at]))}
}

// copied bounds the work of spreads, which may double what they spread again and again.
func (p *js) copied(at, count int) *SyntaxError {
	if p.copies += count; p.copies > maxExpansion {
		return p.fail(at, "references make the value larger than %d parts", maxExpansion)
	}
	return nil
}

// mark and reset take back what an attempt has noted.
type mark struct {
	at, open, uses, words, used int
}

func (p *js) mark() mark {
	return mark{p.at, len(p.open), len(p.uses), len(p.words), len(p.used)}
}

func (p *js) reset(m mark) {
	p.at, p.open, p.uses, p.words, p.used = m.at, p.open[:m.open], p.uses[:m.uses], p.words[:m.words],
		slices.Clip(p.used[:m.used])
}
