package ignore

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Style is the syntax of a pattern.
type Style int8

// The styles.
const (
	Bytes  Style = iota // like git: ? is one byte, and a pattern with an unclosed [ never matches
	Runes               // like a shell: ? is one character, and an unclosed [ is literal
	Folded              // the same, and case does not matter
)

// Pattern matches one name: * is any number of characters, ? one, [a-z] one of a class, and a backslash makes the next
// character literal. A name has no slash, so ** is *.
type Pattern struct {
	style Style
	plain bool // a literal with a star before it, after it, both or neither
	never bool
	ops   []op
}

type op struct {
	kind opKind
	text string // of a literal
	set  *class
}

type opKind int8

const (
	literal opKind = iota
	one
	star
	set
)

// Compile parses a pattern.
func Compile(pattern string, style Style) Pattern {
	p := Pattern{style: style}
	var text []byte
	flush := func() {
		if len(text) > 0 {
			p.ops = append(p.ops, op{kind: literal, text: string(text)})
			text = nil
		}
	}
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			flush()
			if n := len(p.ops); n == 0 || p.ops[n-1].kind != star {
				p.ops = append(p.ops, op{kind: star})
			}
		case '?':
			flush()
			p.ops = append(p.ops, op{kind: one})
		case '[':
			made, length := parseClass(pattern[i:], style)
			if made == nil {
				p.never = p.never || style == Bytes
				text = append(text, c)
				continue
			}
			flush()
			p.ops = append(p.ops, op{kind: set, set: made})
			i += length - 1
		case '\\':
			if i++; i == len(pattern) {
				p.never = p.never || style == Bytes
				text = append(text, c)
				continue
			}
			text = append(text, pattern[i])
		default:
			text = append(text, c)
		}
	}
	flush()
	p.plain = style != Folded && len(p.ops) <= 2 &&
		!slices.ContainsFunc(p.ops, func(o op) bool { return o.kind == one || o.kind == set })
	return p
}

// Literal returns the only name that matches, if there is only one.
func (p Pattern) Literal() (string, bool) {
	switch {
	case p.never:
	case len(p.ops) == 0:
		return "", true
	case len(p.ops) == 1 && p.ops[0].kind == literal:
		return p.ops[0].text, true
	}
	return "", false
}

// Dotted reports whether the pattern begins with a literal dot.
func (p Pattern) Dotted() bool {
	return len(p.ops) > 0 && p.ops[0].kind == literal && p.ops[0].text[0] == '.'
}

// Match reports whether the whole name matches.
func (p Pattern) Match(name string) bool {
	switch {
	case p.never:
		return false
	case !p.plain:
		return p.match(name)
	case len(p.ops) == 0:
		return name == ""
	case len(p.ops) == 1:
		return p.ops[0].kind == star || name == p.ops[0].text
	case p.ops[0].kind == star:
		return strings.HasSuffix(name, p.ops[1].text)
	default:
		return strings.HasPrefix(name, p.ops[0].text)
	}
}

// match gives each star as little as possible, and backtracks only to the last one.
func (p Pattern) match(name string) bool {
	i, at := 0, 0
	last, mark := -1, 0
	for {
		switch {
		case i < len(p.ops) && p.ops[i].kind == star:
			if i == len(p.ops)-1 {
				return true
			}
			last, mark = i, at
			i++
			continue
		case i < len(p.ops):
			if n := p.step(p.ops[i], name[at:]); n > 0 {
				at += n
				i++
				continue
			}
		case at == len(name):
			return true
		}
		if last < 0 || mark >= len(name) {
			return false
		}
		_, n := p.style.first(name[mark:])
		mark += n
		i, at = last+1, mark
	}
}

// step returns how much of the name an operation matches, or 0.
func (p Pattern) step(o op, name string) int {
	if o.kind == literal {
		return p.style.prefix(name, o.text)
	}
	if name == "" {
		return 0
	}
	r, n := p.style.first(name)
	if o.kind == set && !o.set.has(r, p.style == Folded) {
		return 0
	}
	return n
}

// prefix returns how much of the name a literal text matches, or 0.
func (s Style) prefix(name, text string) int {
	if s != Folded {
		if strings.HasPrefix(name, text) {
			return len(text)
		}
		return 0
	}
	at := 0
	for _, r := range text {
		_, n := utf8.DecodeRuneInString(name[at:]) // a letter and its other case may differ in length
		if !strings.EqualFold(name[at:at+n], string(r)) {
			return 0
		}
		at += n
	}
	return at
}

// first returns the first character of a text, and its length.
func (s Style) first(text string) (rune, int) {
	if s == Bytes {
		return rune(text[0]), 1
	}
	return utf8.DecodeRuneInString(text)
}

// Split splits a pattern of paths at its slashes. For git a class may contain one; for a shell a slash ends the class.
func Split(pattern string, style Style) []string {
	var parts []string
	begin := 0
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '/':
			parts = append(parts, pattern[begin:i])
			begin = i + 1
		case '[':
			if made, length := parseClass(pattern[i:], Bytes); made != nil && style == Bytes {
				i += length - 1
			}
		case '\\':
			if i++; i < len(pattern) && pattern[i] == '/' { // a slash has no special meaning to escape
				parts = append(parts, pattern[begin:i-1])
				begin = i + 1
			}
		}
	}
	return append(parts, pattern[begin:])
}
