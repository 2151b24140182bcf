// Package allow decides which installed agents may be started on behalf of programs: `start --agent`, an editor,
// another agent, a run. Calls without a command only check that the program does not come with the workspace.
//
// An agent is started only if the user's list and configuration allow it. The program that is started is the one that
// was checked: its files are those that were allowed, not every user may write them, and neither the program nor its
// interpreter comes with the workspace. It gets only listed variables of our environment, and only its own credentials,
// and the audit log has a line before anything runs. A file is hashed again only if its device, inode, size or one of
// its times differs.
//
// If the list cannot be read, or the permissions of the program are unknown, nothing is started. The package is not a
// sandbox: it does not restrict the program that it allows, and does not check what a script loads.
package allow

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/audit"
	"omniagent/internal/sys/process"
	"omniagent/internal/walls/shell"
)

// Gate holds what the configuration and the user's list allow.
type Gate struct {
	Allow []string // names of agents; nil: all built-in ones, and others that List allows
	More  []string // names of additional variables for agents
	Roots []string // the workspace and its repository, absolute

	List      List     // what `omniagent agents allow` and `agents deny` recorded
	Closed    bool     // only agents that List allows are started, and only as they were allowed
	Within    []string // directories in which the agent may work, absolute; nil: any
	DenyFlags []string // flags that are refused in Request.Passthrough; see docs/agents-in-conversation.md

	// Record writes an entry with Args and ErrorCode set; nil: there is no log.
	Record func(audit.Entry) error
}

// Request describes the agent to be started.
type Request struct {
	Driver  agent.Driver
	Custom  bool // the user's own file defines the agent
	Install agent.Install
	Env     []string // the environment that we have

	Dirs        []string // where the agent works, absolute
	Passthrough []string // flags in the agent's own words
}

// Admit returns the environment of the agent, or an error if the agent may not be started. It records either in the
// audit log, and fails if it cannot. It compares the files with those that were allowed, so call it just before each
// start.
func (g Gate) Admit(r Request) (env []string, err error) {
	env = g.environment(r)
	name, interpreter := r.Driver.Name(), ""
	if err = g.permitted(r, env); err == nil {
		err = g.listed(name)
	}
	if err == nil && (g.Closed || r.Custom && len(g.Allow) == 0) {
		var e Entry
		var files []File
		if e, files, err = g.looked(r); err == nil && !slices.Equal(files, e.Files) {
			_ = g.List.Renew(e, files) // if it fails, the next start hashes the files again
		}
	}
	if err == nil {
		interpreter, err = g.fit(name, r.Install, env)
	}
	if f := fault.Of(err); g.Closed && errors.Is(err, fault.Unsafe) {
		f.Code = fault.NotAllowed
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

func (g Gate) environment(r Request) []string {
	about := r.Driver.Describe()
	own := slices.Clone(about.Variables)
	for chosen, names := range about.Clouds {
		if on, _ := process.Value(r.Env, chosen); on != "" && on != "0" && on != "false" {
			own = append(own, names...)
		}
	}
	return Environment(r.Env, own, g.More, g.Roots)
}

// listed returns an error if agents.allow does not contain the agent.
func (g Gate) listed(name string) error {
	if len(g.Allow) == 0 || slices.Contains(g.Allow, name) {
		return nil
	}
	return fault.New(fault.Unsafe, "agents.allow does not let programs start %s", name).
		Hint("omniagent config set agents.allow %s --global", strings.Join(append(slices.Clone(g.Allow), name), ",")).
		With("agent", name)
}

// FromWorkspace returns the first part of an installation that comes with the workspace, or "". The parts are the path
// that is started, the target of its links, the program that replaces it, and the interpreter of its first line. env is
// the program's environment, whose PATH determines the interpreter. A file that cannot be read is ignored.
func (g Gate) FromWorkspace(in agent.Install, env []string) string {
	interpreter, _ := Interpreter(in.RealPath, env)
	for _, path := range []string{in.Path, in.RealPath, in.Program, interpreter} {
		if path != "" && g.fromWorkspace(path, env) {
			return path
		}
	}
	return ""
}

func (g Gate) fromWorkspace(path string, env []string) bool {
	return (shell.Inheritance{Roots: g.Roots}).FromWorkspace(path, env)
}

// Outside returns the PATH of an environment without the directories that come with the workspace.
func (g Gate) Outside(env []string) string {
	path, _ := process.Value(shell.Inheritance{Roots: g.Roots}.Of(env), "PATH")
	return path
}

// fit checks the program, its interpreter, and the program that is started in its place. It returns the interpreter.
func (g Gate) fit(name string, in agent.Install, env []string) (interpreter string, err error) {
	if g.fromWorkspace(in.Path, env) { // a link of the workspace can change its target at any moment
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

// sound refuses a program that comes with the workspace, or that every user may replace.
func (g Gate) sound(name, path string, env []string) error {
	refuse := func(why string) error {
		return fault.New(fault.Unsafe, "%s is not started: %s %s", name, path, why).With("path", path)
	}
	if g.fromWorkspace(path, env) {
		return refuse("comes with the workspace")
	}
	if runtime.GOOS == "windows" { // mode bits mean nothing there
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

// Interpreter returns the real path of the program that the first line of a script names, or "" if the file is not a
// script. It fails if the file cannot be read, or the interpreter does not exist.
func Interpreter(path string, env []string) (string, error) {
	words, script, err := process.Shebang(path)
	if err != nil {
		return "", fault.New(fault.Unsafe, "%s cannot be read, so it is not known what it is", path).Because(err)
	}
	if !script {
		return "", nil
	}
	name, byName := process.Interpreter(words)
	if name == "" {
		return "", fault.New(fault.Unsafe, "%s is a script that names no interpreter", path)
	}
	program := name
	if byName {
		program = process.Find(name, process.In(env))
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil || !filepath.IsAbs(program) {
		return "", fault.New(fault.NotInstalled, "%s is a script for %s, which is not there", path, name)
	}
	return real, nil
}

// Environment returns the part of our environment that an agent gets: the variables that every program gets, those that
// the agent itself reads (own), and those that the user adds (more). Names in own may end in "*". Variables that make a
// program load code are never passed on; agent.DepthVariable always is.
func Environment(base, own, more, roots []string) []string {
	names := slices.Clone(more)
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if slices.ContainsFunc(own, func(known string) bool { return like(name, known) }) {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, loads)
	env := shell.Inheritance{Roots: roots, More: names}.Of(base)
	if depth, ok := process.Value(base, agent.DepthVariable); ok {
		env = append(env, agent.DepthVariable+"="+depth)
	}
	return env
}

// loads reports whether a variable makes a program load other code.
func loads(name string) bool {
	switch name = strings.ToUpper(name); name {
	case "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "BUN_OPTIONS", "RUBYOPT", "RUBYLIB",
		"JAVA_TOOL_OPTIONS", "VSCODE_INSPECTOR_OPTIONS":
		return true
	}
	prefixes := []string{"LD_", "DYLD_", "PYTHON", "PERL"}
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
