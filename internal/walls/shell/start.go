package shell

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

// Starter returns how to start a line: the program with its arguments, the directory and the environment. The caller
// sets the streams and the grace period. A sandbox is a Starter: if it wraps another program around what Plain returns,
// it has to pass on the environment and standard input, through which the shell reports its last directory.
type Starter func(line, dir string, env []string) (process.Plan, error)

// Plain starts bash, or else sh, on a line: no login shell, and no startup file of the user.
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

// script runs a line, its first argument, as if it were alone. Standard input is a pipe to us. Neither the line nor the
// programs that it starts get that: while the redirection of the braces applies, the shell keeps the pipe aside, closed
// on exec, and restores it for the trap at the end. A line that sets its own trap, or replaces the shell with exec,
// reports no directory; that is all it loses. The script is a single line, so that line numbers in messages count from
// 1.
const script = `trap '{ set +exv; command pwd -P >&0; } 2>/dev/null' EXIT; __line=$1; shift; { eval "$__line"; } </dev/null`

// find looks for a shell in the system's directories first: PATH may have a directory that a repository filled.
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

// runningLine is a running line.
type runningLine struct {
	child *process.Child
	dir   *os.File // the shell writes its last directory here
}

// begin starts a line in the directory of the conversation, unless ctx or the conversation has ended meanwhile.
func (s *Shell) begin(ctx context.Context, c Command, r *commandOutput) (*runningLine, error) {
	line := c.Line
	if strings.TrimSpace(line) == "" {
		return nil, fault.New(fault.MissingArgument, "the command is empty")
	}
	if strings.ContainsRune(line, 0) {
		return nil, fault.New(fault.ArgError, "the command has a NUL character in it")
	}
	if s.ready != nil {
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	at, dir := s.at(), s.dir
	s.mu.Unlock()
	if c.At != "" && c.At != at {
		return nil, fault.New(fault.ConcurrentModification,
			"the command was not started: it was decided about for the directory %s, which is gone; it would "+
				"begin in %s", c.At, at)
	}
	start := s.starter
	if c.Network && s.opened != nil {
		start = s.opened
	}
	plan, err := start(line, dir, s.env)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil || s.over.Err() != nil { // building walls takes its time
		if plan.After != nil {
			plan.After(nil)
		}
		return nil, fault.New(fault.Interrupted, "the command was not started: the turn was ended").
			Because(context.Cause(ctx))
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
	return &runningLine{child, ours}, nil
}

// finalDir returns the directory that the shell reported, or "". All processes with the pipe are dead.
func (r *runningLine) finalDir() string {
	defer r.dir.Close()
	// The deadline only matters on systems where processes can escape. It is long, since a busy machine may let it pass
	// before the first read, and then the directory would be lost.
	_ = r.dir.SetReadDeadline(time.Now().Add(5 * time.Second))
	text, _ := io.ReadAll(io.LimitReader(r.dir, 64<<10))
	dir, whole := strings.CutSuffix(string(text), "\n")
	if !whole || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}
