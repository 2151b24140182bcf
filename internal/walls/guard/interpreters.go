package guard

import (
	"regexp"
	"slices"
	"strings"
)

// language returns the interpreter that a program is: what stands before the first dash or digit of its name is enough,
// for perl5.36-x86_64-linux-gnu and bash-static are perl and bash. It is "" for any other program.
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

// origin is where an interpreter has the program from that it runs.
type origin uint8

const (
	fromText  origin = iota // an argument, or it is not known
	fromInput               // its standard input
	fromFile                // a file, or a module that runs no text
)

// bareFlags returns an expression for the flags of an interpreter that neither give it a text nor make it read one, and
// one for those that have a value, which is plain and joined or the next word.
//
// They list what is known to be harmless: any other flag may hold a text.
func bareFlags(language string) (bare, valued *regexp.Regexp) {
	of := func(bare, valued string) (*regexp.Regexp, *regexp.Regexp) {
		return regexp.MustCompile("^(?:" + bare + ")$"), regexp.MustCompile("^(?:" + valued + ")$")
	}
	switch language {
	case "python", "pypy":
		return of(`-[uBOsSEIvqbdP]+`, `-[uBOsSEIvqbdP]*[WX]`)
	case "perl", "raku":
		return of(`-[wWtTUXc]+|-M-?[\w:]+|-I[\w./-]+`, `-I`)
	case "ruby", "jruby":
		return of(`-[wvU]+|-W[012]|-W:[\w-]+|-I[\w./:-]+|-r[\w./-]+|--(enable|disable)=\w+`, `-[Ir]`)
	case "node", "nodejs":
		return of(`--test|--check|-c|--no-warnings|--no-deprecation|--(trace|experimental|test|harmony)-[a-z-]+|`+
			`--test-[a-z-]+=[\w./:-]+|--inspect|--inspect-brk|--enable-source-maps|--expose[-_]gc|--watch|`+
			`--(max|stack|unhandled)[a-z_-]+=\w+|--env-file=[\w./-]+|--(require|import|loader)=[\w./@-]+`,
			`-r|--require|--import|--loader`)
	case "php":
		return of(`-[nlq]+|-d(memory_limit|max_execution_time|xdebug\.mode|error_reporting|display_errors)=[\w-]*`,
			`-f`)
	case "lua", "luajit":
		return of(`-W`, `-l`)
	case "julia":
		return of(`--(project|threads|startup-file|color)(=[\w./@-]+)?`, `-t`)
	case "r", "rscript":
		return of(`--(vanilla|slave|no-save|no-restore|quiet|no-echo)`, `-f`)
	case "guile":
		return of(`--no-auto-compile`, `-[sL]`)
	case "pwsh", "powershell":
		return of(`(?i)-(noprofile|noninteractive|nologo|file|f)`, `(?i)-(executionpolicy|ep)`)
	}
	return of(`a^`, `a^`)
}

// takes returns where an interpreter has its program from. Only a plain file or a module of the list is known: whatever
// else there is may be a text.
func takes(name string, argv []word) origin {
	l := language(name)
	args := argv[1:]
	if len(args) == 1 && args[0].literal() && (asksForHelp(texts(args)) || args[0].text == "-v" && !isPython(name)) {
		return fromFile
	}
	if l == "deno" || l == "bun" {
		return takesVerb(args)
	}
	bare, valued := bareFlags(l)
	for len(args) > 0 {
		a := args[0]
		module, isModule := a.text, false
		if isPython(name) {
			module, isModule = moduleFlag(a.text)
		}
		switch {
		case !a.literal() && (!a.known || a.wild || strings.HasPrefix(a.text, "-")):
			return fromText
		case a.text == "--":
			return takesFile(args[1:])
		case isModule:
			if rest := args[1:]; module == "" && len(rest) > 0 {
				module, args = rest[0].text, rest
			}
			if module == "coverage" && len(args) > 1 && args[1].text == "run" {
				return takes(name, args[1:])
			}
			if does(ofModule, module, nil) || module == "coverage" {
				return fromFile
			}
			return fromText
		case l == "r" && a.text == "CMD":
			return fromFile
		case standardInput(a):
			return fromInput
		case !strings.HasPrefix(a.text, "-"):
			return takesFile(args)
		case a.text == "--test" && strings.HasPrefix(l, "node"):
			return fromFile
		case l == "php" && a.text == "-d" && len(args) > 1 && bare.MatchString("-d"+args[1].text),
			valued.MatchString(a.text) && len(args) > 1 && plainPath(args[1]):
			args = args[2:]
		case bare.MatchString(a.text), valuedJoined(valued, a.text):
			args = args[1:]
		default:
			return fromText
		}
	}
	return fromInput
}

// moduleFlag returns the module of python -m, which may be joined: -um pytest, -mpytest.
func moduleFlag(text string) (module string, is bool) {
	before, module, found := strings.Cut(text, "m")
	return module, found && strings.HasPrefix(text, "-") && strings.Trim(before[1:], "uBOsSEIvqbdP") == ""
}

// valuedJoined reports whether a word is a flag of one letter with its value: -Wignore.
func valuedJoined(valued *regexp.Regexp, text string) bool {
	return len(text) > 2 && text[1] != '-' && valued.MatchString(text[:2]) &&
		plainPath(word{text: text[2:], known: true})
}

// takesFile returns where the program comes from if its file is the first of these words.
func takesFile(args []word) origin {
	if len(args) == 0 {
		return fromInput
	}
	reads := func(a word) bool { // what these scripts of frameworks are told to run is a text
		return slices.Contains([]string{"shell", "tinker", "console", "runner", "eval"}, a.text)
	}
	if standardInput(args[0]) {
		return fromInput
	} else if !plainPath(args[0]) || slices.ContainsFunc(args[1:], reads) {
		return fromText
	}
	return fromFile
}

// plainPath reports whether a word names a file: no device, no pipe and no URL. What is in the system's
// libraries runs texts, as timeit.py does.
func plainPath(a word) bool {
	for _, start := range []string{"-", "/usr/lib", "data:"} {
		if strings.HasPrefix(a.text, start) {
			return false
		}
	}
	return a.known && !a.wild && a.text != "" && opened(a.text) == noText &&
		!strings.ContainsAny(a.text, "\n;'\"`$(){}|")
}

// takesVerb returns where deno and bun have their program from.
func takesVerb(args []word) origin {
	if len(args) == 0 {
		return fromInput
	}
	words := texts(args)
	if short(words, "e", "p") || long(words, "--eval", "--print") || slices.ContainsFunc(args, func(a word) bool {
		return !a.known || standardInput(a) || strings.HasPrefix(a.text, "data:") ||
			slices.Contains([]string{"eval", "repl"}, a.text)
	}) {
		return fromText
	}
	return fromFile
}
