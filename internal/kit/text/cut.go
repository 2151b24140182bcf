package text

import (
	"strings"
	"unicode/utf8"
)

// OneLine returns s on one line, fit to print, with at most that many bytes.
func OneLine(s string, most int) string {
	s, _ = Clean(s)
	return Cut(strings.Join(strings.Fields(s), " "), most)
}

// Fenced returns a text between fences of Markdown that are longer than any in it. language may be empty.
func Fenced(language, s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(s, "\n") + "\n" + fence
}

// Cut returns the beginning of s, at most that many bytes, with … for an omission.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
