// Package process runs other programs to their end.
//
// It promises: a program gets exactly the arguments that it was given, as a list and never as a string for a shell; its
// input is a given text or nothing, so it cannot wait for somebody to type; its output is drained however much there
// is, and kept up to a limit; and when Run returns, the program and everything that it started in its process group (on
// Windows: its job) is dead and reaped.
//
// It never leaves a child behind, never runs on after the context has ended, and never looks for programs in
// directories that depend on where it runs. It does not see a descendant that makes its own session: on Linux such a
// process is found by a mark in its environment if the Spec names a PIDFile; otherwise it escapes. Start has a guard
// that contains such programs.
package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/fault"
)

const (
	defaultMaxOutput = 1 << 20
	defaultGrace     = 5 * time.Second

	// How long a pipe is read that a process outside the group keeps open after the group is dead. What the group
	// itself wrote is in the pipe by then and is read at once.
	drainFor = time.Second

	// How long the kernel may take to remove a killed process. A process in an uninterruptible call may need longer;
	// nothing helps then.
	deathTakes = 2 * time.Second
)

// Spec describes a program to run.
type Spec struct {
	Argv      []string      // the program and its arguments; the program is looked up in the PATH of Env
	Dir       string        // empty: ours
	Env       []string      // complete; nil: Environment(os.Environ(), EnvOptions{})
	Stdin     []byte        // nil: the null device
	MaxOutput int64         // bytes kept of each stream; 0: 1 MiB; negative: none. The rest is counted only
	Grace     time.Duration // when ctx ends: from the request to end to the kill; 0: 5 s
	PIDFile   string        // where the running child is recorded, for Sessions and EndSession; empty: nowhere
}

// Result is the outcome of a program.
type Result struct {
	Stdout, Stderr  []byte        // the first MaxOutput bytes
	StdoutBytes     int64         // written, kept or not
	StderrBytes     int64         //
	ExitCode        int           // -1 if a signal ended it
	Signal          string        // that signal, such as SIGKILL
	Duration        time.Duration //
	OutputTruncated bool          // Stdout or Stderr is not complete
	PID             int           //
}

// Run runs a program to its end. A non-zero exit is a Result, not an error. An error means that the program could not
// be started, or that ctx ended (fault.TimedOut, fault.Interrupted): then it was asked to end and killed after Grace,
// and the Result has what there was.
func Run(ctx context.Context, s Spec) (Result, error) {
	if s.Env == nil {
		s.Env = Environment(os.Environ(), EnvOptions{})
	}
	program, err := locate(s.Argv, s.Dir, s.Env)
	if err == nil {
		err = passableArguments(program, s.Argv)
	}
	if err == nil && ctx.Err() != nil {
		err = endedBy(ctx, s.Argv[0])
	}
	if err == nil && s.PIDFile != "" {
		err = recordable(s.PIDFile)
	}
	if err != nil {
		return Result{}, err
	}
	if s.Grace == 0 {
		s.Grace = defaultGrace
	}
	out, errOut := keeper(s.MaxOutput), keeper(s.MaxOutput)
	cmd := &exec.Cmd{
		Path: program, Args: s.Argv, Dir: s.Dir, Env: s.Env, Stdout: out, Stderr: errOut, WaitDelay: drainFor,
	}
	if s.Stdin != nil {
		cmd.Stdin = bytes.NewReader(s.Stdin)
	}
	began := time.Now()
	stopped, err := runGroup(ctx, s, cmd)
	if cmd.Process == nil {
		return Result{}, err
	}
	r := Result{
		Stdout: out.kept, Stderr: errOut.kept, StdoutBytes: out.seen, StderrBytes: errOut.seen,
		OutputTruncated: out.truncated() || errOut.truncated() || errors.Is(err, exec.ErrWaitDelay),
		Duration:        time.Since(began), PID: cmd.Process.Pid,
	}
	r.ExitCode, r.Signal = ending(cmd.ProcessState)
	var failed *fault.Fault
	switch {
	case errors.As(err, &failed):
		return r, err
	case stopped:
		return r, endedBy(ctx, s.Argv[0])
	case cmd.ProcessState == nil:
		return r, fault.New(fault.Internal, "the end of %s could not be observed", s.Argv[0]).Because(err)
	}
	return r, nil
}

// runGroup starts the child and returns when nothing of it is left. stopped reports that ctx ended it. The error is a
// fault, or the error of cmd.Wait.
func runGroup(ctx context.Context, s Spec, cmd *exec.Cmd) (stopped bool, err error) {
	// The kernel sends the parent-death signal when the thread that started the child ends, so this thread has to stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var mark string
	if s.PIDFile != "" {
		mark = newMark()
		cmd.Env = marked(s.Env, mark)
	}
	g, err := startGroup(cmd)
	if err != nil {
		if s.PIDFile != "" {
			settle(s.PIDFile)
		}
		return false, notStarted(s, err)
	}
	forget, unrecorded := func() {}, error(nil)
	if s.PIDFile != "" {
		forget, unrecorded = record(s.PIDFile, s.Argv[0], cmd.Process.Pid, mark)
	}
	if unrecorded != nil {
		g.kill() // it could not be found later
	}
	stopped = g.waitOrEnd(ctx, s.Grace)
	g.kill()
	if mark != "" {
		killMarked(mark)
	}
	err = g.reap(cmd)
	forget()
	if unrecorded != nil {
		err = unrecorded
	}
	return stopped, err
}

// waitOrEnd returns when the leader has exited, and reports whether ctx ended it. It does not reap the leader, so the
// number of the leader and of the group stays reserved. If ctx ended the leader, the rest of the group gets the rest of
// the grace period: a shell dies of SIGTERM long before a git that it started has removed its lock.
func (g *group) waitOrEnd(ctx context.Context, grace time.Duration) (stopped bool) {
	exited, watched := make(chan struct{}), make(chan bool)
	go func() {
		select {
		case <-exited:
			watched <- false
			return
		case <-ctx.Done():
		}
		select {
		case <-exited: // both happened: it ended by itself
			watched <- false
			return
		default:
		}
		g.terminate()
		over := time.NewTimer(grace)
		defer over.Stop()
		select {
		case <-exited:
			pollUntil(func() bool { return !g.othersAlive() }, over.C)
		case <-over.C:
			g.kill()
		}
		watched <- true
	}()
	g.waitLeader()
	close(exited)
	return <-watched
}

// reap reaps the leader of a killed group and waits for the others to be gone.
func (g *group) reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	over := time.NewTimer(deathTakes)
	defer over.Stop()
	pollUntil(func() bool { return !g.othersAlive() }, over.C)
	g.release()
	return err
}

// pollUntil calls yes until it returns true or time is up. The kernel does not report that a group is empty, so this
// has to poll.
func pollUntil(yes func() bool, over <-chan time.Time) {
	for gap := time.Millisecond; !yes(); gap = min(2*gap, 25*time.Millisecond) {
		select {
		case <-over:
			return
		case <-time.After(gap):
		}
	}
}

// head keeps the beginning of a stream and counts the rest. os/exec writes to it from one goroutine, which ends before
// it is read.
type head struct {
	max  int64
	kept []byte
	seen int64
}

func keeper(max int64) *head {
	if max == 0 {
		max = defaultMaxOutput
	}
	return &head{max: max}
}

func (h *head) Write(p []byte) (int, error) {
	h.seen += int64(len(p))
	if room := h.max - int64(len(h.kept)); room > 0 {
		h.kept = append(h.kept, p[:min(int64(len(p)), room)]...)
	}
	return len(p), nil
}

func (h *head) truncated() bool { return h.seen > int64(len(h.kept)) }

func endedBy(ctx context.Context, program string) error {
	code, what := fault.Interrupted, "was ended by a signal"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code, what = fault.TimedOut, "did not end in time"
	}
	return fault.New(code, "%s %s", program, what).With("program", program).Because(context.Cause(ctx))
}

// notStarted says why the system did not start an existing program.
func notStarted(s Spec, err error) error {
	code, program := fault.Internal, s.Argv[0]
	switch {
	case s.Dir != "" && !isDirectory(s.Dir):
		return fault.New(fault.FileMissing, "%s is not a directory to run %s in", s.Dir, program).With("path",
			s.Dir).Because(err)
	case errors.Is(err, fs.ErrPermission):
		code = fault.PermissionDenied
	case errors.Is(err, syscall.E2BIG):
		code = fault.FieldTooLarge
	case errors.Is(err, fs.ErrNotExist):
		code = fault.NotInstalled // also a script whose interpreter is missing
	case errors.Is(err, syscall.EINVAL), strings.Contains(err.Error(), "NUL"):
		code = fault.ArgError
	}
	return fault.New(code, "cannot start %s", program).With("program", program).Because(err)
}

// passableArguments refuses what a Windows batch file would not get unchanged: cmd.exe reads its whole command line as
// code (CVE-2024-24576), and no way of quoting works for every batch file.
func passableArguments(program string, argv []string) error {
	if extension := strings.ToLower(filepath.Ext(program)); runtime.GOOS != "windows" || extension != ".bat" &&
		extension != ".cmd" {
		return nil
	}
	for _, argument := range argv[1:] {
		if strings.ContainsAny(argument, "\"%!^&|<>()\r\n") {
			return fault.New(fault.ArgError, "%s is a batch file, and %q cannot be handed to one safely", program,
				argument)
		}
	}
	return nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
