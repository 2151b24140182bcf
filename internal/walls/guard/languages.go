package guard

import (
	"regexp"
	"slices"
	"strings"
)

// language returns the interpreter that a program is, or "". It compares the name up to the first dash or digit:
// perl5.36-x86_64-linux-gnu and bash-static are perl and bash.
func language(name string) string {
	base := name
	if i := strings.IndexAny(name, "-0123456789."); i > 0 {
		base = name[:i]
	}
	if does(ofShell, base, nil) || does(ofLanguage, base, nil) {
		return base
	}
	return ""
}

func isShell(name string) bool { return does(ofShell, language(name), nil) }

func isInterpreter(name string) bool { return language(name) != "" }

// isPython reports whether a name is one of Python's: python3.12.
func isPython(name string) bool { l := language(name); return l == "python" || l == "pypy" }

// origin is where an interpreter gets its program from.
type origin uint8

const (
	fromText  origin = iota // an argument, or unknown
	fromInput               // its standard input
	fromFile                // a file, or a module that runs no text
)

// takes returns where an interpreter gets its program from. Only a file as its first word, or a listed module, is known
// to be one: any flag may be followed by a text.
func takes(name string, argv []word) origin {
	args := argv[1:]
	switch {
	case len(args) == 0, standardInput(args[0]):
		return fromInput
	case len(args) == 1 && args[0].literal() &&
		(asksForHelp(texts(args)) || args[0].text == "-v" && !isPython(name)):
		return fromFile
	case len(args) > 1 && isPython(name) && args[0].text == "-m" && does(ofModule, args[1].text, nil):
		return fromFile
	case !slices.ContainsFunc(args, func(a word) bool { return !a.known || !strings.HasPrefix(a.text, "-") }):
		return fromInput
	case !plainPath(args[0]), slices.ContainsFunc(args, func(a word) bool {
		return strings.HasPrefix(a.text, "data:") || slices.Contains([]string{
			"shell", "tinker", "console", "runner", "eval", "repl", // what frameworks are told to run is a text
		}, a.text)
	}):
		return fromText
	}
	return fromFile
}

// plainPath reports whether a word names a file: not a device, a pipe or a URL. Files in the system's libraries do not
// count, because some run texts, such as timeit.py.
func plainPath(a word) bool {
	return a.literal() && a.text != "" && a.text[0] != '-' && !strings.HasPrefix(a.text, "/usr/lib") &&
		opened(a.text) == noText && plainWords().MatchString(a.text)
}

// foreignText reports whether a command runs a text in a language that is not parsed here: python -c, perl -e, awk.
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

// plainWords matches words without expansions and without hidden names.
func plainWords() *regexp.Regexp { return regexp.MustCompile(`^[\w ./:,+=@%^~-]*$`) }

// opens reports whether a word, or the value of a flag in it, names an open descriptor instead of a file: -f/dev/fd/3,
// -nf-, <(…).
func (w word) opens() bool {
	return w.pipe || strings.HasSuffix(w.text, "f-") || slices.ContainsFunc(meanings(w), func(text string) bool {
		return opened(text) != noText
	})
}
