// Package gitconfig reads the configuration of git, a text, by git's syntax.
package gitconfig

import (
	"iter"
	"strings"
)

// Settings returns the settings of a configuration in their order: keys with the section before a dot, in lower case
// but for the name in quotes, and values without quotes, escapes and comments. A key without a value has "".
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
				if ok && !yield(section+"."+key, value) {
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
		name += "." + quoted.String()
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
func (c *configuration) setting() (key, value string, ok bool) {
	key = strings.ToLower(c.take(isKey))
	c.take(isBlank)
	if c.left == "" || c.left[0] == '\n' {
		return key, "", true
	}
	rest, ok := strings.CutPrefix(c.left, "=")
	if !ok {
		c.skipLine()
		return "", "", false
	}
	c.left = rest
	return key, c.value(), true
}

// value reads a value with its lines: a backslash at the end of one, but not in a comment, continues it.
func (c *configuration) value() string {
	var b strings.Builder
	quoted, blanks := false, "" // those that count if something follows
	add := func(text string) {
		b.WriteString(blanks + text)
		blanks = ""
	}
	for c.left != "" {
		first := c.left[0]
		c.left = c.left[1:]
		switch {
		case first == '\n':
			return b.String()
		case !quoted && (first == '#' || first == ';'):
			c.skipLine()
			return b.String()
		case !quoted && isBlank(first):
			if b.Len() > 0 {
				blanks += string(first)
			}
		case first == '"':
			quoted = !quoted
			add("")
		case first == '\\' && c.left != "":
			escaped := c.left[:1]
			if c.left = c.left[1:]; escaped != "\n" {
				add(strings.NewReplacer("n", "\n", "t", "\t", "b", "\b").Replace(escaped))
			}
		default:
			add(string([]byte{first}))
		}
	}
	return b.String()
}
