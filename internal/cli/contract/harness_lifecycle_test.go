package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// The tests of ends and streams also need processes whose output is read while they run.

// validateSees returns a Validate that calls see and finds nothing wrong.
func validateSees(see func()) func(*Call) []fault.Problem {
	return func(*Call) []fault.Problem { see(); return nil }
}

// tmp is the directory that temporary directories are made in.
func (w *world) tmp() string {
	for _, entry := range w.env {
		if dir, ok := strings.CutPrefix(entry, "TMPDIR="); ok {
			return dir
		}
	}
	return ""
}

// wrapped is cmd started by another program, which gets its path and arguments after its own.
func (w *world) wrapped(cmd *exec.Cmd, argv ...string) *exec.Cmd {
	outer := exec.Command(argv[0], append(argv[1:], append([]string{cmd.Path}, cmd.Args[1:]...)...)...)
	outer.Env, outer.Dir = cmd.Env, cmd.Dir
	return outer
}

// await returns once the file exists in the directory.
func (w *world) await(t *testing.T, name string) {
	t.Helper()
	for deadline := time.Now().Add(hermetic.Patience); ; {
		if _, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody made %s", name)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func (w *world) make(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// startThis does the same as start for a given command.
func (w *world) startThis(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	s := begin(t, cmd)
	w.await(t, "ready")
	return s
}

// begin starts a command without waiting for its handler.
func begin(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	s := &started{cmd: cmd, stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = s.stdout, s.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- cmd.Wait() }()
	return s
}

// following is a process whose standard output is read line by line while it runs.
type following struct {
	cmd    *exec.Cmd
	lines  *bufio.Reader
	stderr *bytes.Buffer
}

func (w *world) follow(t *testing.T, args ...string) *following {
	t.Helper()
	return followed(t, w.command(args...))
}

// followed starts a process whose lines are read as they come.
func followed(t *testing.T, cmd *exec.Cmd) *following {
	t.Helper()
	f := &following{cmd: cmd, stderr: &bytes.Buffer{}}
	f.cmd.Stderr = f.stderr
	out, err := f.cmd.StdoutPipe()
	if err == nil {
		err = f.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	f.lines = bufio.NewReader(out)
	watchdog := time.AfterFunc(hermetic.Patience, func() { _ = f.cmd.Process.Kill() })
	t.Cleanup(func() { watchdog.Stop(); _ = f.cmd.Process.Kill() })
	return f
}

// line is the next line, as soon as it is there.
func (f *following) line(t *testing.T) string {
	t.Helper()
	line, err := f.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("no further line: %v %q %s", err, line, f.stderr)
	}
	return line
}

// end reads what is left and waits for the process.
func (f *following) end(t *testing.T) (lines []string, code int) {
	t.Helper()
	rest, err := io.ReadAll(f.lines)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.cmd.Wait()
	for line := range strings.Lines(string(rest)) {
		lines = append(lines, line)
	}
	return lines, f.cmd.ProcessState.ExitCode()
}

func decode(t *testing.T, line string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%v: %q", err, line)
	}
	return m
}
