package guard

import (
	_ "embed" // the wrappers
	"slices"
	"strconv"
	"strings"
)

//go:embed wrappers.txt
var wrappers string

// wrapper is a program that starts another, with its flags that have a value and those that have none.
type wrapper struct {
	tableEntry
	valued, bare []string
}

// wrapperOf finds a wrapper.
func wrapperOf(name string) wrapper {
	if strings.HasPrefix(name, "ld-") && strings.Contains(name, ".so") {
		name = "ld.so"
	}
	e := lookUp(wrappers, name)
	valued, bare, _ := strings.Cut(strings.Join(e.lines, " "), "|")
	return wrapper{e, strings.Fields(valued), strings.Fields(bare)}
}

// tableEntry is what a table says of a program, or of what has two words, such as "find expression". The comment at the
// beginning of each table tells what its words mean.
type tableEntry struct {
	name  string              // "": it is not there
	words map[string][]string // of its line, each with the values behind =
	lines []string            // the indented ones below
}

func (e tableEntry) is(word string) bool { return e.words[word] != nil }

// number returns the value of a word, or 0.
func (e tableEntry) number(word string) int {
	n, _ := strconv.Atoi(strings.Join(e.words[word], ""))
	return n
}

// lookUp finds a program in a table.
func lookUp(table, name string) (e tableEntry) {
	for line := range strings.Lines(table) {
		switch below := line[0] == ' ' || line[0] == '\t'; {
		case below && e.name != "":
			e.lines = append(e.lines, strings.TrimSpace(line))
		case e.name != "":
			return e
		case !below:
			names, rest, _ := strings.Cut(line, ":")
			if !slices.Contains(strings.Split(names, ", "), name) {
				continue
			}
			e.name, e.words = name, map[string][]string{}
			for word := range strings.FieldsSeq(rest) {
				key, value, _ := strings.Cut(word, "=")
				e.words[key] = strings.Split(value, ",")
			}
		}
	}
	return e
}

// starts reports whether words of a command are the command that it starts.
func (w wrapper) starts() bool { return w.name != "" && !w.is("flags") }

// steps returns whether a flag may be one word, and whether its value may be the next word.
func (w wrapper) steps(flag string) (one, two bool) {
	if strings.HasPrefix(flag, "--") {
		if strings.Contains(flag, "=") {
			return true, false
		}
		begins := func(known string) bool { return strings.HasPrefix(known, flag) } // flags may be abbreviated
		one, two = slices.ContainsFunc(w.bare, begins), slices.ContainsFunc(w.valued, begins)
		return one || !two, two || !one
	}
	switch {
	case slices.Contains(w.bare, flag):
		return true, false
	case slices.Contains(w.valued, flag):
		return false, true
	}
	for i, letter := range flag[1:] {
		switch {
		case slices.Contains(w.valued, "-"+string(letter)):
			last := i+1+len(string(letter)) == len(flag)
			return !last, last
		case !slices.Contains(w.bare, "-"+string(letter)) && (letter < '0' || letter > '9'):
			return true, true
		}
	}
	return true, false
}

// candidate is a command that a command may start by its arguments, or that command itself.
type candidate struct {
	argv  []word // not empty
	sure  bool   // false: it may be an argument as well
	added int    // words at the end that are read
	apart bool   // argv is not the end of the words of the command that starts it
}

// mostBehind limits the commands that are looked for in one.
const mostBehind = 256

// commands returns a command and those that it starts by its arguments, and whether there are too many.
func commands(argv []word) (all []candidate, deep bool) {
	type step struct {
		candidate
		depth int
		line  int // commands that are ends of the same words have the same
	}
	type place struct{ line, left int }
	seen, lines := map[place]bool{}, 0
	for todo := []step{{candidate: candidate{argv: argv, sure: true}}}; len(todo) > 0; todo = todo[1:] {
		s := todo[0]
		at := place{s.line, len(s.argv) - s.added}
		if len(s.argv) == 0 || seen[at] { // two ways to the same word: the first is the surer
			continue
		}
		if s.depth > maxInner || len(all) == mostBehind {
			return all, true
		}
		seen[at] = true
		all = append(all, s.candidate)
		if !s.argv[0].known {
			continue
		}
		name := program(s.argv[0].text)
		if isPython(name) && len(s.argv) > 2 && s.argv[1].text == "-m" { // a module is what its program is: pipenv
			todo = append(todo, step{candidate{argv: s.argv[2:], sure: s.sure, added: s.added}, s.depth + 1, s.line})
		}
		for _, behind := range unwrap(name, s.argv) {
			behind.sure, behind.added = behind.sure && s.sure, behind.added+s.added
			line := s.line
			if behind.apart {
				lines++
				line = lines
			}
			todo = append(todo, step{behind, s.depth + 1, line})
		}
	}
	return all, false
}

// behindVerb returns the words behind the subcommand that a wrapper needs, after its name, or nil if it is not there.
func (w wrapper) behindVerb(argv []word) []word {
	if w.words["after"] == nil {
		return argv
	}
	for i, a := range argv[1:] {
		if slices.Contains(w.words["after"], a.text) {
			return append(argv[:1:1], argv[i+2:]...)
		} else if !strings.HasPrefix(a.text, "-") && (i == 0 || !strings.HasPrefix(argv[i].text, "-")) {
			break
		}
	}
	return nil
}

// unwrap returns the commands that a command starts by its arguments.
func unwrap(name string, argv []word) (all []candidate) {
	w := wrapperOf(name)
	if argv = w.behindVerb(argv); argv == nil {
		return nil
	}
	if !w.starts() {
		for _, rest := range started(name, argv) {
			all = append(all, candidate{argv: rest, sure: true, apart: true})
		}
		return all
	}
	if w.is("anywhere") {
		for i := range argv[1:] {
			all = append(all, candidate{argv: argv[i+1:]})
		}
		return all[:min(len(all), mostBehind)]
	}
	all = w.behind(argv)
	if !w.is("feeds") {
		return all
	}
	place := "{}"
	for i, a := range argv[:len(argv)-1] {
		if a.text == "-I" || a.text == "-J" {
			place = argv[i+1].text
		}
		if rest, found := strings.CutPrefix(a.text, "-I"); found && rest != "" {
			place = rest
		}
		if _, rest, found := strings.Cut(a.text, "--replace="); found {
			place = rest
		}
	}
	if len(all) == 0 && w.is("joined") {
		return []candidate{{argv: []word{{why: "it is read"}}, sure: true, added: 1}} // what it reads is the command
	}
	for i := range all {
		all[i].argv, all[i].added = append(filled(all[i].argv, place, nil), word{why: "it is read"}), 1
	}
	return all
}

// filled returns the words with those that hold a placeholder as unknown ones, which may become these patterns.
func filled(argv []word, place string, patterns []string) []word {
	argv = slices.Clone(argv)
	for i, a := range argv {
		if place != "" && strings.Contains(a.text, place) {
			argv[i].known, argv[i].why = false, "it is filled in"
			for _, pattern := range patterns {
				argv[i].may = append(argv[i].may, strings.ReplaceAll(a.text, place, pattern))
			}
		}
	}
	return argv
}

// behind returns where the command of a wrapper may begin.
func (w wrapper) behind(argv []word) (all []candidate) {
	type state struct {
		at, operands int
		sure         bool
	}
	seen := map[[2]int]bool{}
	for todo := []state{{1, w.number("operands"), true}}; len(todo) > 0 && len(all) < mostBehind; todo = todo[1:] {
		s := todo[0]
		if s.at >= len(argv) || seen[[2]int{s.at, s.operands}] {
			continue
		}
		seen[[2]int{s.at, s.operands}] = true
		switch text := argv[s.at].text; {
		case text == "--", text == "-" && w.is("assigns"):
			todo = append(todo, state{s.at + 1, s.operands, s.sure})
		case strings.HasPrefix(text, "-") && len(text) > 1:
			one, two := w.steps(text)
			sure := s.sure && !(one && two)
			if one {
				todo = append(todo, state{s.at + 1, s.operands, sure})
			}
			if two {
				todo = append(todo, state{s.at + 2, s.operands, sure})
			}
		case w.is("assigns") && strings.Contains(text, "="):
			todo = append(todo, state{s.at + 1, s.operands, s.sure})
		case s.operands > 0:
			todo = append(todo, state{s.at + 1, s.operands - 1, s.sure && !w.is("optional")})
			if w.is("optional") {
				all = append(all, candidate{argv: argv[s.at:]})
			}
		default:
			all = append(all, candidate{argv: argv[s.at:], sure: s.sure})
		}
	}
	return all
}

// reading is what is known about a text that a command gives to a shell.
type reading uint8

const (
	noText reading = iota
	unknownText
	knownText
)

// shellText returns the text that a command gives to a shell by its arguments.
func shellText(name string, argv []word) (string, reading) {
	if name == "eval" || name == "trap" && len(argv) > 2 {
		args := argv[1:]
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
		if name == "trap" {
			args = args[:min(1, len(args))]
		}
		return join(args)
	}
	if name == "git" {
		return gitText(argv)
	}
	w := wrapperOf(name)
	switch argv = w.behindVerb(argv); {
	case argv == nil:
		return "", noText
	case w.is("joined"):
		all := w.behind(argv)
		if slices.ContainsFunc(argv, func(a word) bool { return strings.HasPrefix(a.text, ":::") }) || len(all) > 1 {
			return "", unknownText
		}
		if len(all) == 0 {
			return "", noText
		}
		return join(all[0].argv)
	case w.words["text"] != nil:
		words := w.behindFlag(argv)
		switch {
		case w.is("letters") && words == nil:
			return w.textOfLetters(argv)
		case !w.is("last"):
			return join(words)
		case slices.ContainsFunc(argv[1:], func(a word) bool { return !a.literal() }),
			len(words) > 1 && w.behindFlag(words) != nil:
			return "", unknownText
		}
		return join(words[:min(1, len(words))])
	case isShell(name):
		return optionsOf(name, argv).given()
	}
	return "", noText
}

// shellOptions are the options of a shell, as it reads them.
type shellOptions struct {
	known       bool // false: the rest is not
	text, input bool // -c and -s
	help        bool
	rest        []word // behind them
}

// optionsOf reads the options of a shell: the words that begin with - or +, and one more for each -o, +o, -O and +O. It
// knows only letters that mean the same to each shell of that name.
func optionsOf(name string, argv []word) (o shellOptions) {
	letters := "abcefhiklmnopqrstuvxBCDEHIOPTV"
	switch name {
	case "zsh", "ksh", "mksh":
		letters = "cefilnosuvx"
	case "csh", "tcsh":
		letters = "cefn"
	case "fish":
		letters = ""
	}
	for i := 1; i < len(argv); i++ {
		text := argv[i].text
		switch {
		case !argv[i].literal():
			return o
		case text == "-", text == "--":
			o.known, o.rest = true, argv[i+1:]
			return o
		case !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "+"):
			o.known, o.rest = true, argv[i:]
			return o
		case text == "--version", text == "--help":
			o.help = true
		case text == "--rcfile", text == "--init-file":
			if i++; i < len(argv) && (!argv[i].literal() || standardInput(argv[i])) {
				return o
			}
		case slices.Contains([]string{
			"--norc", "--noprofile", "--posix", "--login", "--restricted", "--verbose", "--noediting",
		}, text):
		case slices.Contains([]string{"norc", "noprofile", "posix", "verbose", "rcfile", "help", "version"}, text[1:]):
			return o // bash takes a long option with one hyphen too
		default:
			for _, letter := range text[1:] {
				if !strings.ContainsRune(letters, letter) {
					return o
				}
				if letter == 'o' || letter == 'O' {
					if i++; i < len(argv) && !argv[i].literal() {
						return o
					}
				}
				o.text, o.input = o.text || letter == 'c', o.input || letter == 's'
			}
		}
	}
	o.known = true
	return o
}

// given returns the text that a shell is given by -c.
func (o shellOptions) given() (string, reading) {
	switch {
	case !o.known:
		return "", unknownText
	case !o.text:
		return "", noText
	}
	return join(o.rest[:min(1, len(o.rest))])
}

// behindFlag returns the text that a flag of a wrapper gives to a shell, and all words behind it.
func (w wrapper) behindFlag(argv []word) []word {
	for i, a := range argv[1:] {
		for _, flag := range w.words["text"] {
			if name, value, found := strings.Cut(a.text, "="); found && len(name) > 3 && strings.HasPrefix(flag, name) {
				return append([]word{{text: value, known: a.literal()}}, argv[i+2:]...)
			}
			if a.text == flag || len(a.text) > 3 && strings.HasPrefix(flag, a.text) {
				return argv[i+2:]
			}
			value, found := strings.CutPrefix(a.text, flag)
			if found && len(flag) == 3 && flag[1] != '-' { // zip -TTcurl
				return []word{{text: value, known: a.literal()}}
			}
		}
		if !strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "--") {
			continue
		}
		for at, letter := range a.text[1:] { // tar -xIcurl
			flag := "-" + string(letter)
			if slices.Contains(w.valued, flag) {
				break // the rest is its value
			} else if !slices.Contains(w.words["text"], flag) {
				continue
			}
			rest := argv[i+2:]
			if value := a.text[1+at+len(string(letter)):]; value != "" {
				rest = append([]word{{text: value, known: a.literal()}}, rest...)
			}
			return rest
		}
	}
	return nil
}

// textOfLetters returns the text that flags without a dash give to a shell: tar cIf 'curl x' a.tar b. Each of them with
// a value has one of the words behind, in their order.
func (w wrapper) textOfLetters(argv []word) (string, reading) {
	if len(argv) < 2 || strings.HasPrefix(argv[1].text, "-") {
		return "", noText
	}
	next := 2
	for _, letter := range argv[1].text {
		switch flag := "-" + string(letter); {
		case slices.Contains(w.words["text"], flag):
			return join(argv[min(next, len(argv)):min(next+1, len(argv))])
		case slices.Contains(w.valued, flag):
			next++
		}
	}
	return "", noText
}

// join joins words as eval does.
func join(words []word) (string, reading) {
	texts := make([]string, len(words))
	for i, a := range words {
		if !a.literal() {
			return "", unknownText
		}
		texts[i] = a.text
	}
	text := strings.Join(texts, " ")
	if strings.TrimSpace(text) == "" {
		return "", noText
	}
	return text, knownText
}
