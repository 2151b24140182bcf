// Package gitconfig reads the configuration of git, a text, by git's syntax.
package gitconfig

import (
	"iter"
	"strings"
)

// Settings returns the settings of a configuration in their order: keys with the section before a dot, in lower case
// but for the name in quotes, and values without quotes, escapes and comments. A key without a value has "". Before
// version 2.45 git made a blank of each tab in a value: a setting with one is there twice, in both forms.
//
// It reads what git reads. Git refuses the whole file if it cannot read a line, and Settings continues with the next.
func Settings(text string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		c := configuration{strings.ReplaceAll(strings.TrimPrefix(text, byteOrderMark), "\r\n", "\n")}
		section := ""
		for c.left != "" {
			switch first := c.left[0]; {
			case strings.IndexByte(spaces, first) >= 0:
				c.left = c.left[1:]
			case first == '[':
				section = c.section()
			case isLetter(first):
				key, value, ok := c.setting()
				if ok && !yield(section+"."+key, value.kept) {
					return
				}
				if value.blanks != value.kept && !yield(section+"."+key, value.blanks) {
					return
				}
			default: // a comment, or something that git does not accept
				c.skipLine()
			}
		}
	}
}

const (
	byteOrderMark = "\uFEFF" // git skips it at the beginning
	spaces        = " \t\r\n"
)

// configuration is the text of a configuration that is not read yet.
type configuration struct{ left string }

func (c *configuration) skipLine() { _, c.left, _ = strings.Cut(c.left, "\n") }

// take removes the characters at the beginning for which is returns true, and returns them.
func (c *configuration) take(is func(b byte) bool) string {
	n := 0
	for n < len(c.left) && is(c.left[n]) {
		n++
	}
	taken := c.left[:n]
	c.left = c.left[n:]
	return taken
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

func isKey(b byte) bool { return isLetter(b) || '0' <= b && b <= '9' || b == '-' }

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\r' }

// section reads a header, and returns the name of the section. Settings may follow on its line.
func (c *configuration) section() string {
	c.left = c.left[1:]
	name := strings.ToLower(c.take(func(b byte) bool { return isKey(b) || b == '.' }))
	if c.take(isBlank) != "" && strings.HasPrefix(c.left, `"`) {
		quoted := strings.Builder{}
		for c.left = c.left[1:]; c.left != "" && c.left[0] != '"' && c.left[0] != '\n'; c.left = c.left[1:] {
			if c.left[0] == '\\' && len(c.left) > 1 && c.left[1] != '\n' {
				c.left = c.left[1:]
			}
			quoted.WriteByte(c.left[0])
		}
		name += "." + untilNUL(quoted.String())
		c.left = strings.TrimPrefix(c.left, `"`)
	}
	if rest, ended := strings.CutPrefix(c.left, "]"); ended {
		c.left = rest
		return name
	}
	c.skipLine()
	return ""
}

// setting reads a key and its value.
func (c *configuration) setting() (key string, value forms, ok bool) {
	key = strings.ToLower(c.take(isKey))
	c.take(isBlank)
	if c.left == "" || c.left[0] == '\n' {
		return key, forms{}, true
	}
	rest, ok := strings.CutPrefix(c.left, "=")
	if !ok {
		c.skipLine()
		return "", forms{}, false
	}
	c.left = rest
	return key, c.value(), true
}

// forms are a value with its blanks as they are, and with a space for each.
type forms struct{ kept, blanks string }

// untilNUL returns the text that git sees: in its language a text ends at a NUL.
func untilNUL(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// value reads a value with its lines: a backslash at the end of one, but not in a comment, continues it.
func (c *configuration) value() forms {
	var kept, spaced strings.Builder
	quoted, blanks := false, "" // those that count if something follows
	add := func(text string) {
		kept.WriteString(blanks + text)
		spaced.WriteString(strings.Repeat(" ", len(blanks)) + text)
		blanks = ""
	}
	result := func() forms { return forms{untilNUL(kept.String()), untilNUL(spaced.String())} }
	for c.left != "" {
		first := c.left[0]
		c.left = c.left[1:]
		switch {
		case first == '\n':
			return result()
		case !quoted && (first == '#' || first == ';'):
			c.skipLine()
			return result()
		case !quoted && isBlank(first):
			if kept.Len() > 0 {
				blanks += string(first)
			}
		case first == '"':
			quoted = !quoted
			add("")
		case first == '\\' && c.left != "":
			add("") // the blanks before it count, even if the line ends here
			escaped := c.left[:1]
			if c.left = c.left[1:]; escaped != "\n" {
				add(strings.NewReplacer("n", "\n", "t", "\t", "b", "\b").Replace(escaped))
			}
		default:
			add(string([]byte{first}))
		}
	}
	return result()
}
