package literal

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ParseJS reads the one literal that a JavaScript or TypeScript module exports, without running the module: the value
// of export default, of export =, or of module.exports. The literal may be in parentheses, be the argument of
// defineConfig, and be followed by a type (as const, satisfies Config). It skips imports and require before it.
//
// It refuses everything else, because names and calls have a value only when run. undefined reads as Null. The error is
// a *SyntaxError.
func ParseJS(data []byte) (v Value, err error) {
	defer catch(&v, &err)
	p := &js{json5{data: data, locate: newLocator(data), script: true}}
	return p.module(), nil
}

// js is a module; its values are those of json5 with script set.
type js struct{ json5 }

func (p *js) module() Value {
	if strings.HasPrefix(strings.TrimPrefix(string(p.data[:min(len(p.data), 5)]), byteOrderMark), "#!") {
		p.lineComment()
	}
	for {
		p.space()
		start := p.at
		if p.ended() {
			panic(p.fail(start, "expected export default {…} or module.exports = {…}, found end of input"))
		}
		switch {
		case p.skip("'use strict'"), p.skip(`"use strict"`):
			p.statementEnd()
		case p.skip("import"):
			p.importStatement()
		case p.skip("const"), p.skip("let"), p.skip("var"):
			p.requireStatement(start)
		case p.skip("export", "default"), p.skip("export", "="), p.skip("module", ".", "exports", "="):
			return p.exported()
		default:
			panic(p.code(start))
		}
	}
}

// skip skips the tokens if they all come next. A word must end where the token does.
func (p *js) skip(tokens ...string) bool {
	start := p.at
	for _, token := range tokens {
		p.space()
		if !strings.HasPrefix(string(p.data[p.at:min(len(p.data), p.at+len(token))]), token) {
			p.at = start
			return false
		}
		p.at += len(token)
		if wordByte(token[len(token)-1]) && !p.ended() && wordByte(p.data[p.at]) {
			p.at = start
			return false
		}
	}
	return true
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf
}

// importStatement skips the names between import and the quoted name of a module.
func (p *js) importStatement() {
	for {
		p.space()
		switch {
		case p.skip("="), p.skip("*"), p.skip("{"), p.skip("}"), p.skip(","):
		case p.skip("require", "("):
			p.requireEnd()
			return
		case p.ended():
			panic(p.fail(p.at, "expected the name of a module in quotes, found end of input"))
		case p.data[p.at] == '"' || p.data[p.at] == '\'':
			p.moduleName()
			return
		case p.identifier() == "":
			panic(p.fail(p.at, "expected the name of a module in quotes, found %s", found(p.data, p.at)))
		}
	}
}

// moduleName skips the name, the attributes behind it and the end of the statement.
func (p *js) moduleName() {
	p.text()
	if p.skip("with") {
		p.space()
		p.value()
	}
	p.statementEnd()
}

// requireStatement skips const {name} = require("…"); any other declaration is code.
func (p *js) requireStatement(start int) {
	for !p.skip("=", "require", "(") {
		p.space()
		if !p.skip("{") && !p.skip("}") && !p.skip(",") && !p.skip(":") && p.identifier() == "" {
			panic(p.code(start))
		}
	}
	p.requireEnd()
}

func (p *js) requireEnd() {
	p.space()
	if p.ended() || p.data[p.at] != '"' && p.data[p.at] != '\'' {
		panic(p.fail(p.at, "expected the name of a module in quotes, found %s", found(p.data, p.at)))
	}
	p.text()
	p.expect(")", "the name of the module")
	p.statementEnd()
}

// expect skips the token.
func (p *js) expect(token, after string) {
	if !p.skip(token) {
		p.space()
		panic(p.fail(p.at, "expected '%s' after %s, found %s", token, after, found(p.data, p.at)))
	}
}

// exported reads the value and requires that the module ends after it.
func (p *js) exported() Value {
	p.space()
	call := p.skip("defineConfig")
	if call {
		if p.skip("<") {
			p.typeArguments()
		}
		p.expect("(", "defineConfig")
		p.space()
	}
	v := p.value()
	if call {
		p.skip(",")
		p.expect(")", "the value")
		p.typed()
	}
	p.skip(";")
	p.space()
	if !p.ended() {
		panic(p.fail(p.at, "expected nothing after the exported value, found %s", found(p.data, p.at)))
	}
	return v
}

// statementEnd skips a semicolon, or requires a new line or the end.
func (p *js) statementEnd() {
	before := p.at
	if p.skip(";") {
		return
	}
	p.space()
	if p.ended() || strings.ContainsAny(string(p.data[before:p.at]), "\r\n\u2028\u2029") {
		return
	}
	panic(p.fail(p.at, "expected ';' or the end of the line, found %s", found(p.data, p.at)))
}

// code returns the error for a text that would have to be run.
func (p *json5) code(start int) *SyntaxError {
	if r, _ := utf8.DecodeRune(p.data[start:]); r < 0x20 || r == utf8.RuneError {
		return p.fail(start, "expected JavaScript, found %s", found(p.data, start))
	}
	line := strings.ToValidUTF8(string(p.data[start:min(len(p.data), start+400)]), "\uFFFD")
	if end := strings.IndexAny(line, "\r\n\u2028\u2029"); end >= 0 {
		line = line[:end]
	}
	why := "configuration is read without running it"
	if p.call {
		why = "the arguments of a call are literals"
	}
	return p.fail(start, "this is code, not a literal (%s); %s", shorten(strings.TrimSpace(line)), why)
}

// scriptValue reads what JavaScript has beyond JSON5: templates, parentheses and undefined.
func (p *json5) scriptValue() (v Value) {
	start := p.at
	switch p.data[start] {
	case '`':
		v.Kind = String
		v.Str = p.template()
		return v
	case '(':
		p.enter(')')
		v = p.value()
		p.space()
		if p.ended() || p.data[p.at] != ')' {
			panic(p.fail(p.at, "expected ')' after the value, found %s", found(p.data, p.at)))
		}
		p.leave()
		return v
	}
	switch p.identifier() {
	case "true", "false", "null":
		p.at = start
		return p.word()
	case "undefined":
		return v
	}
	if strings.IndexByte(",;:)]}", p.data[start]) >= 0 {
		panic(p.fail(start, "expected a value, found %s", found(p.data, start)))
	}
	panic(p.code(start))
}

// template reads a string in backquotes that has no ${…}.
func (p *json5) template() string {
	start := p.at
	var out []byte
	for p.at++; !p.ended(); {
		switch c := p.data[p.at]; {
		case c == '`':
			p.at++
			return string(out)
		case c == '$' && p.at+1 < len(p.data) && p.data[p.at+1] == '{':
			panic(p.code(start))
		case c == '\\':
			out = p.escape(out)
		case c == '\r':
			out = append(out, '\n')
			if p.at++; !p.ended() && p.data[p.at] == '\n' {
				p.at++
			}
		default:
			r, size := utf8.DecodeRune(p.data[p.at:])
			if r == utf8.RuneError && size == 1 {
				panic(p.fail(p.at, "byte 0x%02X is not UTF-8", c))
			}
			out = append(out, p.data[p.at:p.at+size]...)
			p.at += size
		}
	}
	panic(p.fail(p.at, "expected ` to close the template of %v, found end of input", p.locate.pos(start)))
}

// typed skips as T and satisfies T after a value.
func (p *json5) typed() {
	for {
		before := p.at
		p.space()
		if word := p.identifier(); word != "as" && word != "satisfies" {
			p.at = before
			return
		}
		p.typ()
	}
}

// typ skips a type: a name with members, arguments and brackets, as in a.B<C, D[]>.
func (p *json5) typ() {
	for {
		p.space()
		if p.identifier() == "" {
			panic(p.fail(p.at, "expected the name of a type, found %s", found(p.data, p.at)))
		}
		if p.ended() || p.data[p.at] != '.' {
			break
		}
		p.at++
	}
	if !p.ended() && p.data[p.at] == '<' {
		p.at++
		p.typeArguments()
	}
	for p.at+1 < len(p.data) && p.data[p.at] == '[' && p.data[p.at+1] == ']' {
		p.at += 2
	}
}

// typeArguments skips the types after '<' and the '>'.
func (p *json5) typeArguments() {
	if len(p.open) >= maxDepth {
		panic(p.fail(p.at, "nested deeper than %d levels", maxDepth))
	}
	p.open = append(p.open, '>')
	for {
		p.typ()
		p.space()
		switch {
		case !p.ended() && p.data[p.at] == ',':
			p.at++
		case !p.ended() && p.data[p.at] == '>':
			p.leave()
			return
		default:
			panic(p.fail(p.at, "expected ',' or '>' after a type, found %s", found(p.data, p.at)))
		}
	}
}

// inherits refuses the key __proto__, which in JavaScript is not a member.
func (p *json5) inherits(m Member) {
	if p.script && m.Key == "__proto__" {
		panic(&SyntaxError{Pos: m.KeyPos, Message: fmt.Sprintf("the key %s cannot be configured", m.Key)})
	}
}
