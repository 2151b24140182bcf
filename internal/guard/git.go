package guard

import (
	"fmt"
	"slices"
	"strings"
)

// The configuration of a repository names programs that watch its files, show differences, convert content, sign, page,
// or fetch missing objects. Git is approved only if the line itself turns off what a subcommand would start, and only
// for subcommands that allow that. Those that compare files with the index (status, diff, add) run filters that no flag
// turns off, so they need a question.

// gitQuiet returns the flags of git itself that an approved line has.
func gitQuiet() []string {
	return []string{
		"--no-pager", "--no-lazy-fetch", "-c core.fsmonitor=false", "-c core.hooksPath=/dev/null",
		"-c log.showSignature=false",
	}
}

// git approves what the repository's own configuration cannot turn into something else.
func (in *invocation) git() string {
	if in.exactly(grammarOf("git")) == "" {
		return ""
	}
	quiet, rest, why := in.gitFlags()
	if why != "" {
		return why
	}
	if len(rest) == 0 {
		return "git without a subcommand"
	}
	v := grammarOf("git " + rest[0].text)
	if v.name == "" {
		return fmt.Sprintf("git %s is not approved by itself: the repository's configuration decides what else it runs",
			rest[0].text)
	}
	in.name, in.args = "git "+rest[0].text, rest[1:]
	if why := in.fits(v); why != "" {
		return why
	}
	missing := slices.ContainsFunc(gitQuiet(), func(f string) bool { return !slices.Contains(quiet, f) })
	for _, flag := range v.needs {
		missing = missing || !slices.ContainsFunc(in.args, func(a word) bool { return a.text == flag })
	}
	if slices.ContainsFunc(in.args, func(a word) bool {
		return strings.HasPrefix(a.text, "--submodule") &&
			a.text != "--submodule=short"
	}) {
		return "a difference of submodules is another git, with their configuration"
	}
	if v.prints {
		ok, why := in.prettyFormat()
		if why != "" {
			return why
		}
		missing = missing || !ok
	}
	if !missing {
		return ""
	}
	words := append([]string{"git"}, gitQuiet()...)
	words = append(append(words, rest[0].text), v.needs...)
	if v.prints {
		words = append(words, "--format=medium")
	}
	return "the repository's configuration may run programs; this is approved by itself: " + strings.Join(words, " ") +
		" …"
}

// prettyFormat reports whether the line itself names the format of a commit. A format from the configuration may run a
// program that checks signatures.
func (in *invocation) prettyFormat() (given bool, why string) {
	given = slices.Contains(in.flags, "--oneline")
	for _, v := range in.values {
		if v.flag != "--format" && v.flag != "--pretty" {
			continue
		}
		given = given || slices.ContainsFunc(in.args, func(a word) bool { return a.text == v.flag+"="+v.value })
		plain := slices.Contains([]string{"oneline", "short", "medium", "full", "fuller", "reference", "email", "raw"},
			v.value)
		if !plain && (!strings.Contains(v.value, "%") || strings.Contains(v.value, "%G") ||
			strings.Contains(v.value, "%(") || strings.Contains(v.value, "%+G") || strings.Contains(v.value, "%-G") ||
			strings.Contains(v.value, "% G")) {
			return false, "such a format may run a program, or be one of the repository"
		}
	}
	return given, ""
}

// gitFlags reads git's own flags.
func (in *invocation) gitFlags() (given []string, rest []word, why string) {
	rest = in.args
	for len(rest) > 0 {
		a := rest[0]
		if !a.literal() {
			return nil, nil, "an argument is not known before it runs: " +
				orText(a.why, "a pattern becomes the names of files")
		}
		if !strings.HasPrefix(a.text, "-") {
			return given, rest, ""
		}
		flag, used := a.text, 1
		if flag == "-c" && len(rest) > 1 && rest[1].literal() {
			flag, used = "-c "+rest[1].text, 2
		}
		if flag != "--no-optional-locks" && !slices.Contains(gitQuiet(), flag) {
			return nil, nil, fmt.Sprintf("git %s is not among the flags that are approved", flag)
		}
		given, rest = append(given, flag), rest[used:]
	}
	return given, nil, ""
}
