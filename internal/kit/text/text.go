// Package text makes untrusted strings fit to print.
//
// Clean promises that no byte of its result can move a cursor, change a colour, set a title or break a line of JSON:
// escape sequences, control characters and carriage returns are removed, invalid bytes become U+FFFD. Name and Visible
// promise the same but remove nothing: they write it out. Every input has a clean form.
package text

import (
	"strings"
	"unicode/utf8"
)

// Clean removes terminal sequences and replaces invalid bytes. It returns how many characters it replaced, not counting
// removals. A clean string is returned unchanged.
func Clean(s string) (clean string, replaced int) {
	if isClean(s) {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size <= 1, r == 0:
			b.WriteRune(utf8.RuneError)
			replaced++
			i += size
		case r == esc || r == csi8 || r == osc8 || r == dcs8:
			i += sequence(s[i:], r, size)
		case r == '\n' || r == '\t':
			b.WriteRune(r)
			i += size
		case isControl(r):
			i += size
		default:
			b.WriteString(s[i : i+size])
			i += size
		}
	}
	return b.String(), replaced
}

const (
	esc  = 0x1b
	csi8 = 0x9b // the one-rune forms of ESC [, ESC ] and ESC P
	osc8 = 0x9d
	dcs8 = 0x90
)

// Flat returns s cleaned and in one line, however long.
func Flat(s string) string {
	s, _ = Clean(s)
	return strings.Join(strings.Fields(s), " ")
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

func isClean(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x7f || c < 0x20 && c != '\n' && c != '\t' {
			return isCleanRunes(s[i:])
		}
	}
	return true
}

func isCleanRunes(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if isControl(r) && r != '\n' && r != '\t' {
			return false
		}
	}
	return true
}

// sequence returns the length of the escape sequence that s begins with. Of one that never ends it is only the
// introducer: a stray ESC must not swallow the rest of a text.
func sequence(s string, first rune, size int) int {
	i, kind := size, first
	if first == esc {
		if i >= len(s) {
			return i
		}
		switch s[i] {
		case '[':
			kind = csi8
		case ']':
			kind = osc8
		case 'P', 'X', '^', '_':
			kind = dcs8
		default:
			for i < len(s) && s[i] >= 0x20 && s[i] <= 0x2f { // ESC ( B and the like
				i++
			}
			if i < len(s) && s[i] >= 0x30 && s[i] <= 0x7e {
				return i + 1
			}
			return size
		}
		i++
	}
	if kind == csi8 {
		for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
			i++
		}
		if i < len(s) && s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		return i
	}
	return terminated(s, i)
}

// terminated finds the end of a string sequence: BEL, ESC \ or the one-rune terminator.
func terminated(s string, from int) int {
	for i := from; i < len(s); i++ {
		switch {
		case s[i] == 0x07:
			return i + 1
		case s[i] == esc && i+1 < len(s) && s[i+1] == '\\':
			return i + 2
		case strings.HasPrefix(s[i:], "\u009c"):
			return i + 2
		}
	}
	return from // it never ends: a stray introducer must not swallow the rest
}
