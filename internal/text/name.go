package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The two joiners stand in the names of files of several languages, and move nothing.
const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// Name returns the name of a file made fit to stand in a line: whoever made the file chose it, and it may hold
// anything. What would break the line, move a cursor or turn the direction of writing is written out, as \n, \x1b or
// \u202e, and so is a byte that is no text. Other names are returned as they are.
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

// Visible returns a text of several lines in which everything that Name would write out is written out, but for the
// ends of lines and tabs. It is for what somebody decides about, such as a command: Clean would take away what a shell
// runs all the same.
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

// isOdd reports whether a character is not to be shown as it is. U+FFFD may be a byte that is no text.
func isOdd(r rune) bool {
	return r == utf8.RuneError || !unicode.IsGraphic(r) && r != zeroWidthJoiner && r != zeroWidthNonJoiner
}
