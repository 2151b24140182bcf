package ignore

import (
	"slices"
	"strings"
	"unicode"
)

// class is a set of characters in brackets.
type class struct {
	negated bool
	ranges  []span
	named   []func(rune) bool
}

type span struct{ low, high rune }

// has reports whether a character is in the class. With fold, its other cases count too.
func (c *class) has(r rune, fold bool) bool {
	found := c.lists(r)
	for other := unicode.SimpleFold(r); fold && other != r; other = unicode.SimpleFold(other) {
		found = found || c.lists(other)
	}
	return found != c.negated
}

func (c *class) lists(r rune) bool {
	return slices.ContainsFunc(c.ranges, func(s span) bool { return s.low <= r && r <= s.high }) ||
		slices.ContainsFunc(c.named, func(is func(rune) bool) bool { return is(r) })
}

// parseClass parses the class at the beginning of s. It returns nil if no class ends there.
func parseClass(s string, style Style) (*class, int) {
	c := &class{}
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		c.negated = true
		i++
	}
	next := func() (rune, bool) { // one character, perhaps after a backslash
		if i < len(s) && s[i] == '\\' {
			i++
		}
		if i >= len(s) {
			return 0, false
		}
		r, n := style.first(s[i:])
		i += n
		return r, true
	}
	previous, open := rune(0), false // open: previous may begin a range
	for start := i; ; {
		switch {
		case i >= len(s):
			return nil, 0
		case s[i] == ']' && i > start:
			return c, i + 1
		case s[i] == '-' && open && i+1 < len(s) && s[i+1] != ']':
			i++
			high, ok := next()
			if !ok {
				return nil, 0
			}
			c.ranges = append(c.ranges, span{previous, high})
			open = false
			continue
		case strings.HasPrefix(s[i:], "[:"):
			name, length, ok := className(s[i:])
			if ok && name == nil {
				return nil, 0 // an unknown class name
			}
			if ok {
				c.named = append(c.named, name)
				i += length
				open = false
				continue
			}
		}
		r, ok := next()
		if !ok {
			return nil, 0
		}
		c.ranges = append(c.ranges, span{r, r})
		previous, open = r, true
	}
}

// className parses [:name:]. ok is false if there is no such form, and is is nil if the name is unknown.
func className(s string) (is func(rune) bool, length int, ok bool) {
	end := strings.IndexByte(s[2:], ']')
	if end < 1 || s[2+end-1] != ':' {
		return nil, 0, false
	}
	return named(s[2 : 2+end-1]), 2 + end + 1, true
}

func named(name string) func(rune) bool {
	in := func(low, high rune) func(rune) bool { return func(r rune) bool { return low <= r && r <= high } }
	lower, upper, digit, graph := in('a', 'z'), in('A', 'Z'), in('0', '9'), in('!', '~')
	alnum := func(r rune) bool { return lower(r) || upper(r) || digit(r) }
	switch name {
	case "lower":
		return lower
	case "upper":
		return upper
	case "digit":
		return digit
	case "alpha":
		return func(r rune) bool { return lower(r) || upper(r) }
	case "alnum":
		return alnum
	case "xdigit":
		return func(r rune) bool { return digit(r) || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F' }
	case "graph":
		return graph
	case "print":
		return in(' ', '~')
	case "punct":
		return func(r rune) bool { return graph(r) && !alnum(r) }
	case "cntrl":
		return func(r rune) bool { return r < ' ' || r == 0x7f }
	case "blank":
		return func(r rune) bool { return r == ' ' || r == '\t' }
	case "space":
		return func(r rune) bool { return r == ' ' || '\t' <= r && r <= '\r' }
	}
	return nil
}
