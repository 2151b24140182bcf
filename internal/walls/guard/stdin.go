package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"

	"mvdan.cc/sh/v3/syntax"
)

// readsText returns knownText if a command runs the text on its standard input, and unknownText if it may run an
// unknown text from elsewhere.
func readsText(name string, argv []word) reading {
	args := argv[1:]
	switch {
	case name == "at", name == "batch":
		return knownText
	case isShell(name):
		o := optionsOf(name, argv)
		switch {
		case !o.known:
			return unknownText
		case o.text, o.help:
			return noText
		case o.input, len(o.rest) == 0:
			return knownText
		}
		args = o.rest
	case name == "source", name == ".":
		if len(args) > 0 && args[0].text == "--" {
			args = args[1:]
		}
	case asksForHelp(texts(args)):
		return noText
	default:
		return startsShell(name, argv)
	}
	switch {
	case len(args) == 0:
		return noText
	case !args[0].literal():
		return unknownText
	}
	return opened(args[0].text) // a script
}

// startsShell is readsText for a program that starts a shell if its arguments name no command.
func startsShell(name string, argv []word) reading {
	if name == "su" || name == "newgrp" {
		return knownText
	}
	if name == "script" { // script FILE; elsewhere, what follows is a command
		if len(operandsOf(texts(argv[1:]))) > 1 {
			return unknownText
		}
		return knownText
	}
	w := wrapperOf(name)
	if argv = w.behindVerb(argv); argv == nil || !w.starts() || does(ofAlone, name, nil) {
		return noText
	}
	all := w.behind(argv)
	if w.is("anywhere") && len(argv) > 1 || len(all) > 1 || len(all) == 1 &&
		!(w.is("optional") && len(all[0].argv) == 1 && !strings.Contains(all[0].argv[0].text, "/")) {
		return noText
	}
	return knownText
}

// standardInput reports whether a word names the standard input of its command, or another open descriptor.
func standardInput(a word) bool { return opened(a.text) != noText }

// opened returns whether a path, in any spelling, names an open descriptor instead of a file: knownText for standard
// input, and unknownText for any other.
func opened(path string) reading {
	clean := filepath.Clean("/" + path)
	switch {
	case path == "-", slices.Contains([]string{"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}, clean):
		return knownText
	case clean == "/dev/null", pathname.Within("/dev/shm", clean):
	case pathname.Within("/dev", clean), pathname.Within("/proc", clean):
		return unknownText
	}
	return noText
}

// readsPipe reports whether a command reads <(…) and may run what comes from it: make -f <(…).
func readsPipe(name string, argv []word) bool {
	reads := name != "sed" && onlyReads(name) || wrapperOf(name).starts()
	return !reads && slices.ContainsFunc(argv[1:], func(a word) bool { return a.pipe })
}

// feed records the here-string or here-document of a command.
func (w *walker) feed(c *syntax.CallExpr, redirects []*syntax.Redirect) {
	for _, r := range redirects {
		var from *syntax.Word
		switch r.Op {
		case syntax.WordHdoc:
			from = r.Word
		case syntax.Hdoc, syntax.DashHdoc:
			from = r.Hdoc
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn:
		default:
			continue
		}
		delete(w.feeds, c)
		if from == nil || r.N != nil && r.N.Value != "0" {
			continue
		}
		if quoted := r.Word != nil && strings.ContainsAny(slice(w.source, r.Word), `'"\`); r.Op != syntax.WordHdoc &&
			quoted {
			w.feeds[c] = from.Lit()
		} else if got := w.readAlone(from); got.known {
			w.feeds[c] = got.text
		}
	}
}

// feedPipe records what echo or printf writes to the standard input of a command, if all of it is known.
func (w *walker) feedPipe(c *syntax.BinaryCmd) {
	from, ok := c.X.Cmd.(*syntax.CallExpr)
	to, also := c.Y.Cmd.(*syntax.CallExpr)
	if !ok || !also || len(from.Args) < 2 || len(c.X.Redirs) > 0 || c.Op != syntax.Pipe && c.Op != syntax.PipeAll {
		return
	}
	argv := readEach(from, w.readAlone)
	if name := argv[0].text; name != "echo" && (name != "printf" || len(argv) != 2) {
		return
	}
	text, how := join(argv[1:])
	if argv[0].text == "printf" { // echo prints a backslash, or in some shells does not
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	if how != knownText || strings.ContainsAny(text, `\%`) || strings.HasPrefix(text, "-") {
		return
	}
	w.feeds[to] = text
}
