package guard

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// foreignText reports whether a command runs a text in a language that is not read here: python -c, perl -e, awk.
func foreignText(name string, argv []word) bool {
	args := argv[1:]
	switch {
	case isShell(name):
		return false
	case isInterpreter(name):
		return takes(name, argv) != fromFile || slices.ContainsFunc(args, word.opens)
	case does(ofEditor, name, nil), long(texts(args), "--script-shell"):
		return true
	case strings.HasSuffix(name, "awk") || name == "busybox":
		return slices.ContainsFunc(args, func(a word) bool {
			return !a.known || a.opens() || strings.Contains(a.text, "system") || strings.ContainsAny(a.text, "|@")
		})
	case name == "sed" || name == "gsed":
		return sedRuns(argv) || slices.ContainsFunc(args, word.opens)
	case does(ofOwnText, name, nil):
		return slices.ContainsFunc(args, func(a word) bool {
			return a.opens() || !plainWords().MatchString(a.text) || !a.known && strings.Contains(a.text, "=")
		})
	}
	return false
}

// plainWords matches words in which nothing is expanded, and no name is hidden.
func plainWords() *regexp.Regexp { return regexp.MustCompile(`^[\w ./:,+=@%^~-]*$`) }

// opens reports whether a word, or the value in it of a flag, names what is open instead of a file: -f/dev/fd/3, -nf-,
// <(…).
func (w word) opens() bool {
	return w.pipe || strings.HasSuffix(w.text, "f-") || slices.ContainsFunc(meanings(w), func(text string) bool {
		return opened(text) != noText
	})
}

// mentioned reports whether a word of a command has the program of a deny or ask rule in a longer text, so that the
// command may run it: tar --to-command='rm x', gdb -ex 'shell rm x'.
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

// named reports whether a value of a variable has the program of the rule.
func (r Rule) named(values []string) bool {
	return len(r.tokens) > 0 && !r.tokens[0].star && slices.ContainsFunc(values, r.inText)
}

// inText reports whether a text has the words of the rule, also in quotes: cu""rl, \curl.
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

// withoutMessages drops the words of git that are texts for people: the values of flags such as -m and, of some
// subcommands, everything but flags.
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

// gitText returns what git runs in a shell: of its configuration on the command line and of some subcommands.
func gitText(argv []word) (string, reading) {
	var found []word
	add := func(text string, a word) { found = append(found, word{text: text + "\n", known: a.literal()}) }
	for i, a := range argv[:len(argv)-1] {
		next := argv[i+1]
		if a.text == "--config-env" || strings.HasPrefix(a.text, "--config-env=") {
			return "", unknownText
		}
		setting := next.text
		switch value, joined := strings.CutPrefix(next.text, "--config="); {
		case joined:
			setting = value
		case a.text != "-c" && a.text != "--config" || i == 0:
			continue
		}
		if key, value, has := strings.Cut(setting, "="); has || !next.known {
			if bang, is := strings.CutPrefix(value, "!"); is || !next.known || gitRuns(key) {
				add(bang, next)
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
	case sub == "config":
		for i, a := range words[:len(words)-1] {
			if gitRuns(a.text) || strings.HasPrefix(strings.ToLower(a.text), "alias.") {
				add(strings.TrimPrefix(words[i+1].text, "!"), words[i+1])
			}
		}
	case sub == "filter-branch":
		return "", unknownText
	}
	for i, a := range words {
		if a.text == "--" {
			break
		}
		if remote, is := strings.CutPrefix(a.text, "ext::"); is {
			add(remote, a)
		}
		for _, flag := range gitPrograms(sub) {
			value, is, next := flagValue(a.text, flag)
			if is && next && i+1 < len(words) {
				add(words[i+1].text, words[i+1])
			} else if is {
				add(value, a)
			}
		}
	}
	return join(found)
}

// gitPrograms returns the flags of a subcommand of git whose values it runs.
func gitPrograms(sub string) []string {
	switch sub {
	case "grep":
		return []string{"-O", "--open-files-in-pager"}
	case "rebase":
		return []string{"-x", "--exec"}
	case "difftool":
		return []string{"-x", "--extcmd"}
	case "clone":
		return []string{"-u", "--upload-pack"}
	case "fetch", "pull", "ls-remote", "push", "archive", "fetch-pack", "send-pack":
		return []string{"--upload-pack", "--receive-pack", "--exec"}
	case "send-email":
		return []string{"--sendmail-cmd", "--to-cmd", "--cc-cmd", "--header-cmd", "--smtp-server"}
	case "instaweb":
		return []string{"--httpd", "--browser"}
	}
	return nil
}

// flagValue returns the value that a word gives to a flag of git, or that the next word may be the value. A long flag
// may be abbreviated, and short ones be written together.
func flagValue(text, flag string) (value string, is, next bool) {
	if strings.HasPrefix(flag, "--") {
		name, value, joined := strings.Cut(text, "=")
		is = len(name) > 3 && strings.HasPrefix(flag, name)
		return value, is, is && !joined
	}
	if strings.HasPrefix(text, "--") || !strings.HasPrefix(text, "-") {
		return "", false, false
	}
	before, value, is := strings.Cut(text[1:], flag[1:])
	is = is && !strings.ContainsAny(before, "efmABC") // flags with values
	return value, is, is && value == "" && flag != "-O"
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
