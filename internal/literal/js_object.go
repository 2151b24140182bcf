package literal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// members builds an object: what is spread may be overridden, what is written twice is a mistake.
type members struct {
	list    []Member
	index   map[string]int
	written map[string]Pos
	unknown *Value // code that could add any member
}

func (o *members) set(m Member) {
	if i, ok := o.index[m.Key]; ok {
		o.list[i] = m
		return
	}
	o.index[m.Key] = len(o.list)
	o.list = append(o.list, m)
}

func (p *js) objectLiteral() (Value, *SyntaxError) {
	o := members{list: []Member{}, index: map[string]int{}, written: map[string]Pos{}}
	if err := p.enter('}'); err != nil {
		return Value{}, err
	}
	for {
		if p.ended() {
			return Value{}, p.failWith(p.closing(), p.at, "expected a key or '}', found end of input")
		}
		if p.data[p.at] == '}' {
			p.leave()
			if o.unknown != nil {
				return *o.unknown, nil
			}
			return Value{Kind: Object, Members: o.list}, nil
		}
		start := p.at
		var err *SyntaxError
		if p.spread() {
			err = p.spreadObject(start, &o)
		} else {
			err = p.memberLiteral(&o)
		}
		if err != nil {
			return Value{}, err
		}
		if err := p.separator('}', "a member"); err != nil {
			return Value{}, err
		}
	}
}

func (p *js) spreadObject(start int, o *members) *SyntaxError {
	from, err := p.expression(false)
	switch {
	case err != nil:
		return err
	case from.Kind == Object:
		for _, m := range from.Members {
			o.set(m)
		}
		return p.copied(start, len(from.Members))
	case from.Kind != Null && from.Kind != undefined && from.Kind != Bool && from.Kind != Number && o.unknown == nil:
		o.unknown = p.codeFrom(start)
	}
	return nil
}

// key is the name of a member and how it was written.
type key struct {
	name     string
	plain    bool // an identifier, which may also stand for a value of its name
	computed bool
	code     bool // it would have to be run
}

func (p *js) memberLiteral(o *members) *SyntaxError {
	start := p.at
	accessor, function, err := p.modifiers()
	if err != nil {
		return err
	}
	keyAt := p.at
	k, err := p.key()
	if err != nil {
		return err
	}
	m := Member{Key: k.name, KeyPos: p.locate.pos(keyAt)}
	t, err := p.peek(token{kind: wordToken})
	switch {
	case err != nil:
		return err
	case t.is("(", "<"):
		p.at = t.start
		err = p.method()
		m.Value = *p.codeFrom(start)
	case function:
		return p.fail(t.start, "expected '(' after the name of a function, found %s", found(p.data, t.start))
	case t.is(":"):
		if k.name == "__proto__" && !k.computed {
			return p.fail(keyAt, "the key __proto__ says what an object inherits, which cannot be configured")
		}
		p.at = t.start + 1
		m.Value, err = p.expression(false)
	case k.plain && t.is(",", "}"):
		p.at = keyAt
		m.Value, err = p.expression(false)
	default:
		return p.fail(t.start, "expected ':' after the key %q, found %s", shorten(k.name), found(p.data, t.start))
	}
	if err != nil {
		return err
	}
	if k.code {
		if o.unknown == nil {
			o.unknown = p.codeFrom(start)
		}
		return nil
	}
	if first, twice := o.written[m.Key]; twice && !accessor {
		return &SyntaxError{Pos: m.KeyPos, Message: fmt.Sprintf("key %q is given twice, first at %v", shorten(m.Key),
			first)}
	}
	o.written[m.Key] = m.KeyPos
	o.set(m)
	return nil
}

// modifiers passes over what makes a member a function: get, set, async and an asterisk.
func (p *js) modifiers() (accessor, function bool, err *SyntaxError) {
	for {
		t, err := p.peek(token{})
		if err != nil {
			return false, false, err
		}
		switch {
		case t.is("*"):
			p.at, function = t.start+1, true
		case t.is("get", "set", "async"):
			at := p.at
			p.at = t.start + len(t.text)
			after, err := p.peek(token{kind: wordToken})
			if err != nil {
				return false, false, err
			}
			if after.kind == endToken || after.is(":", ",", "}", "(", "<", "=") {
				p.at = at // it is the key itself
				return accessor, function, nil
			}
			accessor, function = accessor || !t.is("async"), true
		default:
			return accessor, function, p.space()
		}
		if err := p.space(); err != nil {
			return false, false, err
		}
	}
}

func (p *js) key() (key, *SyntaxError) {
	start := p.at
	switch {
	case p.ended():
	case p.data[start] == '"' || p.data[start] == '\'':
		name, err := p.text()
		return key{name: name}, err
	case p.data[start] == '[':
		return p.computedKey()
	case isDigit(p.data[start]) || p.data[start] == '.' && start+1 < len(p.data) && isDigit(p.data[start+1]):
		num, err := p.number()
		return key{name: numberKey(num)}, err
	}
	name := p.identifier()
	if name == "" {
		return key{}, p.fail(start, "expected a key or '}', found %s", found(p.data, start))
	}
	return key{name: name, plain: true}, nil
}

func (p *js) computedKey() (key, *SyntaxError) {
	if err := p.enter(']'); err != nil {
		return key{}, err
	}
	v, err := p.expression(false)
	if err != nil {
		return key{}, err
	}
	if err := p.space(); err != nil {
		return key{}, err
	}
	if p.ended() || p.data[p.at] != ']' {
		return key{}, p.failWith("]", p.at, "expected ']' after the key, found %s", found(p.data, p.at))
	}
	p.leave()
	switch v.Kind {
	case String:
		return key{name: v.Str, computed: true}, nil
	case Number:
		return key{name: numberKey(v.Num), computed: true}, nil
	}
	return key{computed: true, code: true}, nil
}

// numberKey is the name that JavaScript gives to a number.
func numberKey(num string) string {
	f, _ := (Value{Kind: Number, Num: num}).Float()
	if f == 0 {
		return "0" // also of -0
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	return mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
}

// method passes over the parameters and the body of a function that is a member.
func (p *js) method() *SyntaxError {
	if p.data[p.at] == '<' {
		if err := p.typeArguments(); err != nil {
			return err
		}
	}
	for _, bracket := range []string{"(", "{"} {
		t, err := p.peek(token{kind: signToken, text: ")"})
		if err != nil {
			return err
		}
		if bracket == "{" && t.is(":") {
			p.at = t.start + 1
			if err := p.typ(); err != nil {
				return err
			}
			if t, err = p.peek(token{kind: wordToken}); err != nil {
				return err
			}
		}
		if !t.is(bracket) {
			return p.fail(t.start, "expected '%s' of a function, found %s", bracket, found(p.data, t.start))
		}
		p.at = t.start
		if err := p.group(); err != nil {
			return err
		}
	}
	return nil
}
