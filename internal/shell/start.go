package shell

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/process"
)

// Starter makes of a line what is to be started for it: the program with its arguments, the directory and the
// environment. Streams and grace of the plan are set by who starts it. It is where walls are put around commands: one
// that wraps another program around what Plain returns has to hand on standard input, which is how the shell tells its
// last directory, and the environment.
type Starter func(line, dir string, env []string) (process.Plan, error)

// Plain starts bash, or else sh, on a line: no login, no file of the user's.
func Plain(line, dir string, env []string) (process.Plan, error) {
	path, bash, err := find(env)
	if err != nil {
		return process.Plan{}, err
	}
	name := "sh"
	argv := []string{name, "-c", script}
	if bash {
		name = "bash"
		argv = []string{name, "--noprofile", "--norc", "-c", script}
	}
	return process.Plan{Argv: append(argv, name, line), Path: path, Dir: dir, Env: env}, nil
}

// script runs a line, which is its first argument, as if it were alone. Standard input is a pipe to us. The line does
// not get it, nor do the programs that it starts: the shell keeps it aside, closed on exec, while the redirection of
// the braces holds, and has it back in the trap at the end. A line that sets a trap of its own, or becomes another
// program with exec, tells no directory; that is all it loses. It is all one line, so that the lines of what is run
// count from 1 in messages.
const script = `trap '{ set +exv; command pwd -P >&0; } 2>/dev/null' EXIT; __line=$1; shift; { eval "$__line"; } </dev/null`

// find looks for a shell in the places of the system first: PATH may name a directory that a repository put there.
func find(env []string) (path string, bash bool, err error) {
	dirs := []string{"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"}
	suffix := ""
	if runtime.GOOS == "windows" {
		dirs, suffix = nil, ".exe"
		for _, base := range []string{os.Getenv("ProgramFiles"), os.Getenv("ProgramW6432")} {
			if filepath.IsAbs(base) {
				dirs = append(dirs, filepath.Join(base, "Git", "bin"))
			}
		}
	}
	dirs = append(dirs, process.Directories(process.In(env))...)
	for _, name := range []string{"bash", "sh"} {
		for _, dir := range dirs {
			if path := filepath.Join(dir, name+suffix); process.Runs(path) {
				return path, name == "bash", nil
			}
		}
	}
	return "", false, fault.New(fault.NotInstalled, "there is no bash and no sh to run commands with").With("searched",
		dirs).
		Hint("Install bash, or put the directory that has it into PATH.")
}

// started is a line that runs.
type started struct {
	child *process.Child
	dir   *os.File // where the shell tells its last directory
}

// begin starts a line in the directory of the conversation.
func (s *Shell) begin(c Command, r *record) (*started, error) {
	line := c.Line
	if strings.TrimSpace(line) == "" {
		return nil, fault.New(fault.MissingArgument, "the command is empty")
	}
	if strings.ContainsRune(line, 0) {
		return nil, fault.New(fault.ArgError, "the command has a NUL character in it")
	}
	s.mu.Lock()
	at, dir := s.at(), s.dir
	s.mu.Unlock()
	if c.At != "" && c.At != at {
		return nil, fault.New(fault.ConcurrentModification,
			"the command was not started: it was decided about for the directory %s, which is gone; it would "+
				"begin in %s", c.At, at)
	}
	plan, err := s.starter(line, dir, s.env)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, fault.New(fault.Internal, "the command cannot be started").Because(err)
	}
	defer theirs.Close()
	plan.Stdin, plan.Stdout, plan.Stderr, plan.Grace = theirs, r.to(&r.out), r.to(&r.err), s.grace
	child, err := process.Start(plan)
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	return &started{child, ours}, nil
}

// left is the directory that the shell told, empty if it did not. All that could have the pipe is dead.
func (r *started) left() string {
	defer r.dir.Close()
	// Nothing is waited for but on systems where somebody can escape.
	_ = r.dir.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	text, _ := io.ReadAll(io.LimitReader(r.dir, 64<<10))
	dir, whole := strings.CutSuffix(string(text), "\n")
	if !whole || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}
