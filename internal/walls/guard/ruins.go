package guard

import (
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"

	"mvdan.cc/sh/v3/syntax"
)

// Commands that ruin the machine are refused in every mode, whatever rules, answers and walls there are: an error is
// more useful than the news that something was contained.
const (
	stopsMachine = " stops the machine; no mode allows that"
	ruinsSystem  = " takes away the system or the home directory; no mode allows that"
	ruinsDisk    = " writes to a device; no mode allows that"
)

// ruins bars a command that stops the machine, makes a file system, or removes the system or the home directory.
func (w *walker) ruins(p *piece, name string, argv []word, at dirs) {
	args := texts(argv[1:])
	if len(args) == 1 && (args[0] == "--help" || args[0] == "--version") {
		return
	}
	switch {
	case stops(name, args):
		p.bar(name + stopsMachine)
	case globElement("mkfs", name), globElement("mkfs.*", name), globElement("newfs*", name):
		p.bar(name + " makes a file system, which destroys what is there; no mode allows that")
	case destroysDisk(name, args):
		for _, a := range argv[1:] {
			w.device(p, a, at)
		}
	case name == "rm" && recursive(args),
		(name == "find" || name == "gfind") && slices.Contains(args, "-delete"),
		(name == "chmod" || name == "chown" || name == "chgrp") && recursive(args):
		words := argv[1:]
		if len(p.argv) > 0 && wrapperOf(program(p.argv[0].text)).is("feeds") {
			for text := range strings.FieldsSeq(w.fed) {
				words = append(slices.Clip(words), word{text: text, known: true})
			}
		}
		if slices.ContainsFunc(words, func(a word) bool { return w.vital(a, name, at) }) {
			p.bar(name + ruinsSystem)
		}
	case name == "find" || name == "gfind":
		w.ruinsFound(p, argv, at)
	}
}

// ruinsFound bars rm and similar programs that find starts, because find passes the directory itself first.
func (w *walker) ruinsFound(p *piece, argv []word, at dirs) {
	for i, a := range argv {
		if !slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a.text) || i+1 >= len(argv) {
			continue
		}
		if program(argv[i+1].text) == "rm" && recursive(texts(argv[i+2:])) && slices.ContainsFunc(argv[1:i],
			func(a word) bool { return w.vital(a, "rm", at) }) {
			p.bar("find" + ruinsSystem)
		}
	}
}

func recursive(args []string) bool { return short(args, "r", "R") || long(args, "--recursive") }

// stops reports whether a command stops the machine or starts it again.
func stops(name string, args []string) bool {
	words := []string{"poweroff", "reboot", "halt", "kexec", "soft-reboot"}
	switch name {
	case "shutdown", "reboot", "halt", "poweroff", "telinit":
		return true
	case "init":
		return slices.ContainsFunc(args, func(a string) bool { return a == "0" || a == "1" || a == "6" })
	case "systemctl", "loginctl":
		verbs := operandsOf(args)
		return len(verbs) > 0 && slices.Contains(words, strings.ToLower(verbs[0]))
	}
	return false
}

// destroysDisk reports whether a program writes to the device named by its arguments.
func destroysDisk(name string, args []string) bool {
	return strings.HasSuffix(listed(name, args), "destroys what is on a disk") && name != "dd" &&
		!short(args, "l") && !long(args, "--list")
}

// device bars a word that names a device, except for the harmless ones.
func (w *walker) device(p *piece, a word, at dirs) {
	for _, text := range a.mayBe() {
		for _, path := range at.paths(text) {
			p.onDevice(path)
		}
	}
}

// onDevice bars a write to a device, or to a file that stops the machine.
func (p *piece) onDevice(path string) {
	if path == "/proc/sysrq-trigger" {
		p.bar("writing to " + path + stopsMachine)
	}
	rest, found := strings.CutPrefix(path, "/dev/")
	if !found || strings.Contains(path, anything) {
		return
	}
	first, _, _ := strings.Cut(rest, "/")
	harmless := []string{
		"null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "fd", "pts", "ptmx", "shm", "mqueue",
		"console", "tcp", "udp", "log",
	}
	if !slices.Contains(harmless, first) && !strings.HasPrefix(first, "tty") {
		p.bar("it" + ruinsDisk)
	}
}

// vital reports whether a word names all of a directory that the system or its user cannot do without. In the home
// directory, chmod and similar programs count as harmless.
func (w *walker) vital(a word, name string, at dirs) bool {
	removes := name == "rm" || strings.HasSuffix(name, "find")
	return slices.ContainsFunc(a.mayBe(), func(text string) bool {
		if text == "" || strings.HasPrefix(text, "-") || !a.known && strings.Contains(text, anything) {
			return false
		}
		return slices.ContainsFunc(at.paths(text), func(path string) bool {
			if isPattern(path) {
				dir, last := filepath.Split(path)
				if path = filepath.Clean(dir); path != "/" && strings.Trim(last, ".*") != "" || isPattern(path) {
					return false
				}
			}
			return ofSystem(path) || removes && w.holdsPerson(path)
		})
	})
}

// ofSystem reports whether a path is the root of the file system, or a directory that every system has there.
func ofSystem(path string) bool {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return rest == "" && slices.Contains([]string{
		"", "bin", "boot", "dev", "etc", "home", "lib", "lib32", "lib64", "opt", "proc", "root", "run", "sbin", "srv",
		"sys", "usr", "var", "Applications", "Library", "System", "Users", "private",
	}, first)
}

// holdsPerson reports whether a path is the home directory, or contains it or the whole workspace and more.
func (w *walker) holdsPerson(path string) bool {
	home := w.place.Home
	return home != "" && pathname.Within(path, filepath.Clean(home)) && w.place.root(path) == "" ||
		path != filepath.Clean(w.place.Root) && pathname.Within(path, filepath.Clean(w.place.Root)) &&
			w.place.root(path) == ""
}

// bomb reports whether a function starts itself twice, in parallel and unconditionally.
func bomb(name string, body *syntax.Stmt) bool {
	for inner := range syntax.Preorder(body) {
		pipe, is := inner.(*syntax.BinaryCmd)
		if is && piped(pipe) && calls(name, pipe.X) && calls(name, pipe.Y) {
			return true
		}
	}
	times, apart := starts(name, body)
	return times > 1 && apart
}

// starts counts how often a statement starts a function unconditionally, and reports whether one of the calls runs in
// parallel with what follows.
func starts(name string, s *syntax.Stmt) (times int, apart bool) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if calls(name, s) {
			times = 1
		}
	case *syntax.Block:
		times, apart = startsOf(name, c.Stmts)
	case *syntax.Subshell:
		times, apart = startsOf(name, c.Stmts)
	case *syntax.BinaryCmd:
		if times, apart = starts(name, c.X); piped(c) {
			more, _ := starts(name, c.Y)
			times, apart = times+more, true
		}
	}
	return times, times > 0 && (apart || s.Background)
}

// startsOf is starts for several statements, up to one that may leave the function.
func startsOf(name string, all []*syntax.Stmt) (times int, apart bool) {
	for _, s := range all {
		for _, word := range []string{"return", "exit", "exec", "break"} {
			for inner := range syntax.Preorder(s) {
				if stmt, is := inner.(*syntax.Stmt); is && calls(word, stmt) {
					return times, apart
				}
			}
		}
		more, beside := starts(name, s)
		times, apart = times+more, apart || beside
	}
	return times, apart
}

func piped(c *syntax.BinaryCmd) bool { return c.Op == syntax.Pipe || c.Op == syntax.PipeAll }

// calls reports whether a statement is a call of this name.
func calls(name string, s *syntax.Stmt) bool {
	c, is := s.Cmd.(*syntax.CallExpr)
	return is && len(c.Args) > 0 && c.Args[0].Lit() == name
}
