package text

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The longest runs of blanks and of empty lines that are shown as they are. Longer ones could pass for the end.
const (
	mostIndent = 40
	mostBlanks = 8
	mostEmpty  = 1
)

// ForDecision returns a text of several lines for a person who decides about it: what cannot be seen is written out,
// and runs of blanks and of empty lines, which could push the rest out of sight, are shown as their number.
func ForDecision(s string) string {
	var lines []string
	empty := 0
	flush := func() {
		if empty > mostEmpty {
			lines = append(lines, fmt.Sprintf("⟨%d empty lines⟩", empty))
		} else if empty > 0 {
			lines = append(lines, "")
		}
		empty = 0
	}
	for line := range strings.SplitSeq(Visible(s), "\n") {
		if strings.Trim(line, " \t") == "" {
			empty++
			continue
		}
		flush()
		lines = append(lines, counted(line))
	}
	if empty > mostEmpty {
		flush()
	}
	return strings.Join(lines, "\n")
}

// counted writes out what is unseen in a line, and counts its blanks.
func counted(line string) string {
	var b strings.Builder
	for rest := line; rest != ""; {
		seen := rest
		if i := strings.IndexFunc(rest, unseen); i >= 0 {
			seen = rest[:i]
		}
		rest = rest[len(seen):]
		run := rest[:len(rest)-len(strings.TrimLeftFunc(rest, unseen))]
		rest = rest[len(run):]
		b.WriteString(seen)
		if n := utf8.RuneCountInString(run); n > mostBlanks {
			fmt.Fprintf(&b, "⟨%d characters that cannot be seen⟩", n)
			continue
		}
		for _, r := range run {
			if r > 0xffff {
				fmt.Fprintf(&b, `\U%08x`, r)
			} else {
				fmt.Fprintf(&b, `\u%04x`, r)
			}
		}
	}
	line = b.String()
	rest := strings.TrimLeft(line, " \t")
	indent := line[:len(line)-len(rest)]
	if len(indent) > mostIndent {
		indent = blanks(len(indent))
	}
	return indent + regexp.MustCompile(fmt.Sprintf(`[ \t]{%d,}`, mostBlanks+1)).ReplaceAllStringFunc(rest,
		func(run string) string { return blanks(len(run)) })
}

func blanks(n int) string { return fmt.Sprintf("⟨%d blanks⟩", n) }

// unseen reports whether a character is invisible or looks like a blank.
func unseen(r rune) bool {
	return r > unicode.MaxASCII && (unicode.IsSpace(r) || r == '\u2800' ||
		unicode.In(r, unicode.Cf, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}
