package guard

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// foreignText reports whether a command runs a text in a language that is not read here: python -c, perl -e, awk.
func foreignText(name string, argv []word) bool {
	args := texts(argv[1:])
	switch {
	case isShell(name):
		return false
	case isInterpreter(name):
		return short(args, "c", "e", "E", "r", "p") || long(args, "--eval", "--print", "--run", "--command") ||
			slices.Contains(args, "eval") || runsInput(name, argv)
	case slices.Contains([]string{"awk", "gawk", "mawk", "nawk", "busybox"}, name):
		return slices.ContainsFunc(argv[1:], func(a word) bool {
			return !a.known && !a.data || strings.Contains(a.text, "system") || strings.ContainsAny(a.text, "|@")
		})
	case name == "sed" || name == "gsed":
		return slices.ContainsFunc(argv[1:], func(a word) bool {
			return !a.known && !a.data || executesSed().MatchString(a.text)
		})
	case name == "make" || name == "gmake":
		return long(args, "--eval")
	}
	return slices.Contains([]string{"rscript", "ed", "ex", "vi", "vim", "nvim", "emacs", "gdb", "lldb", "sqlite3"},
		name)
}

// executesSed finds the command e of sed, and the flag e of its command s, and more.
func executesSed() *regexp.Regexp {
	return regexp.MustCompile(`(^|[;{}\n0-9$/!,])\s*e(\s|$)|[^A-Za-z0-9\s\\][gpiIm0-9]*e[gpiImw0-9]*\s*($|[;}\n])`)
}

// mentioned reports whether a word of a command has the program of a deny or ask rule in a longer text, so that the
// command may run it: tar --to-command='rm x', gdb -ex 'shell rm x'.
func (r Rule) mentioned(p piece) bool {
	if p.shape != simple || p.runsKnown || len(r.tokens) == 0 || r.tokens[0].star || !p.argv[0].known {
		return false
	}
	name := program(p.argv[0].text)
	switch {
	case name == "sed" || name == "find" || name == "sort" || name == "rg":
	case special(name) != nil || grammarOf(name).name != "":
		return false // it only reads
	case name == "git" && len(p.argv) > 1 && slices.Contains([]string{
		"commit", "tag", "notes", "log", "grep", "add", "show", "blame", "diff", "status", "branch", "stash",
	}, p.argv[1].text):
		return false // its texts are for people
	}
	return slices.ContainsFunc(p.argv[1:], func(a word) bool {
		words := strings.FieldsFunc(strings.ToLower(a.text), func(c rune) bool {
			return c != '_' && c != '-' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		})
		return strings.ContainsAny(a.text, " \t\n=!\"'(;|`") && !slices.ContainsFunc(r.tokens, func(t token) bool {
			return !t.star && !slices.Contains(words, strings.ToLower(t.text))
		})
	})
}

// gitText returns what git runs in a shell: of its configuration on the command line and of some subcommands.
func gitText(argv []word) (string, reading) {
	var found []word
	for i, a := range argv[:len(argv)-1] {
		next := argv[i+1]
		if a.text == "--config-env" || strings.HasPrefix(a.text, "--config-env=") {
			return "", unknownText
		}
		if key, value, has := strings.Cut(next.text, "="); a.text == "-c" && i > 0 && (has || !next.known) {
			if bang, is := strings.CutPrefix(value, "!"); is || !next.known || gitRuns(key) {
				found = append(found, word{text: bang + "\n", known: next.literal()})
			}
		}
	}
	sub, rest := gitVerb(texts(argv[1:]))
	words := argv[len(argv)-len(rest):]
	if len(words) == 0 {
		return join(found)
	}
	switch {
	case sub == "submodule" && rest[0] == "foreach", sub == "bisect" && rest[0] == "run":
		words = words[1:]
		for len(words) > 0 && strings.HasPrefix(words[0].text, "-") {
			words = words[1:]
		}
		found = append(found, words...)
	case sub == "rebase" || sub == "difftool":
		for i, a := range words {
			if value, is := strings.CutPrefix(a.text, "--exec="); is {
				found = append(found, word{text: value + "\n", known: a.literal()})
			} else if (a.text == "-x" || a.text == "--exec" || a.text == "--extcmd") && i+1 < len(words) {
				found = append(found, word{text: words[i+1].text + "\n", known: words[i+1].literal()})
			}
		}
	case sub == "filter-branch":
		return "", unknownText
	}
	return join(found)
}

// gitRuns reports whether git runs the value of a variable of its configuration.
func gitRuns(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{
		"pager", "editor", "sshcommand", "fsmonitor", "program", "textconv", "command", "cmd", "driver", ".process",
		".clean", ".smudge", "external", "helper", "askpass", "gitproxy",
	}, func(end string) bool { return strings.HasSuffix(key, end) }) || strings.HasPrefix(key, "pager.") ||
		strings.HasPrefix(key, "include")
}

// runsValue reports whether programs run what a variable holds, and it is more than the name of a pager.
func runsValue(name string, value word) bool {
	upper := strings.ToUpper(name)
	if slices.Contains([]string{"IFS", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "GLOBIGNORE"}, upper) {
		return true
	}
	if value.literal() && slices.Contains([]string{"", "cat", "true", ":", "less", "more", "vi", "vim"}, value.text) {
		return false
	}
	return slices.Contains([]string{
		"PAGER", "MANPAGER", "EDITOR", "VISUAL", "LESSOPEN", "LESSCLOSE", "GIT_PAGER", "GIT_EDITOR",
		"GIT_SEQUENCE_EDITOR",
		"GIT_EXTERNAL_DIFF", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_PROXY_COMMAND",
		"PROMPT_COMMAND", "PS0", "PS4", "PERL5OPT", "PERL5DB", "RUBYOPT", "MAKEFLAGS", "RSYNC_RSH", "ENV",
	}, upper) || strings.HasPrefix(upper, "GIT_CONFIG") || strings.HasPrefix(upper, "BASH_FUNC_")
}
