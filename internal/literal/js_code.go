package literal

import (
	"slices"
	"strings"
)

// tokenKind says what a token of JavaScript is, as far as passing over it needs to know.
type tokenKind uint8

const (
	endToken tokenKind = iota
	wordToken
	numberToken
	textToken // strings, templates and regular expressions
	signToken
)

type token struct {
	kind    tokenKind
	start   int
	text    string // of words and signs
	newline bool   // a line ends before it
}

func (t token) is(texts ...string) bool {
	return (t.kind == signToken || t.kind == wordToken) && slices.Contains(texts, t.text)
}

// operator says that the token waits for an operand, so that no line end after it ends a statement and a slash begins
// an expression.
func (t token) operator() bool {
	switch t.kind {
	case wordToken:
		return t.is("return", "typeof", "instanceof", "in", "of", "new", "delete", "void", "throw", "case", "do",
			"else", "await", "yield", "extends", "default")
	case signToken:
		return !t.is(")", "]", "}", "++", "--")
	}
	return t.kind == endToken
}

// continues says that the token goes on with the expression before it, also from a new line.
func (t token) continues() bool {
	switch t.kind {
	case wordToken:
		return t.is("in", "instanceof")
	case textToken:
		return t.text == "`"
	case signToken:
		return !t.is("...", "{", "}", ")", "]", ";", ",", ":", "!", "~", "++", "--", "@", "#", "\\")
	}
	return false
}

// gap passes over white space and says whether a line ended in it.
func (p *js) gap() (newline bool, err *SyntaxError) {
	start := p.at
	if err := p.space(); err != nil {
		return false, err
	}
	for _, r := range string(p.data[start:p.at]) {
		if r == '\n' || r == '\r' || r == 0x2028 || r == 0x2029 {
			return true, nil
		}
	}
	return false, nil
}

// peek is the next token; nothing is passed.
func (p *js) peek(before token) (token, *SyntaxError) {
	at := p.at
	seen := len(p.words)
	nesting := p.nesting
	t, err := p.next(before)
	p.at, p.nesting = at, nesting
	p.words = p.words[:seen]
	return t, err
}

// next passes over one token. The one before tells a regular expression from a division.
func (p *js) next(before token) (token, *SyntaxError) {
	newline, err := p.gap()
	t := token{start: p.at, newline: newline}
	if err != nil || p.ended() {
		return t, err
	}
	switch c := p.data[p.at]; {
	case c == '"' || c == '\'':
		t.kind, t.text = textToken, string(c)
		return t, p.passString(c)
	case c == '`':
		t.kind, t.text = textToken, "`"
		return t, p.passTemplate()
	case c == '/' && (before.operator() || before.is("}") && newline):
		t.kind, t.text = textToken, "/"
		return t, p.passRegexp()
	case isDigit(c) || c == '.' && p.at+1 < len(p.data) && isDigit(p.data[p.at+1]):
		t.kind = numberToken
		for !p.ended() && (p.data[p.at] == '.' || isDigit(p.data[p.at]) || p.data[p.at] == '_' ||
			p.data[p.at]|0x20 >= 'a' && p.data[p.at]|0x20 <= 'z') {
			p.at++
		}
		return t, nil
	}
	if t.text = p.identifier(); t.text != "" {
		t.kind = wordToken
		p.mention(before, t)
		return t, nil
	}
	if strings.IndexByte("{}()[];,<>+-*/%&|^!~?:=.@#\\", p.data[p.at]) < 0 {
		return t, p.fail(p.at, "expected JavaScript, found %s", found(p.data, p.at))
	}
	t.kind, t.text = signToken, p.sign()
	return t, nil
}

// sign passes over one sign. Only those are known that mean something else than their characters one by one.
func (p *js) sign() string {
	rest := p.data[p.at:]
	for _, s := range []string{"...", "=>", "?.", "??", "++", "--", "!=", "=="} {
		if strings.HasPrefix(string(rest[:min(len(rest), 3)]), s) {
			if s == "?." && len(rest) > 2 && isDigit(rest[2]) {
				break
			}
			p.at += len(s)
			return s
		}
	}
	p.at++
	return string(rest[:1])
}

// mention notes a name that code uses; names of properties are none.
func (p *js) mention(before, t token) {
	if before.is(".", "?.") {
		return
	}
	if before.is("{", ",") {
		at := p.at
		key := p.space() == nil && !p.ended() && p.data[p.at] == ':'
		p.at = at
		if key {
			return
		}
	}
	p.words = append(p.words, t.text)
}

func (p *js) passString(quote byte) *SyntaxError {
	start := p.at
	for p.at++; !p.ended(); p.at++ {
		switch p.data[p.at] {
		case quote:
			p.at++
			return nil
		case '\\':
			p.at++
			if p.at+1 < len(p.data) && p.data[p.at] == '\r' && p.data[p.at+1] == '\n' {
				p.at++
			}
		case '\n', '\r':
			return p.fail(p.at, "expected %c to close the string, found end of line", quote)
		}
	}
	p.at = len(p.data)
	return p.fail(p.at, "expected %c to close the string of %v, found end of input", quote, p.locate.pos(start))
}

func (p *js) passTemplate() *SyntaxError {
	start := p.at
	for p.at++; !p.ended(); p.at++ {
		switch c := p.data[p.at]; {
		case c == '`':
			p.at++
			return nil
		case c == '\\':
			p.at++
		case c == '$' && p.at+1 < len(p.data) && p.data[p.at+1] == '{':
			p.at++
			if err := p.group(); err != nil {
				return err
			}
			p.at--
		}
	}
	p.at = len(p.data)
	return p.fail(p.at, "expected ` to close the template of %v, found end of input", p.locate.pos(start))
}

func (p *js) passRegexp() *SyntaxError {
	start, class := p.at, false
	for p.at++; !p.ended() && !lineEnd(p.data[p.at:]); p.at++ {
		switch c := p.data[p.at]; {
		case c == '\\':
			p.at++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			p.at++
			p.identifier()
			return nil
		}
	}
	p.at = min(p.at, len(p.data))
	return p.fail(start, "the regular expression is not closed with /")
}

// deeper bounds what calls itself. Whoever called it calls p.nesting-- when it is done.
func (p *js) deeper() *SyntaxError {
	if p.nesting >= maxDepth {
		return p.fail(p.at, "nested deeper than %d levels", maxDepth)
	}
	p.nesting++
	return nil
}

// group passes over a bracket and all up to the one that closes it.
func (p *js) group() *SyntaxError {
	if err := p.deeper(); err != nil {
		return err
	}
	defer func() { p.nesting-- }()
	type opened struct {
		closer  string
		at      int
		control bool // the parenthesis of an if, after which a statement begins
	}
	var open []opened
	before, previous := token{}, token{}
	for {
		t, err := p.next(before)
		if err != nil {
			return err
		}
		switch {
		case t.kind == endToken:
			last := open[len(open)-1]
			return p.fail(p.at, "expected %s to close the bracket of %v, found end of input", last.closer,
				p.locate.pos(last.at))
		case t.is("("), t.is("["), t.is("{"):
			closer := map[string]string{"(": ")", "[": "]", "{": "}"}[t.text]
			open = append(open, opened{closer, t.start, before.is("if", "while", "for", "with") && !previous.is(".")})
		case t.is(")"), t.is("]"), t.is("}"):
			last := open[len(open)-1]
			if last.closer != t.text {
				return p.fail(t.start, "expected %s to close the bracket of %v, found '%s'", last.closer,
					p.locate.pos(last.at), t.text)
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return nil
			}
			if last.control {
				t = token{}
			}
		}
		before, previous = t, before
	}
}

// code passes over an expression that is no literal: up to a comma, a semicolon or a closing bracket of its own level.
// At the top of a module it ends also where a line does and JavaScript would put a semicolon.
func (p *js) code(top bool) *SyntaxError {
	before, questions, end := token{}, 0, p.at
	for {
		t, err := p.peek(before)
		switch {
		case err != nil:
			return err
		case t.kind == endToken, t.is(",", ";", ")", "]", "}"), t.is(":") && questions == 0 && !before.is(")"),
			top && t.newline && !before.operator() && !t.continues():
			p.at = end
			if before.kind == endToken {
				return p.fail(t.start, "expected a value, found %s", found(p.data, t.start))
			}
			if before.kind == signToken && before.operator() {
				return p.fail(t.start, "expected a value after '%s', found %s", before.text, found(p.data, t.start))
			}
			return nil
		}
		if before, err = p.codeToken(before, t, &questions); err != nil {
			return err
		}
		end = p.at
	}
}

// codeToken passes over t, with the whole group or type that it begins, and returns what stands last.
func (p *js) codeToken(before, t token, questions *int) (token, *SyntaxError) {
	switch {
	case t.is("(", "[", "{"):
		p.at = t.start
		closer := map[string]string{"(": ")", "[": "]", "{": "}"}[t.text]
		return token{kind: signToken, text: closer}, p.group()
	case t.is("<") && !before.operator() && t.start >= p.compared && !p.noTypes[t.start]:
		p.at = t.start
		seen := len(p.words)
		if p.typeArguments() == nil {
			if after, err := p.peek(token{kind: signToken, text: ")"}); err == nil &&
				(after.kind == signToken || after.kind == endToken || after.text == "`" || after.newline) {
				return token{kind: signToken, text: ")"}, nil
			}
			p.compared = p.at
		}
		p.at, p.words = t.start, p.words[:seen]
	case t.is("!") && !before.operator(): // it is there, says TypeScript
		p.at = t.start + 1
		return token{kind: signToken, text: ")"}, nil
	case t.is("?"):
		*questions++
	case t.is(":") && *questions > 0: // else it is before the result of a function
		*questions--
	}
	passed, err := p.next(before)
	return passed, err
}

// statement passes over one statement of code.
func (p *js) statement() *SyntaxError {
	if err := p.deeper(); err != nil {
		return err
	}
	defer func() { p.nesting-- }()
	t, err := p.peek(token{})
	if err != nil {
		return err
	}
	p.at = t.start
	switch {
	case t.is("{"):
		return p.group()
	case t.is(";"):
		p.at++
		return nil
	case t.is("if", "for", "while", "with", "switch"):
		return p.control(t)
	case t.is("do", "try", "else", "finally"):
		p.at += len(t.text)
		if err := p.statement(); err != nil {
			return err
		}
		return p.clauses(t)
	}
	for {
		if err := p.code(true); err != nil {
			return err
		}
		newline, err := p.gap()
		switch {
		case err != nil:
			return err
		case p.ended() || newline && p.data[p.at] != ',' && p.data[p.at] != ':':
			return nil
		case p.data[p.at] == ';':
			p.at++
			return nil
		case p.data[p.at] == '}' || p.data[p.at] == ']' || p.data[p.at] == ')':
			return p.fail(p.at, "expected a statement, found %s", found(p.data, p.at))
		case p.data[p.at] != ',' && p.data[p.at] != ':':
			return nil
		}
		p.at++
	}
}

func (p *js) control(t token) *SyntaxError {
	p.at += len(t.text)
	if next, err := p.peek(token{}); err != nil {
		return err
	} else if next.is("await") { // for await (…)
		p.at = next.start + len(next.text)
	}
	if err := p.space(); err != nil {
		return err
	}
	if p.ended() || p.data[p.at] != '(' {
		return p.fail(p.at, "expected '(' after %s, found %s", t.text, found(p.data, p.at))
	}
	if err := p.group(); err != nil {
		return err
	}
	if err := p.statement(); err != nil {
		return err
	}
	return p.clauses(t)
}

// clauses passes over what may follow the first part of a statement.
func (p *js) clauses(first token) *SyntaxError {
	follow := map[string][]string{"if": {"else"}, "do": {"while"}, "try": {"catch", "finally"}}[first.text]
	for len(follow) > 0 {
		t, err := p.peek(token{})
		if err != nil || !t.is(follow...) {
			return err
		}
		p.at = t.start + len(t.text)
		if err := p.space(); err != nil {
			return err
		}
		if t.is("while", "catch") && !p.ended() && p.data[p.at] == '(' {
			if err := p.group(); err != nil {
				return err
			}
		}
		if err := p.statement(); err != nil {
			return err
		}
		if !t.is("catch") {
			return nil
		}
	}
	return nil
}
