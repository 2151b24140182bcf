// Package admission is the gate in front of every conversation with an installed agent that a program opens through us:
// `start --agent`, an editor, another agent, a run. Calls without a command ask it one of its questions: whether the
// program comes with the workspace.
//
// It promises that an agent is started only if the user's configuration lets programs start it; that what is started is
// the program that was looked at: not one that others may write, nor one that comes with the workspace, nor a script
// for an interpreter of that kind; that it gets of our environment what is on a list, and of credentials its own; and
// that there is a line in the audit log before anything runs.
//
// It refuses to guess: an agent that is not on the list, or a program of which cannot be said who may write it, is not
// started. It is no wall: the program it lets through can do what its own walls let it do.
package admission

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/audit"
	"omniagent/internal/fault"
	"omniagent/internal/lines"
	"omniagent/internal/process"
	"omniagent/internal/shell"
)

// Gate is what the configuration lets through.
type Gate struct {
	Allow []string // names of agents; nil: every built-in one
	More  []string // names of variables that agents get as well
	Roots []string // the workspace and its repository, absolute
	// Record writes an entry of which the gate has filled in Args and ErrorCode; nil: there is no log.
	Record func(audit.Entry) error
}

// Request is a conversation that somebody wants to open.
type Request struct {
	Driver  agent.Driver
	Custom  bool // a person's own file defines the agent
	Install agent.Install
	Env     []string // the environment that we have
}

// Admit says whether it may be opened, and with which environment. Both answers are recorded; where that fails nothing
// is let through.
func (g Gate) Admit(r Request) (env []string, err error) {
	env = Environment(r.Env, r.Driver.Describe().Variables, g.More, g.Roots)
	name, interpreter := r.Driver.Name(), ""
	err = g.listed(name, r.Custom)
	if err == nil {
		interpreter, err = g.fit(name, r.Install, env)
	}
	if g.Record == nil {
		return env, err
	}
	entry := audit.Entry{Args: []string{
		"agent=" + name, "path=" + r.Install.Path, "real_path=" + r.Install.RealPath, "version=" +
			r.Install.Version, "interpreter=" + interpreter,
	}}
	if r.Install.Program != "" {
		entry.Args = append(entry.Args, "program="+r.Install.Program)
	}
	if err != nil {
		entry.ErrorCode = string(fault.Of(err).Code)
	}
	if failed := g.Record(entry); failed != nil && err == nil {
		err = fault.New(fault.PermissionDenied, "a conversation with %s is not opened, because it cannot be recorded",
			name).Because(failed)
	}
	return env, err
}

func (g Gate) listed(name string, custom bool) error {
	switch {
	case slices.Contains(g.Allow, name):
		return nil
	case len(g.Allow) > 0:
		return fault.New(fault.Unsafe, "agents.allow does not let programs start %s", name).
			Hint("omniagent config set agents.allow %s", strings.Join(append(slices.Clone(g.Allow), name),
				",")).With("agent", name)
	case custom:
		return fault.New(fault.Unsafe, "%s is an agent of your own, and agents.allow does not let programs start it",
			name).
			Hint("omniagent config set agents.allow %s, with every other agent that programs may start",
				name).With("agent", name)
	}
	return nil
}

// FromWorkspace is the first part of an installation that comes with the workspace: the path that is started, where its
// links lead, the program that it hands over to, or the interpreter of its first line. Empty: none does. Env is what
// the program gets, since its PATH chooses the interpreter; what cannot be read is left to whoever starts it.
func (g Gate) FromWorkspace(in agent.Install, env []string) string {
	interpreter, _ := Interpreter(in.RealPath, env)
	for _, path := range []string{in.Path, in.RealPath, in.Program, interpreter} {
		if path != "" && g.brings(path, env) {
			return path
		}
	}
	return ""
}

func (g Gate) brings(path string, env []string) bool {
	return (shell.Inheritance{Roots: g.Roots}).Brings(path, env)
}

// Outside is PATH of an environment without the directories that come with the workspace.
func (g Gate) Outside(env []string) string {
	for _, entry := range (shell.Inheritance{Roots: g.Roots}).Of(env) {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			return value
		}
	}
	return ""
}

// fit looks at the program, at the one that its first line names, and at the one that is started in its place.
func (g Gate) fit(name string, in agent.Install, env []string) (interpreter string, err error) {
	if g.brings(in.Path, env) { // a link of the workspace can lead elsewhere a moment later
		return "", fault.New(fault.Unsafe, "%s is not started: %s comes with the workspace", name, in.Path).With("path",
			in.Path)
	}
	if err := g.sound(name, in.RealPath, env); err != nil {
		return "", err
	}
	if in.Program != "" {
		if err := g.sound(name, in.Program, env); err != nil {
			return "", err
		}
	}
	interpreter, err = Interpreter(in.RealPath, env)
	if err != nil || interpreter == "" {
		return interpreter, err
	}
	return interpreter, g.sound(name, interpreter, env)
}

// sound refuses a program that others than its owner, and those of its group, may replace.
func (g Gate) sound(name, path string, env []string) error {
	refuse := func(why string) error {
		return fault.New(fault.Unsafe, "%s is not started: %s %s", name, path, why).With("path", path)
	}
	if g.brings(path, env) {
		return refuse("comes with the workspace")
	}
	if runtime.GOOS == "windows" { // mode bits say nothing there
		return nil
	}
	for _, place := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(place)
		if err != nil {
			return refuse("cannot be looked at")
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
			return refuse("may be changed by every user of this machine: " + place + " is writable by others")
		}
	}
	return nil
}

// Interpreter is the real path of the program that the first line of a script names; empty: it is no script.
func Interpreter(path string, env []string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fault.New(fault.Unsafe, "%s cannot be read, so it is not known what it is", path).Because(err)
	}
	defer f.Close()
	in := lines.NewReader(f, 1<<10)
	in.Next()
	if err := in.Err(); err != nil {
		return "", fault.New(fault.Unsafe, "%s cannot be read, so it is not known what it is", path).Because(err)
	}
	rest, script := strings.CutPrefix(string(in.Text), "#!")
	if !script {
		return "", nil
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return "", fault.New(fault.Unsafe, "%s is a script that names no interpreter", path)
	}
	program := words[0]
	if filepath.Base(program) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool {
			return strings.HasPrefix(w, "-") ||
				strings.Contains(w, "=")
		})
		if len(words) == 0 {
			return "", fault.New(fault.Unsafe, "%s is a script that names no interpreter", path)
		}
		if program = words[0]; !filepath.IsAbs(program) {
			program = process.Find(program, process.In(env))
		}
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil || !filepath.IsAbs(program) {
		return "", fault.New(fault.NotInstalled, "%s is a script for %s, which is not there", path, words[0])
	}
	return real, nil
}

// Environment is what an agent gets of ours: what every program gets, and what it reads itself: its own login,
// addresses and settings. Names may end in "*". What makes a program load or run something is handed on to nobody,
// whoever names it.
func Environment(base, own, more, roots []string) []string {
	names := slices.Clone(more)
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		for _, known := range own {
			prefix, open := strings.CutSuffix(known, "*")
			if name == known || open && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	names = slices.DeleteFunc(names, loads)
	return shell.Inheritance{Roots: roots, More: names}.Of(base)
}

// loads says whether a variable lets a program load code before its own. A name on a list must not open that by
// accident.
func loads(name string) bool {
	switch name = strings.ToUpper(name); name {
	case "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS", "RUBYOPT", "RUBYLIB",
		"JAVA_TOOL_OPTIONS", "VSCODE_INSPECTOR_OPTIONS":
		return true
	}
	for _, prefix := range []string{"LD_", "DYLD_", "PYTHON", "PERL"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
