package literal

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHexDigit(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func (p *json5) number() string {
	start := p.at
	if c := p.data[p.at]; c == '+' || c == '-' {
		p.at++
	}
	if name := p.identifier(); name == "Infinity" || name == "NaN" {
		panic(p.fail(start, "%s has no form in JSON", string(p.data[start:p.at])))
	} else if name != "" {
		panic(p.fail(start, "expected a number, found %s", shorten(string(p.data[start:p.at]))))
	}
	if p.at+1 < len(p.data) && p.data[p.at] == '0' && p.data[p.at+1]|0x20 == 'x' {
		p.hexadecimal(start)
	} else {
		p.decimal()
	}
	end := p.at
	if p.identifier() != "" || !p.ended() && (p.data[p.at] == '.' || isDigit(p.data[p.at])) {
		panic(p.fail(end, "expected the end of the number, found %s", found(p.data, end)))
	}
	return string(p.data[start:end])
}

func (p *json5) hexadecimal(start int) {
	p.at += 2
	if p.digits(isHexDigit) == 0 {
		panic(p.fail(p.at, "expected a hexadecimal digit, found %s", found(p.data, p.at)))
	}
	if _, err := strconv.ParseInt(string(p.data[start:p.at]), 0, 64); err != nil {
		panic(p.fail(start, "the number does not fit in 64 bits"))
	}
}

func (p *json5) decimal() {
	whole := p.at
	count := p.digits(isDigit)
	if count > 1 && p.data[whole] == '0' {
		panic(p.fail(whole, "a number must not begin with 0"))
	}
	if !p.ended() && p.data[p.at] == '.' {
		p.at++
		count += p.digits(isDigit)
	}
	if count == 0 {
		panic(p.fail(p.at, "expected a digit, found %s", found(p.data, p.at)))
	}
	if p.ended() || p.data[p.at]|0x20 != 'e' {
		return
	}
	p.at++
	if !p.ended() && (p.data[p.at] == '+' || p.data[p.at] == '-') {
		p.at++
	}
	if p.digits(isDigit) == 0 {
		panic(p.fail(p.at, "expected a digit of the exponent, found %s", found(p.data, p.at)))
	}
}

// digits returns the number of digits that it skips.
func (p *json5) digits(is func(byte) bool) int {
	start := p.at
	for !p.ended() && is(p.data[p.at]) {
		p.at++
	}
	return p.at - start
}

// text reads a string in either kind of quotes.
func (p *json5) text() string {
	quote := p.data[p.at]
	p.at++
	var out []byte
	for {
		if p.ended() {
			panic(p.failWith(string(quote), p.at, "expected %c to close the string, found end of input", quote))
		}
		r, size := utf8.DecodeRune(p.data[p.at:])
		switch {
		case r == rune(quote):
			p.at++
			return string(out)
		case r == '\\':
			out = p.escape(out)
		case r == '\n' || r == '\r':
			panic(p.failWith(string(quote), p.at, "expected %c to close the string, found end of line", quote))
		case r == utf8.RuneError && size == 1:
			panic(p.fail(p.at, "byte 0x%02X is not UTF-8", p.data[p.at]))
		case r < 0x20 && r != '\t':
			panic(p.fail(p.at, "the control character %U must be written as an escape", r))
		default:
			out = append(out, p.data[p.at:p.at+size]...)
			p.at += size
		}
	}
}

func (p *json5) escape(out []byte) []byte {
	start := p.at
	p.at++
	if p.ended() {
		panic(p.fail(start, "expected a character after the backslash, found end of input"))
	}
	r, size := utf8.DecodeRune(p.data[p.at:])
	p.at += size
	switch r {
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'v':
		return append(out, '\v')
	case '\r':
		if !p.ended() && p.data[p.at] == '\n' {
			p.at++
		}
		return out
	case '\n', 0x2028, 0x2029:
		return out
	case 'x':
		return utf8.AppendRune(out, p.hexCode(start, 2))
	case 'u':
		return utf8.AppendRune(out, p.codePoint(start))
	}
	switch {
	case r == utf8.RuneError && size == 1:
		panic(p.fail(p.at-1, "byte 0x%02X is not UTF-8", p.data[p.at-1]))
	case r == '0' && (p.ended() || !isDigit(p.data[p.at])):
		return append(out, 0)
	case r >= '0' && r <= '9':
		panic(p.fail(start, `\%c is not an escape`, r))
	case r < 0x20:
		panic(p.fail(p.at-1, "the control character %U must be written as an escape", r))
	}
	return utf8.AppendRune(out, r) // any other character stands for itself, as in JavaScript
}

// codePoint reads what follows \u. Half of a surrogate pair becomes U+FFFD, as in encoding/json.
func (p *json5) codePoint(start int) rune {
	if p.script && !p.ended() && p.data[p.at] == '{' {
		return p.bracedCode(start)
	}
	high := p.hexCode(start, 4)
	if !utf16.IsSurrogate(high) {
		return high
	}
	second := p.at
	if p.at+1 < len(p.data) && p.data[p.at] == '\\' && p.data[p.at+1] == 'u' {
		p.at += 2
		low := p.hexCode(second, 4)
		if both := utf16.DecodeRune(high, low); both != utf8.RuneError {
			return both
		}
		p.at = second
	}
	return utf8.RuneError
}

// bracedCode reads what follows \u in \u{1F600}, which JSON5 does not have.
func (p *json5) bracedCode(start int) rune {
	p.at++
	begin := p.at
	p.digits(isHexDigit)
	code, err := strconv.ParseUint(string(p.data[begin:p.at]), 16, 32)
	if err != nil || code > utf8.MaxRune || p.ended() || p.data[p.at] != '}' {
		panic(p.fail(start, "the escape is not a character in hexadecimal digits, such as \\u{1F600}"))
	}
	p.at++
	return rune(code)
}

func (p *json5) hexCode(start, count int) rune {
	begin := p.at
	for range count {
		if p.ended() || !isHexDigit(p.data[p.at]) {
			panic(p.fail(start, "the escape needs %d hexadecimal digits, found %s", count, found(p.data, p.at)))
		}
		p.at++
	}
	code, _ := strconv.ParseUint(string(p.data[begin:p.at]), 16, 32) // the digits have just been checked
	return rune(code)
}
