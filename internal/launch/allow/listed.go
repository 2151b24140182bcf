package allow

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
)

// Facts returns the entry that allows this program: its paths, its interpreter, and the hashes of its files. It refuses
// a program that every user may change, or that comes with the workspace.
func (g Gate) Facts(r Request) (Entry, error) {
	e := Entry{Name: r.Driver.Name(), At: time.Now(), Path: r.Install.Path, RealPath: r.Install.RealPath}
	env := g.environment(r)
	var err error
	if e.Interpreter, err = g.safe(r, env); err != nil {
		return e, err
	}
	e.Program = r.Install.Program
	if e.Files, err = Fingerprint(e.RealPath); err != nil {
		return e, unreadable(e.Name, e.RealPath, err)
	}
	for _, path := range []string{e.Program, e.Interpreter} {
		if path == "" || slices.ContainsFunc(e.Files, func(f File) bool { return f.Path == path }) {
			continue
		}
		f, err := Digest(path)
		if err != nil {
			return e, unreadable(e.Name, path, err)
		}
		e.Files = append(e.Files, f)
	}
	return e, nil
}

func unreadable(name, path string, err error) error {
	return fault.New(fault.NotAllowed, "%s is not started: %s cannot be read", name, path).With("path", path).
		Because(err)
}

// Listed returns an error if the program is not the one that the user allowed by `omniagent agents allow`. Unlike
// Admit, it writes nothing.
func (g Gate) Listed(r Request) error {
	_, _, err := g.looked(r)
	return err
}

// looked returns the entry of the program and its files with their present times, or an error if it is not the program
// that the user allowed.
func (g Gate) looked(r Request) (e Entry, files []File, err error) {
	name, env := r.Driver.Name(), g.environment(r)
	e, ok, err := g.entry(name, env)
	if err != nil {
		return e, nil, err
	}
	if !ok {
		return e, nil, refused(name, "it has not been allowed")
	}
	interpreter, err := g.safe(r, env)
	if err != nil {
		return e, nil, err
	}
	for _, part := range []struct{ what, now, then string }{
		{"the program", r.Install.RealPath, e.RealPath},
		{"the program that is started in its place", r.Install.Program, e.Program},
		{"its interpreter", interpreter, e.Interpreter},
	} {
		if part.now != part.then {
			now, then := cmp.Or(part.now, "none"), cmp.Or(part.then, "none")
			return e, nil, refused(name, part.what+" is "+now+", and "+then+" was allowed").With("path", part.now)
		}
	}
	files, err = unchanged(e)
	return e, files, err
}

// entry returns the entry of an agent. It fails if the agent is denied, or the list comes with the workspace.
func (g Gate) entry(name string, env []string) (e Entry, ok bool, err error) {
	switch e, ok, err = g.List.Find(name); {
	case err != nil || !ok:
	case e.Denied:
		err = refused(name, "`omniagent agents deny` refuses it")
	case g.fromWorkspace(g.List.File(), env):
		err = fault.New(fault.NotAllowed, "%s is not started: the list of agents %s comes with the workspace", name,
			g.List.File()).With("path", g.List.File()).Hint("set XDG_STATE_HOME to another place")
	}
	return e, ok, err
}

// unchanged returns the files of an entry with their present times, or an error if one has other content.
func unchanged(e Entry) ([]File, error) {
	files := slices.Clone(e.Files)
	for i, f := range e.Files {
		now, same := f.Again()
		if !same {
			return nil, refused(e.Name, f.Path+" is not the file that was allowed on "+e.At.Format(time.DateOnly)).
				With("path", f.Path)
		}
		files[i] = now
	}
	return files, nil
}

func refused(name, why string) *fault.Fault {
	return fault.New(fault.NotAllowed, "%s is not started: %s", name, why).With("agent", name).
		Hint("look at the program, then run: omniagent agents allow %s", name)
}

// safe checks what fit checks, every directory above each file, and that PATH has no relative entry.
func (g Gate) safe(r Request, env []string) (interpreter string, err error) {
	name := r.Driver.Name()
	path, _ := process.Value(r.Env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			return "", fault.New(fault.NotAllowed, "%s is not started: PATH has the relative entry %q", name, dir).
				Hint("take it out of PATH, then run: omniagent agents allow %s", name)
		}
	}
	interpreter, err = Interpreter(r.Install.RealPath, env)
	if err != nil {
		return "", err
	}
	for _, file := range []string{r.Install.RealPath, r.Install.Program, interpreter, r.Install.Path} {
		if place := openPlace(file); place != "" {
			return "", fault.New(fault.NotAllowed, "%s is not started: every user of this machine may change %s",
				name, place).With("path", place).
				Hint("chmod o-w %s, then run: omniagent agents allow %s", place, name)
		}
	}
	return g.fit(name, r.Install, env)
}

// openPlace returns the file, or the nearest directory above it, that every user may write, or "". It ignores sticky
// directories, in which nobody can replace the files of others.
func openPlace(file string) string {
	if file == "" || runtime.GOOS == "windows" { // mode bits mean nothing there
		return ""
	}
	for at := filepath.Clean(file); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// permitted returns an error if the agent is denied, may not work in one of the directories, or may not be given one of
// the flags.
func (g Gate) permitted(r Request, env []string) error {
	name := r.Driver.Name()
	if _, _, err := g.entry(name, env); err != nil {
		return err
	}
	for _, dir := range r.Dirs {
		if len(g.Within) > 0 && !slices.ContainsFunc(g.Within, func(root string) bool { return within(dir, root) }) {
			return fault.New(fault.NotAllowed, "%s may not work in %s: agents.%s.roots does not contain it", name, dir,
				name).With("path", dir).Hint("omniagent config get agents.%s.roots", name)
		}
	}
	for _, pattern := range g.DenyFlags {
		if arg := passed(r.Passthrough, pattern); arg != "" {
			return fault.New(fault.NotAllowed, "%s may not be given %s: agents.%s.deny_flags refuses %s", name, arg,
				name, pattern).With("flag", arg).Hint("leave it out")
		}
	}
	return nil
}

// within reports whether a directory is root or below it, after following all links. It returns false if either does
// not exist.
func within(dir, root string) bool {
	real, err := filepath.EvalSymlinks(dir)
	base, wrong := filepath.EvalSymlinks(root)
	return err == nil && wrong == nil && filepath.IsAbs(root) && pathname.Within(base, real)
}

// passed returns the first argument that a pattern refuses, or "". A pattern is a flag, optionally followed by a space
// and a value; either may end in "*", which matches anything. The value may follow "=", be the next argument, or follow
// a flag of one letter directly. Arguments after "--" count too, because agents treat it differently.
func passed(args []string, pattern string) string {
	flag, value, valued := strings.Cut(strings.TrimSpace(pattern), " ")
	for i, arg := range args {
		name, given, inline := strings.Cut(arg, "=")
		if short := len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && len(flag) == 2; short && arg[:2] == flag {
			name, given, inline = flag, strings.TrimPrefix(arg[2:], "="), true
		}
		if !inline && i+1 < len(args) {
			given = args[i+1]
		}
		if like(name, flag) && (!valued || like(given, strings.TrimSpace(value))) {
			return arg
		}
	}
	return ""
}

func like(word, pattern string) bool {
	prefix, open := strings.CutSuffix(pattern, "*")
	return word == pattern || open && strings.HasPrefix(word, prefix)
}
