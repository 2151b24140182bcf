package literal

// typ passes over a type of TypeScript. Types say nothing about values, so it is lenient: it only has to find the end.
func (p *js) typ() *SyntaxError {
	if err := p.deeper(); err != nil {
		return err
	}
	defer func() { p.nesting-- }()
	for {
		if err := p.simpleType(); err != nil {
			return err
		}
		t, err := p.peek(token{kind: wordToken})
		if err != nil {
			return err
		}
		switch {
		case t.is("|", "&"):
			// || after a value with a type
			if next := t.start + 1; next < len(p.data) && p.data[next] == p.data[t.start] {
				return nil
			}
			p.at = t.start + 1
		case t.is("extends", "is") && !t.newline:
			p.at = t.start + len(t.text)
			if err := p.typ(); err != nil || t.is("is") {
				return err
			}
			return p.branches()
		default:
			return nil
		}
	}
}

// branches passes over what follows the condition of a type, if it is one.
func (p *js) branches() *SyntaxError {
	for _, sign := range []string{"?", ":"} {
		t, err := p.peek(token{kind: wordToken})
		if err != nil {
			return err
		}
		if !t.is(sign) {
			return nil
		}
		p.at = t.start + 1
		if err := p.typ(); err != nil {
			return err
		}
	}
	return nil
}

// simpleType passes over a type without the signs that join two.
func (p *js) simpleType() *SyntaxError {
	for {
		t, err := p.next(token{})
		if err != nil {
			return err
		}
		switch {
		case t.is("keyof", "typeof", "readonly", "unique", "infer", "asserts", "abstract", "new", "const", "in", "out"):
			after, err := p.peek(token{kind: wordToken})
			if err != nil {
				return err
			}
			begins := after.kind == wordToken && !after.is("extends", "is", "as", "satisfies") ||
				t.is("keyof", "readonly", "new") && after.is("(", "[", "{", "<")
			if !begins || after.newline {
				return p.typeSuffix()
			}
			continue
		case t.is("|", "&", "-"):
			continue // a list may begin with its sign
		case t.is("(", "[", "{", "<"):
			p.at = t.start
			return p.bracketType(t)
		case t.kind == wordToken, t.kind == numberToken, t.kind == textToken && t.text != "/":
			return p.typeSuffix()
		}
		return p.fail(t.start, "expected a type, found %s", found(p.data, t.start))
	}
}

// bracketType passes over a type that begins with a bracket; functions are among them.
func (p *js) bracketType(t token) *SyntaxError {
	if t.is("<") {
		if err := p.typeArguments(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
		if p.ended() || p.data[p.at] != '(' {
			return p.fail(p.at, "expected '(', found %s", found(p.data, p.at))
		}
	}
	if err := p.group(); err != nil {
		return err
	}
	if arrow, err := p.peek(token{kind: wordToken}); err != nil {
		return err
	} else if arrow.is("=>") && !t.is("[", "{") {
		p.at = arrow.start + 2
		return p.typ()
	}
	return p.typeSuffix()
}

// typeSuffix passes over members, arguments and brackets of an array.
func (p *js) typeSuffix() *SyntaxError {
	for {
		t, err := p.peek(token{kind: wordToken})
		if err != nil {
			return err
		}
		switch {
		case t.is("."):
			p.at = t.start + 1
			if _, err = p.next(token{kind: signToken, text: "."}); err != nil {
				return err
			}
		case t.is("<") && !t.newline:
			p.at = t.start
			if err := p.typeArguments(); err != nil {
				return err
			}
		case t.is("[") && !t.newline, t.is("(") && !t.newline && p.at >= 6 && string(p.data[p.at-6:p.at]) == "import":
			p.at = t.start
			if err := p.group(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// typeArguments passes over <…>, parameters with their bounds and defaults too.
func (p *js) typeArguments() *SyntaxError {
	start := p.at
	err := p.typeList()
	if err != nil {
		p.noTypes[start] = true
	}
	return err
}

func (p *js) typeList() *SyntaxError {
	if err := p.deeper(); err != nil {
		return err
	}
	defer func() { p.nesting-- }()
	p.at++
	for {
		t, err := p.peek(token{})
		if err != nil {
			return err
		}
		if t.is(">") {
			p.at = t.start + 1
			return nil
		}
		if err := p.typ(); err != nil {
			return err
		}
		t, err = p.peek(token{kind: wordToken})
		switch {
		case err != nil:
			return err
		case t.is(",", "="):
			p.at = t.start + 1
		case !t.is(">"):
			return p.fail(t.start, "expected ',' or '>' after a type, found %s", found(p.data, t.start))
		}
	}
}
