package markdown

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/term/cells"
)

// fence is a fenced block of code.
type fence struct {
	open bool
	mark string // what ends it, or more of the same
	language
}

// fenceOf returns the fence that a line opens.
func fenceOf(line string) (fence, bool) {
	rest := strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if !strings.HasPrefix(rest, strings.Repeat(c, 3)) {
			continue
		}
		info := strings.TrimLeft(rest, c)
		if c == "`" && strings.Contains(info, "`") {
			return fence{}, false // a span of code
		}
		name, _, _ := strings.Cut(strings.TrimSpace(info), " ")
		return fence{true, rest[:len(rest)-len(info)], languageOf(strings.ToLower(name))}, true
	}
	return fence{}, false
}

// ends reports whether a line ends the block.
func (f fence) ends(line string) bool {
	rest := strings.TrimSpace(line)
	return len(rest) >= len(f.mark) && strings.Trim(rest, f.mark[:1]) == ""
}

// code renders a line of a block.
func (r *Renderer) code(line string) {
	switch {
	case r.fence.ends(line):
		r.fence = fence{}
		r.print(r.faint(line))
	case !r.options.Styled:
		r.print(line)
	default:
		r.print(r.fence.highlight(line))
	}
}

// language is what is known of a programming language: enough to tell comments and strings from the rest.
type language struct {
	known    bool
	diff     bool
	comments []string // what a comment to the end of the line begins with
	quotes   string
}

func languageOf(name string) language {
	in := func(names string) bool { return slices.Contains(strings.Fields(names), name) }
	switch {
	case in("diff patch"):
		return language{known: true, diff: true}
	case in("go c h cpp c++ cc java js javascript ts typescript tsx jsx rust rs swift kotlin kt scala php cs csharp " +
		"dart zig proto json jsonc json5 css scss"):
		return language{true, false, []string{"//"}, "\"'`"}
	case in("python py ruby rb sh bash shell zsh fish console yaml yml toml ini perl pl r make makefile " +
		"dockerfile nix " +
		"elixir conf"):
		return language{true, false, []string{"#"}, `"'`}
	case in("sql lua haskell hs elm ada"):
		return language{true, false, []string{"--"}, `"'`}
	}
	return language{}
}

// highlight colours comments, strings and the lines of a diff.
func (l language) highlight(line string) string {
	switch {
	case l.diff && strings.HasPrefix(line, "+"):
		return cells.Green.Of(line)
	case l.diff && strings.HasPrefix(line, "-"):
		return cells.Red.Of(line)
	case l.diff && strings.HasPrefix(line, "@@"):
		return cells.Cyan.Of(line)
	case !l.known || l.diff:
		return line
	}
	var b strings.Builder
	plain := 0
	for i := 0; i < len(line); {
		if l.comment(line, i) {
			return b.String() + line[plain:i] + cells.Faint.Of(line[i:])
		}
		if strings.IndexByte(l.quotes, line[i]) < 0 || apostrophe(line, i) {
			i++
			continue
		}
		end := stringEnd(line, i)
		b.WriteString(line[plain:i] + cells.Green.Of(line[i:end]))
		i, plain = end, end
	}
	return b.String() + line[plain:]
}

// comment reports whether a comment begins at i. One that begins with # stands at the beginning or behind a space.
func (l language) comment(line string, i int) bool {
	for _, c := range l.comments {
		if strings.HasPrefix(line[i:], c) && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return true
		}
	}
	return false
}

// apostrophe reports whether the quote at i stands within a word, as in Rust's lifetimes and in English.
func apostrophe(line string, i int) bool {
	if line[i] != '\'' || i == 0 {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(line[:i])
	return unicode.IsLetter(before)
}

// stringEnd returns where the string that begins at i ends, at the latest with the line.
func stringEnd(line string, i int) int {
	quote := line[i]
	for j := i + 1; j < len(line); j++ {
		switch line[j] {
		case '\\':
			j++
		case quote:
			return j + 1
		}
	}
	return len(line)
}
