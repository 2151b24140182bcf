package literal

import (
	"slices"
	"strings"
)

// topStatement reads a statement of the module.
func (p *js) topStatement() *SyntaxError {
	start := p.at
	first, err := p.peek(token{})
	if err != nil {
		return err
	}
	after := token{}
	if first.kind == wordToken {
		p.at = start + len(first.text)
		if after, err = p.peek(first); err != nil {
			return err
		}
		p.at = start
	}
	named := after.kind == wordToken && !after.newline
	switch {
	case first.is("import") && !after.is("(", "."):
		return p.importStatement()
	case first.is("export"):
		return p.exportStatement(after)
	case first.is("const") && after.is("enum"), first.is("enum", "namespace") && named, first.is("module") &&
		(named || after.kind == textToken):
		return p.block(first)
	case first.is("const", "let", "var") && (after.kind == wordToken || after.is("{", "[")):
		return p.declaration(first)
	case first.is("type") && named, first.is("interface") && named:
		return p.typeStatement(first)
	case first.is("declare") && (named || after.kind == textToken):
		return p.declareStatement(after)
	case first.is("function", "class"), first.is("async") && after.is("function") && named, first.is("abstract") &&
		after.is("class"):
		return p.functionStatement()
	case first.is("module", "exports"):
		if done, err := p.assignment(); done || err != nil {
			return err
		}
	case first.is("Object") && p.marker():
		return nil
	case first.is("return", "throw"):
		return p.fail(start,
			"this statement ends the module before its end; this program reads configuration without running it")
	}
	if first.is("@") { // a decorator; what it decorates is the rest of the statement
		p.at++
		return p.code(true)
	}
	return p.act(start, p.statement)
}

// act passes over code that runs when the module is loaded.
func (p *js) act(start int, pass func() *SyntaxError) *SyntaxError {
	words := len(p.words)
	if err := pass(); err != nil {
		return err
	}
	p.actors = append(p.actors, actor{start, slices.Clone(p.words[words:])})
	return nil
}

// end passes over the end of a statement that is not code.
func (p *js) end(after string) *SyntaxError {
	newline, err := p.gap()
	switch {
	case err != nil:
		return err
	case p.ended():
		return nil
	case p.data[p.at] == ';':
		p.at++
		return nil
	case newline:
		return nil
	}
	return p.fail(p.at, "expected ';' or the end of the line after %s, found %s", after, found(p.data, p.at))
}

// take passes over a token and must find one of the given.
func (p *js) take(what string, texts ...string) *SyntaxError {
	t, err := p.next(token{kind: wordToken})
	if err != nil {
		return err
	}
	if !t.is(texts...) {
		return p.fail(t.start, "expected %s, found %s", what, found(p.data, t.start))
	}
	return nil
}

// importStatement notes the names that come from elsewhere.
func (p *js) importStatement() *SyntaxError {
	p.at += len("import")
	names, before := []string{}, token{kind: wordToken}
	for {
		t, err := p.next(before)
		if err != nil {
			return err
		}
		switch {
		case t.kind == textToken:
			for _, name := range names {
				p.imported[name] = true
			}
			return p.attributes()
		case t.is("=") && len(names) > 0: // import name = require("…")
			p.imported[names[len(names)-1]] = true
			if err := p.code(true); err != nil {
				return err
			}
			return p.end("the import")
		case t.kind == wordToken && before.is("as") && len(names) > 1: // a as b: as is a name of the list, too
			names = append(names[:len(names)-2], t.text)
		case t.kind == wordToken && before.is("*") && t.is("as"):
			names = append(names, "*", "as")
		case t.kind == wordToken:
			names = append(names, t.text)
		case !t.is("{", "}", ",", "*"):
			return p.fail(t.start, "expected the name of a module in quotes, found %s", found(p.data, t.start))
		}
		before = t
	}
}

// attributes passes over with {…} behind the name of a module, and the end of the statement.
func (p *js) attributes() *SyntaxError {
	t, err := p.peek(token{kind: wordToken})
	if err != nil {
		return err
	}
	if t.is("with", "assert") && !t.newline {
		p.at = t.start + len(t.text)
		if err := p.space(); err != nil {
			return err
		}
		if p.ended() || p.data[p.at] != '{' {
			return p.fail(p.at, "expected '{' after %s, found %s", t.text, found(p.data, p.at))
		}
		if err := p.group(); err != nil {
			return err
		}
	}
	return p.end("the name of the module")
}

func (p *js) exportStatement(after token) *SyntaxError {
	start := p.at
	p.at = after.start
	switch {
	case after.is("default"):
		p.at += len("default")
		return p.exportDefault(start)
	case after.is("="):
		p.at++
		return p.exportWhole(start)
	case after.is("*"):
		for {
			t, err := p.next(token{kind: wordToken})
			switch {
			case err != nil:
				return err
			case t.is("default"):
				return p.elsewhere(t.start)
			case t.kind == textToken:
				return p.attributes()
			case t.kind != wordToken && !t.is("*"):
				return p.fail(t.start, "expected the name of a module in quotes, found %s", found(p.data, t.start))
			}
		}
	case after.is("{"):
		return p.exportList()
	case after.is("type"):
		p.at += len("type")
		t, err := p.peek(token{kind: wordToken})
		if err != nil {
			return err
		}
		if t.is("{", "*") {
			p.at = t.start
			return p.typesOf(t)
		}
		p.at = after.start
	case after.kind != wordToken && !after.is("@"):
		return p.fail(after.start, "expected default, a list in braces or a declaration after export, found %s",
			found(p.data, after.start))
	}
	return p.topStatement()
}

// typesOf passes over the rest of export type {…} from "…".
func (p *js) typesOf(first token) *SyntaxError {
	if first.is("{") {
		if err := p.group(); err != nil {
			return err
		}
	}
	for {
		t, err := p.peek(token{kind: wordToken})
		if err != nil || !t.is("*", "as", "from") && t.kind != textToken && (t.kind != wordToken || first.is("{")) {
			if err == nil {
				err = p.end("the list")
			}
			return err
		}
		if _, err := p.next(token{kind: wordToken}); err != nil {
			return err
		}
		if t.kind == textToken {
			return p.attributes()
		}
	}
}

func (p *js) elsewhere(offset int) *SyntaxError {
	return p.fail(offset,
		"the configuration is exported from another module; this program reads one file, without running it")
}

// exportList reads export {a, b as default}.
func (p *js) exportList() *SyntaxError {
	p.at++
	var chosen use
	chosenAt := -1
	last, before := use{}, token{kind: signToken, text: ","}
	for {
		t, err := p.next(before)
		switch {
		case err != nil:
			return err
		case t.kind == endToken:
			return p.fail(t.start, "expected '}' after the list, found end of input")
		case t.is("default"):
			chosen, chosenAt = last, t.start
		case t.kind == wordToken && !t.is("as"):
			last = use{t.text, t.start}
		case t.kind == textToken && strings.Trim(string(p.data[t.start:p.at]), `"'`) == "default":
			chosen, chosenAt = last, t.start
		}
		if t.is("}") {
			break
		}
		before = t
	}
	from, err := p.peek(token{kind: wordToken})
	switch {
	case err != nil:
		return err
	case from.is("from"):
		if chosenAt >= 0 {
			return p.elsewhere(chosenAt)
		}
		p.at = from.start + len("from")
		if _, err := p.next(token{kind: wordToken}); err != nil {
			return err
		}
		return p.attributes()
	case chosenAt >= 0:
		if err := p.once(chosenAt); err != nil {
			return err
		}
		p.modern, p.reexported = true, chosen
	}
	return p.end("the list")
}

// once refuses a second export default.
func (p *js) once(offset int) *SyntaxError {
	if p.modern {
		return p.fail(offset, "the module exports its configuration twice, first at %v", p.locate.pos(p.wholePos))
	}
	p.wholePos = offset
	return nil
}

func (p *js) exportDefault(start int) *SyntaxError {
	t, err := p.peek(token{})
	if err != nil {
		return err
	}
	if t.is("interface") {
		p.at = t.start
		return p.typeStatement(t)
	}
	if err := p.once(start); err != nil {
		return err
	}
	if t.is("function", "class", "abstract", "@") || t.is("async") &&
		strings.HasPrefix(strings.TrimSpace(string(p.data[t.start+5:min(len(p.data), t.start+60)])), "function") {
		p.at = t.start
		if err := p.functionStatement(); err != nil {
			return err
		}
		p.modern, p.whole = true, p.codeFrom(t.start)
		return nil
	}
	return p.exportWhole(start)
}

func (p *js) exportWhole(start int) *SyntaxError {
	if p.modern {
		return p.once(start)
	}
	v, _, err := p.configuration()
	if err != nil {
		return err
	}
	p.modern, p.whole, p.wholePos = true, &v, start
	return p.end("the value")
}

// configuration reads a value that may be given to an imported function, which is taken to return it as it is.
func (p *js) configuration() (v Value, call bool, err *SyntaxError) {
	if err := p.space(); err != nil {
		return Value{}, false, err
	}
	if v, ok, err := p.argument(); err != nil || ok {
		return v, true, err
	}
	start, mark := p.at, p.mark()
	if name := p.identifier(); name != "" {
		if b, known := p.bindings[name]; known && b.call {
			t, err := p.peek(token{kind: wordToken})
			if err != nil {
				return Value{}, false, err
			}
			if !t.continues() {
				p.used = append(p.used, name)
				return b.value, true, p.typed()
			}
		}
	}
	p.reset(mark)
	p.at = start
	v, err = p.expression(true)
	return v, false, err
}

// argument reads name(value), where the name was imported; false, and nothing passed, when it is anything else.
func (p *js) argument() (Value, bool, *SyntaxError) {
	mark := p.mark()
	name := p.identifier()
	t, err := p.peek(token{kind: wordToken})
	if err != nil {
		return Value{}, false, err
	}
	if !p.imported[name] || !t.is("(", "<") {
		p.reset(mark)
		return Value{}, false, nil
	}
	p.at = t.start
	if t.is("<") {
		if err := p.typeArguments(); err != nil {
			return Value{}, false, err
		}
		if err := p.space(); err != nil {
			return Value{}, false, err
		}
	}
	if p.ended() || p.data[p.at] != '(' {
		p.reset(mark)
		return Value{}, false, nil
	}
	if err := p.enter(')'); err != nil {
		return Value{}, false, err
	}
	if !p.ended() && p.data[p.at] == ')' || p.spread() {
		p.reset(mark)
		return Value{}, false, nil
	}
	v, err := p.expression(false)
	if err != nil {
		return Value{}, false, err
	}
	if err := p.separator(')', "the argument"); err != nil {
		return Value{}, false, err
	}
	if p.ended() || p.data[p.at] != ')' || v.Kind == Code {
		p.reset(mark)
		return Value{}, false, nil
	}
	p.leave()
	if err := p.typed(); err != nil {
		return Value{}, false, err
	}
	if t, err = p.peek(token{kind: signToken, text: ")"}); err != nil {
		return Value{}, false, err
	}
	if t.continues() {
		p.reset(mark)
		return Value{}, false, nil
	}
	return v, true, nil
}
