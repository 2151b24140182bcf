package guard

import (
	"slices"
	"strings"
)

// gitText returns the texts that git runs in a shell: values of configuration on the command line, and arguments of
// some subcommands.
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

// gitPrograms returns the flags of a subcommand whose values git runs.
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

// flagValue returns the value that a word gives to a flag of git; next means that the next word is the value. Long
// flags may be abbreviated, and short ones combined.
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

// gitRuns reports whether git runs the value of a configuration variable.
func gitRuns(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{
		"pager", "editor", "sshcommand", "fsmonitor", "program", "textconv", "command", "cmd", "driver", ".process",
		".clean", ".smudge", "external", "helper", "askpass", "gitproxy",
	}, func(end string) bool { return strings.HasSuffix(key, end) }) || strings.HasPrefix(key, "pager.") ||
		strings.HasPrefix(key, "include")
}
