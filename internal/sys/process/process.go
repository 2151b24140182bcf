// Package process runs other programs to their end.
//
// It promises: a program gets exactly the arguments that it was given, as a list and never as a string for a shell; its
// input is a given text or nothing, so it cannot wait for somebody to type; its output is drained however much there
// is, and kept up to a limit; and when Run returns, the program and everything that it started is dead and reaped, on
// Linux also what has made its own session. A guard, a second process, ensures that even if we die.
//
// It never leaves a child behind, never runs on after the context has ended, and never looks for programs in
// directories that depend on where it runs. It does not contain programs that try to escape.
package process

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/kit/fault"
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
	Dir       string        // see Programs.Start
	Env       []string      // further variables
	Stdin     []byte        // nil: the null device
	MaxOutput int64         // bytes kept of each stream; 0: 1 MiB; negative: none. The rest is counted only
	Grace     time.Duration // when ctx ends: from the request to end to the kill; 0: 5 s
	Register  *Register     // where the running child is listed; nil: nowhere
}

// Result is the outcome of a program.
type Result struct {
	Stdout, Stderr  []byte        // the first MaxOutput bytes
	StdoutBytes     int64         // written, kept or not
	ExitCode        int           // -1 if a signal ended it
	Signal          string        // that signal, such as SIGKILL
	Duration        time.Duration //
	OutputTruncated bool          // Stdout or Stderr is not complete
}

func run(ctx context.Context, s Spec, start func(Plan) (*Child, error)) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, endedBy(ctx, strings.Join(s.Argv[:min(1, len(s.Argv))], ""))
	}
	most := cmp.Or(s.MaxOutput, defaultMaxOutput)
	out, errOut := &Head{Most: most}, &Head{Most: most}
	plan := Plan{
		Argv: s.Argv, Dir: s.Dir, Env: s.Env, Stdout: out, Stderr: errOut, Grace: s.Grace, Register: s.Register,
	}
	if s.Stdin != nil {
		plan.Stdin = bytes.NewReader(s.Stdin)
	}
	child, err := start(plan)
	if err != nil {
		return Result{}, err
	}
	defer context.AfterFunc(ctx, func() { child.End(syscall.SIGTERM) })()
	end := child.Wait()
	if end.Ended {
		err = endedBy(ctx, s.Argv[0])
	}
	return Result{
		Stdout: out.Kept, Stderr: errOut.Kept, StdoutBytes: out.seen,
		ExitCode: end.ExitCode, Signal: end.Signal, Duration: end.Duration,
		OutputTruncated: out.truncated() || errOut.truncated() || end.Lost != nil,
	}, err
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

// Head keeps the beginning of a stream and counts the rest. It is written to from one goroutine, which ends before it
// is read.
type Head struct {
	Most int64 // bytes
	Kept []byte
	seen int64
}

// Write keeps the part of p for which there is room.
func (h *Head) Write(p []byte) (int, error) {
	h.seen += int64(len(p))
	if room := h.Most - int64(len(h.Kept)); room > 0 {
		h.Kept = append(h.Kept, p[:min(int64(len(p)), room)]...)
	}
	return len(p), nil
}

func (h *Head) truncated() bool { return h.seen > int64(len(h.Kept)) }

func endedBy(ctx context.Context, program string) error {
	code, what := fault.Interrupted, "was ended by a signal"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code, what = fault.TimedOut, "did not end in time"
	}
	return fault.New(code, "%s %s", program, what).With("program", program).Because(context.Cause(ctx))
}

// notStarted returns why the system did not start an existing program.
func notStarted(p Plan, err error) error {
	code, program := fault.Internal, p.Name
	switch {
	case p.Dir != "" && !isDirectory(p.Dir):
		return fault.New(fault.FileMissing, "%s is not a directory to run %s in", p.Dir, program).With("path", p.Dir).
			Because(err)
	case errors.Is(err, fs.ErrPermission):
		code = fault.PermissionDenied
	case errors.Is(err, syscall.E2BIG):
		code = fault.FieldTooLarge
	case errors.Is(err, fs.ErrNotExist):
		code = fault.NotInstalled
		if words, _, _ := Shebang(p.Path); len(words) > 0 {
			return fault.New(code, "cannot start %s: it needs %s, which is not there", program, words[0]).
				With("program", program).Because(err)
		}
	case errors.Is(err, syscall.EINVAL), strings.Contains(err.Error(), "NUL"):
		code = fault.ArgError
	}
	return fault.New(code, "cannot start %s", program).With("program", program).Because(err)
}

// Shebang returns the words after #! in the first line of a script. script is false for any other file.
func Shebang(path string) (words []string, script bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	line, err := bufio.NewReader(io.LimitReader(file, 1<<10)).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	text, script := strings.CutPrefix(line, "#!")
	if !script {
		return nil, false, nil
	}
	return strings.Fields(text), true, nil
}

// Interpreter returns the program that the words of a Shebang name, or "". byName means that env looks it up in PATH.
func Interpreter(words []string) (program string, byName bool) {
	if len(words) == 0 {
		return "", false
	}
	if filepath.Base(words[0]) != "env" {
		return words[0], false
	}
	i := slices.IndexFunc(words[1:], func(w string) bool { return w[0] != '-' && !strings.Contains(w, "=") })
	if i < 0 {
		return "", false
	}
	program = words[1+i]
	return program, !filepath.IsAbs(program)
}

// passableArguments refuses arguments that a Windows batch file would not get unchanged: cmd.exe reads its whole
// command line as code (CVE-2024-24576), and no quoting works for every batch file.
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
