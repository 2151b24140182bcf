//go:build unix

package shim

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// agent puts a shell script in the place of a stub.
func (w *world) agent(name, script string) {
	w.t.Helper()
	path := filepath.Join(w.bin, name)
	_ = os.Remove(path)
	if err := hermetic.WriteProgram(path, []byte("#!/bin/bash\n"+script), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// begun starts a call, and returns when the agent has printed a line.
func begun(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestIgnoredSignals: what nohup or a shell in front of a job in the background has switched off stays so.
func TestIgnoredSignals(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"HUP", "INT"} {
		w := newWorld(t)
		w.agent("codex", "echo begun; while [ ! -e \"$HOME/go\" ]; do /bin/sleep 0.02; done; echo done\n")
		cmd := w.command("--agent", "codex", "-p", "x")
		script := `trap "" ` + name + `; exec "$0" "$@"`
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", script, program}, cmd.Args[1:]...)
		lines := begun(t, cmd)
		signal := map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT}[name]
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.home+"/go", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil || string(rest) != "done\n" {
			t.Errorf("%s: %v, %q", name, err, rest)
		}
	}
}

// TestQuit: it ends the agent as the other signals do, and nothing of ours is left on the screen or on the disk.
func TestQuit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("codex", "trap 'echo asked; exit 0' QUIT; echo begun; while :; do /bin/sleep 0.02; done\n")
	cmd := w.command("--agent", "codex", "-p", "x")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	lines := begun(t, cmd)
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 131 || string(rest) != "asked\n" ||
		strings.Contains(stderr.String(), "goroutine") {
		t.Errorf("exit code %d, %q, %s", code, rest, stderr.String())
	}
}

// TestTwoSignalsAtOnceAreOne: an agent that tidies up is given its time when the signal came twice, as it does from a
// closed window.
func TestTwoSignalsAtOnceAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("codex", "trap '/bin/sleep 0.3; echo tidied; exit 0' TERM; echo begun; while :; do /bin/sleep 0.02; done\n")
	cmd := w.command("--agent", "codex", "-p", "x")
	lines := begun(t, cmd)
	for range 3 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // two signals in one moment would be one to us too
	}
	rest, _ := io.ReadAll(lines)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 143 || string(rest) != "tidied\n" {
		t.Errorf("exit code %d, %q", code, rest)
	}
}

// TestStderrThatTakesNothing: the agent goes on, and so do we.
func TestStderrThatTakesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const script = "for i in 1 2 3 4 5; do echo line $i >&2; /bin/sleep 0.02; done; echo reached\n"
	w.agent("codex", script)
	broken := func(t *testing.T) *os.File {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		return write
	}
	full := func(t *testing.T) *os.File {
		file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("there is no /dev/full here:", err)
		}
		return file
	}
	for name, open := range map[string]func(*testing.T) *os.File{"nobody reads it": broken, "full": full} {
		t.Run(name, func(t *testing.T) {
			cmd := w.command("--agent", "codex", "-p", "x", "--report", w.root+"/report.json")
			stderr := open(t)
			defer stderr.Close()
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, stderr
			if err := runWithin(cmd, 20*time.Second); err != nil || out.String() != "reached\n" {
				t.Errorf("%v, %q", err, out.String())
			}
			if _, err := os.Stat(w.root + "/report.json"); err != nil {
				t.Error(err)
			}
			_ = os.Remove(w.root + "/report.json")
		})
	}
}

// TestOurWordsBeginALine: what the agent left unfinished on stderr is not continued by us.
func TestOurWordsBeginALine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("codex", "printf unfinished >&2; exit 1\n")
	if r := w.run(nil, "--agent", "codex", "-p", "x"); r.code != 1 ||
		!strings.HasPrefix(r.stderr, "unfinished\nomniagent: codex: ") {
		t.Errorf("%+v", r)
	}
}

// TestReaderIsGone: if the reader of the output is gone, that is the reason in the report, and not the agent.
func TestReaderIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.agent("codex", "trap '' PIPE; while echo line 2> /dev/null; do :; done; exit 9\n")
	cmd := w.command("--agent", "codex", "-p", "x", "--report", filepath.Join(w.home, "report"))
	var said strings.Builder
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_ = out.Close()
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_ = cmd.Wait()
	report, _ := os.ReadFile(filepath.Join(w.home, "report"))
	const want = "ended with exit code 9, and nobody reads standard output any more"
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), want) ||
		!strings.Contains(string(report), `"OUTPUT_FAILED"`) {
		t.Errorf("exit %d\n%s\n%s", cmd.ProcessState.ExitCode(), said.String(), report)
	}
}
