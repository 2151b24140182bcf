package literal

import "strings"

// Call is a call of a function with literals.
type Call struct {
	Name string // with its namespace, such as SysBuiltIn.bash
	Args []Value
}

// ParseCall reads one call in JavaScript, such as SysBuiltIn.bash({ command: "ls" }), without running anything. Its
// arguments are literals as ParseJS reads them, and also strings joined by + and lists of strings joined by join. It
// accepts await before the call, a pair of parentheses around it, a semicolon after it, and a missing comma between two
// members on different lines, because models write those. A member that is undefined is left out.
//
// It refuses everything else, because names and calls in arguments have a value only when run. The error is a
// *SyntaxError.
func ParseCall(data []byte) (c Call, err error) {
	var none Value
	defer catch(&none, &err)
	p := &js{json5{data: data, locate: newLocator(data), script: true, call: true}}
	return p.whole(), nil
}

func (p *js) whole() Call {
	around := p.skip("(")
	c := p.called()
	if around {
		p.expect(")", "the call")
	}
	p.skip(";")
	if p.space(); !p.ended() {
		panic(p.fail(p.at, "expected nothing after the call, found %s", found(p.data, p.at)))
	}
	return c
}

func (p *js) called() (c Call) {
	p.skip("await")
	p.space()
	namespace := p.identifier()
	if namespace == "" || p.ended() || p.data[p.at] != '.' {
		panic(p.fail(p.at, "expected a call such as SysBuiltIn.bash({ command: \"ls\" }), found %s",
			found(p.data, p.at)))
	}
	p.at++
	name := p.identifier()
	if name == "" {
		panic(p.fail(p.at, "expected the name of a function, found %s", found(p.data, p.at)))
	}
	c.Name = namespace + "." + name
	p.expect("(", "the name")
	for p.space(); !p.skip(")"); p.space() {
		if p.ended() {
			panic(p.fail(p.at, "expected ')' after the arguments, found end of input"))
		}
		c.Args = append(c.Args, p.value())
		if !p.skip(",") {
			p.expect(")", "the arguments")
			break
		}
	}
	return c
}

// joined adds the strings that follow with +, and joins a list of strings.
func (p *json5) joined(v Value) Value {
	if v.Kind == Array {
		v = p.joinedList(v)
	}
	for v.Kind == String {
		end := p.at
		p.space()
		if p.ended() || p.data[p.at] != '+' {
			p.at = end
			break
		}
		p.at++
		p.space()
		next := p.operand()
		if next.Kind != String {
			panic(p.fail(next.Pos.Offset, "only strings can be joined by +, found a %s", next.Kind))
		}
		v.Str, v.End = v.Str+next.Str, p.at
	}
	return v
}

func (p *json5) joinedList(v Value) Value {
	s := &js{*p}
	if !s.skip(".", "join", "(") {
		return v
	}
	between := ","
	if !s.skip(")") {
		s.space()
		given := s.value()
		if s.expect(")", "the separator"); given.Kind != String {
			panic(p.fail(given.Pos.Offset, "join takes a string, found a %s", given.Kind))
		}
		between = given.Str
	}
	parts := make([]string, len(v.Items))
	for i, item := range v.Items {
		if item.Kind != String {
			panic(p.fail(item.Pos.Offset, "only strings can be joined, found a %s", item.Kind))
		}
		parts[i] = item.Str
	}
	p.at = s.at
	return Value{Kind: String, Pos: v.Pos, End: p.at, Str: strings.Join(parts, between)}
}
