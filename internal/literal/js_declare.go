package literal

import (
	"bytes"
	"slices"
	"strings"
)

// declaration reads const, let or var with all the names that it declares.
func (p *js) declaration(first token) *SyntaxError {
	p.at += len(first.text)
	for {
		if err := p.space(); err != nil {
			return err
		}
		if err := p.declarator(first.is("const")); err != nil {
			return err
		}
		newline, err := p.gap()
		if err != nil {
			return err
		}
		if p.ended() || p.data[p.at] != ',' {
			if newline {
				return nil
			}
			return p.end("the value")
		}
		p.at++
	}
}

func (p *js) declarator(fixed bool) *SyntaxError {
	start, words := p.at, len(p.words)
	if !p.ended() && (p.data[p.at] == '{' || p.data[p.at] == '[') {
		return p.pattern()
	}
	name := p.identifier()
	if name == "" {
		return p.fail(p.at, "expected a name, found %s", found(p.data, p.at))
	}
	if first, twice := p.bindings[name]; twice && first.offset < start {
		return p.fail(start, "%s is declared twice", shorten(name))
	}
	t, err := p.annotation()
	if err != nil {
		return err
	}
	b := &binding{fixed: fixed, value: Value{Kind: undefined, Pos: p.locate.pos(start), End: p.at}}
	if t.is("=") {
		p.at = t.start + 1
		if err := p.space(); err != nil {
			return err
		}
		from := p.at
		if b.value, b.call, err = p.configuration(); err != nil {
			return err
		}
		switch text := p.data[from:p.at]; {
		case b.value.Kind != Code:
		case fetched(text):
			p.imported[name] = true
		case function(text):
			p.functions[name] = slices.Clone(p.words[words:])
		default:
			p.actors = append(p.actors, actor{start, slices.Clone(p.words[words:])})
		}
	}
	b.offset = p.at
	p.bindings[name] = b
	return nil
}

// annotation passes over the type of a name and returns what follows it.
func (p *js) annotation() (token, *SyntaxError) {
	t, err := p.peek(token{kind: wordToken})
	if err == nil && t.is("!") {
		p.at = t.start + 1
		t, err = p.peek(token{kind: wordToken})
	}
	if err != nil || !t.is(":") {
		return t, err
	}
	p.at = t.start + 1
	if err := p.typ(); err != nil {
		return t, err
	}
	return p.peek(token{kind: wordToken})
}

// pattern passes over {a, b: c} = value. Its names are imported when the value is another module, else they are code.
func (p *js) pattern() *SyntaxError {
	start, words := p.at, len(p.words)
	if err := p.group(); err != nil {
		return err
	}
	names := slices.Clone(p.words[words:])
	t, err := p.annotation()
	if err != nil {
		return err
	}
	if !t.is("=") {
		return p.fail(t.start, "expected '=', found %s", found(p.data, t.start))
	}
	p.at = t.start + 1
	if err := p.space(); err != nil {
		return err
	}
	from, words := p.at, len(p.words)
	if err := p.code(true); err != nil {
		return err
	}
	for _, name := range names {
		p.imported[name] = p.imported[name] || fetched(p.data[from:p.at])
	}
	p.actors = append(p.actors, actor{start, slices.Clone(p.words[words:])})
	return nil
}

// fetched says that an expression is another module.
func fetched(text []byte) bool {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("await ")))
	return bytes.HasPrefix(text, []byte("require(")) || bytes.HasPrefix(text, []byte("import("))
}

// function says that an expression only makes a function, which runs nothing.
func function(text []byte) bool {
	p := &js{json5: json5{data: text, locate: newLocator(text), script: true}, noTypes: map[int]bool{}}
	first, err := p.next(token{})
	if err == nil && first.is("async") {
		first, err = p.next(token{kind: signToken, text: ")"})
	}
	switch {
	case err != nil:
		return false
	case first.is("function"):
		return p.functionRest() == nil && p.space() == nil && p.ended()
	case first.is("<"):
		p.at = first.start
		if p.typeArguments() != nil || p.space() != nil || p.ended() || p.data[p.at] != '(' || p.group() != nil {
			return false
		}
	case first.is("("):
		p.at = first.start
		if p.group() != nil {
			return false
		}
	case first.kind != wordToken:
		return false
	}
	t, err := p.peek(token{kind: wordToken})
	if err == nil && t.is(":") {
		p.at = t.start + 1
		if p.typ() != nil {
			return false
		}
		t, err = p.peek(token{kind: wordToken})
	}
	return err == nil && t.is("=>")
}

// functionStatement passes over a function or a class that is declared.
func (p *js) functionStatement() *SyntaxError {
	start := p.at
	words := len(p.words)
	for {
		t, err := p.next(token{})
		switch {
		case err != nil:
			return err
		case t.is("function"):
			if err := p.functionRest(); err != nil {
				return err
			}
		case t.is("class"):
			if err := p.classRest(); err != nil {
				return err
			}
		case t.is("async", "abstract"):
			continue
		default:
			p.at = start
			return p.statement()
		}
		break
	}
	if used := p.words[words:]; len(used) > 0 {
		used = slices.DeleteFunc(slices.Clone(used), func(s string) bool {
			return s == "async" || s == "function" ||
				s == "class" || s == "abstract"
		})
		if len(used) > 0 {
			p.functions[used[0]] = used
		}
	}
	return nil
}

// functionRest passes over all that follows the word function.
func (p *js) functionRest() *SyntaxError {
	t, err := p.peek(token{kind: wordToken})
	if err == nil && t.is("*") {
		p.at = t.start + 1
		t, err = p.peek(token{kind: wordToken})
	}
	if err == nil && t.kind == wordToken {
		if _, err = p.next(token{kind: wordToken}); err == nil {
			t, err = p.peek(token{kind: wordToken})
		}
	}
	if err != nil {
		return err
	}
	if !t.is("(", "<") {
		return p.fail(t.start, "expected '(' of a function, found %s", found(p.data, t.start))
	}
	p.at = t.start
	at := p.at
	if err := p.method(); err != nil {
		// A function that is only declared has no body.
		p.at = at
		if err := p.overload(); err != nil {
			return err
		}
	}
	return nil
}

func (p *js) overload() *SyntaxError {
	if p.data[p.at] == '<' {
		if err := p.typeArguments(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
	}
	if p.ended() || p.data[p.at] != '(' {
		return p.fail(p.at, "expected '(' of a function, found %s", found(p.data, p.at))
	}
	if err := p.group(); err != nil {
		return err
	}
	if _, err := p.annotation(); err != nil {
		return err
	}
	return p.end("the function")
}

// classRest passes over the head and the body of a class.
func (p *js) classRest() *SyntaxError {
	before := token{kind: wordToken}
	for {
		t, err := p.peek(before)
		switch {
		case err != nil:
			return err
		case t.kind == endToken, t.is(")", "]", "}", ";"):
			return p.fail(t.start, "expected '{' of a class, found %s", found(p.data, t.start))
		case t.is("{"):
			p.at = t.start
			return p.group()
		case t.is("<"):
			p.at = t.start
			err = p.typeArguments()
		case t.is("(", "["):
			p.at = t.start
			err = p.group()
		default:
			_, err = p.next(before)
		}
		if err != nil {
			return err
		}
		before = token{kind: wordToken}
	}
}

// block passes over an enum or a namespace: words up to a brace, and what is in braces.
func (p *js) block(first token) *SyntaxError {
	words := len(p.words)
	for {
		t, err := p.next(token{kind: wordToken})
		switch {
		case err != nil:
			return err
		case t.is("{"):
			p.at = t.start
			if err := p.group(); err != nil {
				return err
			}
			p.actors = append(p.actors, actor{first.start, slices.Clone(p.words[words:])})
			return nil
		case t.kind != wordToken && t.kind != textToken && !t.is("."):
			return p.fail(t.start, "expected '{' after %s, found %s", first.text, found(p.data, t.start))
		}
	}
}

// typeStatement passes over type T = … and interface T {…}.
func (p *js) typeStatement(first token) *SyntaxError {
	if first.is("interface") {
		p.at += len(first.text)
		return p.classRest()
	}
	p.at += len(first.text)
	if _, err := p.next(token{kind: wordToken}); err != nil {
		return err
	}
	t, err := p.peek(token{kind: wordToken})
	if err == nil && t.is("<") {
		p.at = t.start
		err = p.typeArguments()
	}
	if err != nil {
		return err
	}
	if err := p.take("'=' after the name of a type", "="); err != nil {
		return err
	}
	if err := p.typ(); err != nil {
		return err
	}
	return p.end("the type")
}

// declareStatement passes over what is only said to exist.
func (p *js) declareStatement(after token) *SyntaxError {
	p.at = after.start
	if after.is("global") {
		p.at += len("global")
		return p.block(after)
	}
	if !after.is("const", "let", "var") {
		return p.topStatement()
	}
	p.at += len(after.text)
	if err := p.space(); err != nil {
		return err
	}
	start, name := p.at, p.identifier()
	if name == "" {
		return p.fail(p.at, "expected a name, found %s", found(p.data, p.at))
	}
	if _, err := p.annotation(); err != nil {
		return err
	}
	p.bindings[name] = &binding{offset: -1, value: Value{
		Kind: Code, Pos: p.locate.pos(start), End: p.at,
		Str: shorten(name),
	}}
	return p.end("the declaration")
}

// assignment reads module.exports = value and exports.name = value, also several at once; false, and nothing passed,
// when it is not one.
func (p *js) assignment() (bool, *SyntaxError) {
	start, words := p.at, len(p.words)
	whole, alias, names := false, false, []string{}
	for {
		name, target, err := p.target()
		if err != nil {
			return false, err
		}
		if target == "" {
			break
		}
		switch {
		case name != "":
			if p.whole != nil && target == "exports" && !p.exported.aliased() {
				return false, p.fail(start, "exports.%s has no effect after module.exports was set", shorten(name))
			}
			names = append(names, name)
		case target == "module":
			whole = true
		default:
			alias = true
		}
	}
	p.words = p.words[:words]
	if !whole && len(names) == 0 {
		if alias {
			return false, p.fail(start, "exports = … exports nothing; write module.exports = …")
		}
		return false, nil
	}
	v, _, err := p.configuration()
	if err != nil {
		return false, err
	}
	p.common, p.commonPos = true, start
	if whole {
		p.whole, p.exported = &v, members{index: map[string]int{}}
		if alias {
			p.exported.written = map[string]Pos{}
		}
	}
	for _, name := range names {
		p.exported.set(Member{Key: name, KeyPos: p.locate.pos(start), Value: v})
	}
	return true, p.end("the value")
}

// aliased says that exports still is module.exports.
func (o members) aliased() bool { return o.written != nil }

// target passes over module.exports =, exports =, or one of them with the name of a member; an empty target when it is
// none.
func (p *js) target() (name, target string, err *SyntaxError) {
	at := p.at
	defer func() {
		if target == "" {
			p.at = at
		}
	}()
	if err = p.space(); err != nil {
		return "", "", err
	}
	path := []string{}
	for {
		t, err := p.next(token{kind: signToken, text: "."})
		if err != nil || t.kind != wordToken {
			return "", "", err
		}
		path = append(path, t.text)
		for {
			if t, err = p.next(token{kind: wordToken}); err != nil || !t.is("[") {
				break
			}
			if t, err = p.next(token{}); err != nil || t.kind != textToken || t.text == "/" {
				return "", "", err
			}
			path = append(path, strings.Trim(string(p.data[t.start:p.at]), "\"'`"))
			if t, err = p.next(token{kind: wordToken}); err != nil || !t.is("]") {
				return "", "", err
			}
		}
		switch {
		case err != nil:
			return "", "", err
		case t.is("."):
			continue
		case !t.is("="):
			return "", "", nil
		}
		break
	}
	if path[0] == "module" && len(path) > 1 && path[1] == "exports" {
		target, path = "module", path[2:]
	} else if path[0] == "exports" {
		target, path = "exports", path[1:]
	}
	switch {
	case target == "" || len(path) > 1:
		return "", "", nil
	case len(path) == 1:
		name = path[0]
	}
	return name, target, p.space()
}

// marker passes over Object.defineProperty(exports, "__esModule", …), which translated modules begin with.
func (p *js) marker() bool {
	mark := p.mark()
	for _, want := range []string{"Object", ".", "defineProperty", "(", "exports", ","} {
		if t, err := p.next(token{kind: wordToken}); err != nil || !t.is(want) {
			p.reset(mark)
			return false
		}
	}
	t, err := p.next(token{})
	if err != nil || t.kind != textToken || strings.Trim(string(p.data[t.start:p.at]), `"'`) != "__esModule" {
		p.reset(mark)
		return false
	}
	p.reset(mark)
	words := len(p.words)
	ok := p.code(true) == nil && p.end("the marker") == nil
	p.words = p.words[:words]
	return ok
}
