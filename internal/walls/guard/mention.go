package guard

import (
	"slices"
	"strings"
	"unicode"
)

// mentioned reports whether a word of a command contains the program of a deny or ask rule in a longer text, so that
// the command may run it: tar --to-command='rm x', gdb -ex 'shell rm x'.
func (r Rule) mentioned(p piece) bool {
	if p.shape != simple || p.runsKnown || len(r.tokens) == 0 || r.tokens[0].star || !p.argv[0].known {
		return false
	}
	name, argv := program(p.argv[0].text), p.argv
	switch {
	case name == "git":
		argv = withoutMessages(argv)
	case name == "sed" || name == "find" || name == "sort" || name == "rg":
	case onlyReads(name):
		return false
	}
	return slices.ContainsFunc(argv[1:], func(a word) bool {
		return strings.ContainsAny(a.text, " \t\n=!\"'(;|`$<>&{,\\") && r.inText(a.text)
	})
}

// named reports whether one of the values contains the words of the rule.
func (r Rule) named(values []string) bool {
	return len(r.tokens) > 0 && !r.tokens[0].star && slices.ContainsFunc(values, r.inText)
}

// inText reports whether a text contains the words of the rule, also in quotes: cu""rl, \curl.
func (r Rule) inText(text string) bool {
	bare := strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(text)
	for _, one := range slices.Compact([]string{text, bare}) {
		words := strings.FieldsFunc(strings.ToLower(one), func(c rune) bool {
			return c != '_' && c != '-' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		})
		if !slices.ContainsFunc(r.tokens, func(t token) bool {
			return !t.star && !slices.Contains(words, strings.ToLower(t.text))
		}) {
			return true
		}
	}
	return false
}

// withoutMessages drops the words of a git command that are texts for people: the values of flags such as -m and, for
// some subcommands, everything but flags.
func withoutMessages(argv []word) []word {
	sub, rest := gitVerb(texts(argv[1:]))
	people := slices.Contains([]string{
		"commit", "tag", "notes", "log", "grep", "add", "show", "blame", "diff", "status", "branch", "stash",
	}, sub)
	kept := slices.Clone(argv[:len(argv)-len(rest)])
	for i, a := range argv[len(kept):] {
		before := ""
		if i > 0 {
			before = rest[i-1]
		}
		flag := strings.HasPrefix(a.text, "-")
		switch {
		case people && !flag, messageFlag(before) && !strings.Contains(before, "="):
		case flag && messageFlag(a.text):
		default:
			kept = append(kept, a)
		}
	}
	return kept
}

// messageFlag reports whether the value of a flag of git is a text for people: -m, also as -am, or --grep.
func messageFlag(text string) bool {
	if strings.HasPrefix(text, "--") {
		return long([]string{text}, "--message", "--grep", "--author", "--committer", "--format", "--pretty", "--date",
			"--since", "--until", "--after", "--before", "--trailer", "--description")
	}
	letters := strings.TrimLeft(text, "-qavsnf")
	return strings.HasPrefix(text, "-") && letters != "" && strings.ContainsAny(letters[:1], "mSG")
}
