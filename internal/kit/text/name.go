package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The two joiners occur in file names of several languages, and are harmless.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// Name returns a file name made safe for one line, since a file name may contain anything. Whatever would break the
// line, move a cursor or change the direction of writing is written out, as \n, \x1b or \u202e, and so are invalid
// bytes. Other names are returned unchanged.
func Name(name string) string {
	if !strings.ContainsFunc(name, isOdd) {
		return name
	}
	var b strings.Builder
	for rest := name; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		switch piece := rest[:size]; {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, piece[0])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case !isOdd(r), r == utf8.RuneError:
			b.WriteString(piece)
		case r <= 0xff:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		rest = rest[size:]
	}
	return b.String()
}

// Visible writes out, in a text of several lines, everything that Name would, except newlines and tabs. It is for texts
// that a person decides about, such as a command: Clean would remove what a shell runs all the same.
func Visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && isOdd(r) }) {
		return s
	}
	var b strings.Builder
	for {
		i := strings.IndexAny(s, "\n\t")
		if i < 0 {
			b.WriteString(Name(s))
			return b.String()
		}
		b.WriteString(Name(s[:i]))
		b.WriteByte(s[i])
		s = s[i+1:]
	}
}

// isOdd reports whether a character must be written out. U+FFFD may stand for an invalid byte.
func isOdd(r rune) bool {
	return r == utf8.RuneError || !unicode.IsGraphic(r) && r != zeroWidthJoiner && r != zeroWidthNonJoiner
}
