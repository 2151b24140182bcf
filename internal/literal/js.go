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
func ParseJS(data []byte) (Value, error) {
	p := &js{json5{data: data, locate: newLocator(data), script: true}}
	v, err := p.module()
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

// js is a module; its values are those of json5 with script set.
type js struct{ json5 }

func (p *js) module() (Value, *SyntaxError) {
	if strings.HasPrefix(strings.TrimPrefix(string(p.data[:min(len(p.data), 5)]), byteOrderMark), "#!") {
		p.lineComment()
	}
	for {
		if err := p.space(); err != nil {
			return Value{}, err
		}
		start := p.at
		if p.ended() {
			return Value{}, p.fail(start, "expected export default {…} or module.exports = {…}, found end of input")
		}
		var err *SyntaxError
		switch {
		case p.skip("'use strict'"), p.skip(`"use strict"`):
			err = p.statementEnd()
		case p.skip("import"):
			err = p.importStatement()
		case p.skip("const"), p.skip("let"), p.skip("var"):
			err = p.requireStatement(start)
		case p.skip("export", "default"), p.skip("export", "="), p.skip("module", ".", "exports", "="):
			return p.exported()
		default:
			return Value{}, p.code(start)
		}
		if err != nil {
			return Value{}, err
		}
	}
}

// skip skips the tokens if they all come next. A word must end where the token does.
func (p *js) skip(tokens ...string) bool {
	start := p.at
	for _, token := range tokens {
		if p.space() != nil || !strings.HasPrefix(string(p.data[p.at:min(len(p.data), p.at+len(token))]), token) {
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
func (p *js) importStatement() *SyntaxError {
	for {
		if err := p.space(); err != nil {
			return err
		}
		switch {
		case p.skip("="), p.skip("*"), p.skip("{"), p.skip("}"), p.skip(","):
		case p.skip("require", "("):
			return p.requireEnd()
		case p.ended():
			return p.fail(p.at, "expected the name of a module in quotes, found end of input")
		case p.data[p.at] == '"' || p.data[p.at] == '\'':
			return p.moduleName()
		case p.identifier() == "":
			return p.fail(p.at, "expected the name of a module in quotes, found %s", found(p.data, p.at))
		}
	}
}

// moduleName skips the name, the attributes behind it and the end of the statement.
func (p *js) moduleName() *SyntaxError {
	if _, err := p.text(); err != nil {
		return err
	}
	if p.skip("with") {
		if err := p.space(); err != nil {
			return err
		}
		if _, err := p.value(); err != nil {
			return err
		}
	}
	return p.statementEnd()
}

// requireStatement skips const {name} = require("…"); any other declaration is code.
func (p *js) requireStatement(start int) *SyntaxError {
	for !p.skip("=", "require", "(") {
		if p.space() != nil || !p.skip("{") && !p.skip("}") && !p.skip(",") && !p.skip(":") && p.identifier() == "" {
			return p.code(start)
		}
	}
	return p.requireEnd()
}

func (p *js) requireEnd() *SyntaxError {
	if err := p.space(); err != nil {
		return err
	}
	if p.ended() || p.data[p.at] != '"' && p.data[p.at] != '\'' {
		return p.fail(p.at, "expected the name of a module in quotes, found %s", found(p.data, p.at))
	}
	if _, err := p.text(); err != nil {
		return err
	}
	if err := p.expect(")", "the name of the module"); err != nil {
		return err
	}
	return p.statementEnd()
}

// expect skips the token.
func (p *js) expect(token, after string) *SyntaxError {
	if !p.skip(token) {
		_ = p.space() // the next error reports a bad comment
		return p.fail(p.at, "expected '%s' after %s, found %s", token, after, found(p.data, p.at))
	}
	return nil
}

// exported reads the value and requires that the module ends after it.
func (p *js) exported() (Value, *SyntaxError) {
	if err := p.space(); err != nil {
		return Value{}, err
	}
	call := p.skip("defineConfig")
	if call {
		if p.skip("<") {
			if err := p.typeArguments(); err != nil {
				return Value{}, err
			}
		}
		if err := p.expect("(", "defineConfig"); err != nil {
			return Value{}, err
		}
		if err := p.space(); err != nil {
			return Value{}, err
		}
	}
	v, err := p.value()
	if err != nil {
		return Value{}, err
	}
	if call {
		p.skip(",")
		if err := p.expect(")", "the value"); err != nil {
			return Value{}, err
		}
		if err := p.typed(); err != nil {
			return Value{}, err
		}
	}
	p.skip(";")
	if err := p.space(); err != nil {
		return Value{}, err
	}
	if !p.ended() {
		return Value{}, p.fail(p.at, "expected nothing after the exported value, found %s", found(p.data, p.at))
	}
	return v, nil
}

// statementEnd skips a semicolon, or requires a new line or the end.
func (p *js) statementEnd() *SyntaxError {
	before := p.at
	if p.skip(";") {
		return nil
	}
	if err := p.space(); err != nil {
		return err
	}
	if p.ended() || strings.ContainsAny(string(p.data[before:p.at]), "\r\n\u2028\u2029") {
		return nil
	}
	return p.fail(p.at, "expected ';' or the end of the line, found %s", found(p.data, p.at))
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
	return p.fail(start, "this is code, not a literal (%s); configuration is read without running it",
		shorten(strings.TrimSpace(line)))
}

// scriptValue reads what JavaScript has beyond JSON5: templates, parentheses and undefined.
func (p *json5) scriptValue() (v Value, err *SyntaxError) {
	start := p.at
	switch p.data[start] {
	case '`':
		v.Kind = String
		v.Str, err = p.template()
		return v, err
	case '(':
		if err = p.enter(')'); err != nil {
			return Value{}, err
		}
		if v, err = p.value(); err != nil {
			return Value{}, err
		}
		if err = p.space(); err != nil {
			return Value{}, err
		}
		if p.ended() || p.data[p.at] != ')' {
			return Value{}, p.fail(p.at, "expected ')' after the value, found %s", found(p.data, p.at))
		}
		p.leave()
		return v, nil
	}
	switch p.identifier() {
	case "true", "false", "null":
		p.at = start
		return p.word()
	case "undefined":
		return v, nil
	}
	if strings.IndexByte(",;:)]}", p.data[start]) >= 0 {
		return Value{}, p.fail(start, "expected a value, found %s", found(p.data, start))
	}
	return Value{}, p.code(start)
}

// template reads a string in backquotes that has no ${…}.
func (p *json5) template() (string, *SyntaxError) {
	start := p.at
	var out []byte
	for p.at++; !p.ended(); {
		switch c := p.data[p.at]; {
		case c == '`':
			p.at++
			return string(out), nil
		case c == '$' && p.at+1 < len(p.data) && p.data[p.at+1] == '{':
			return "", p.code(start)
		case c == '\\':
			var err *SyntaxError
			if out, err = p.escape(out); err != nil {
				return "", err
			}
		case c == '\r':
			out = append(out, '\n')
			if p.at++; !p.ended() && p.data[p.at] == '\n' {
				p.at++
			}
		default:
			r, size := utf8.DecodeRune(p.data[p.at:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fail(p.at, "byte 0x%02X is not UTF-8", c)
			}
			out = append(out, p.data[p.at:p.at+size]...)
			p.at += size
		}
	}
	return "", p.fail(p.at, "expected ` to close the template of %v, found end of input", p.locate.pos(start))
}

// typed skips as T and satisfies T after a value.
func (p *json5) typed() *SyntaxError {
	for {
		before := p.at
		if err := p.space(); err != nil {
			return err
		}
		if word := p.identifier(); word != "as" && word != "satisfies" {
			p.at = before
			return nil
		}
		if err := p.typ(); err != nil {
			return err
		}
	}
}

// typ skips a type: a name with members, arguments and brackets, as in a.B<C, D[]>.
func (p *json5) typ() *SyntaxError {
	for {
		if err := p.space(); err != nil {
			return err
		}
		if p.identifier() == "" {
			return p.fail(p.at, "expected the name of a type, found %s", found(p.data, p.at))
		}
		if p.ended() || p.data[p.at] != '.' {
			break
		}
		p.at++
	}
	if !p.ended() && p.data[p.at] == '<' {
		p.at++
		if err := p.typeArguments(); err != nil {
			return err
		}
	}
	for p.at+1 < len(p.data) && p.data[p.at] == '[' && p.data[p.at+1] == ']' {
		p.at += 2
	}
	return nil
}

// typeArguments skips the types after '<' and the '>'.
func (p *json5) typeArguments() *SyntaxError {
	if len(p.open) >= maxDepth {
		return p.fail(p.at, "nested deeper than %d levels", maxDepth)
	}
	p.open = append(p.open, '>')
	for {
		if err := p.typ(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
		switch {
		case !p.ended() && p.data[p.at] == ',':
			p.at++
		case !p.ended() && p.data[p.at] == '>':
			p.leave()
			return nil
		default:
			return p.fail(p.at, "expected ',' or '>' after a type, found %s", found(p.data, p.at))
		}
	}
}

// inherits refuses the key __proto__, which in JavaScript is not a member.
func (p *json5) inherits(m Member) *SyntaxError {
	if p.script && m.Key == "__proto__" {
		return &SyntaxError{Pos: m.KeyPos, Message: fmt.Sprintf("the key %s cannot be configured", m.Key)}
	}
	return nil
}
