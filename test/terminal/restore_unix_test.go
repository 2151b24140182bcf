//go:build unix

package terminal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/testkit/hermetic"
)

// session starts a shell that has the terminal for the programs in a script. TALK is the program, OUT a directory.
func session(t *testing.T, script string) (w *window, out string) {
	t.Helper()
	if _, err := exec.LookPath("stty"); err != nil {
		t.Skip("stty is not here")
	}
	out = t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "TALK="+talk, "OUT="+out, "NO_COLOR=")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	w = &window{t: t, master: master, cmd: cmd, ended: make(chan error, 1), loaded: make(chan struct{})}
	go w.read()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = master.Close()
		<-w.loaded
	})
	return w, out
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// process returns the number of the talk that a script has started, which its marker names.
func process(t *testing.T, out string) int {
	t.Helper()
	for end := time.Now().Add(hermetic.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		files, _ := filepath.Glob(filepath.Join(out, "state", "terminals", "*.json"))
		for _, file := range files {
			data, _ := os.ReadFile(file)
			_, rest, _ := strings.Cut(string(data), `"pid":`)
			number, _, _ := strings.Cut(rest, ",")
			if pid, err := strconv.Atoi(number); err == nil {
				return pid
			}
		}
	}
	t.Fatal("there is no marker of the terminal")
	return 0
}

// TestRestored: whatever ends the program, the terminal is as it was, with an odd setting that was there before.
func TestRestored(t *testing.T) {
	t.Parallel()
	const script = `stty -ixon erase '^H'; stty -a >"$OUT/before"
"$TALK" -state "$OUT/state" 2>"$OUT/errors"; echo $? >"$OUT/code"
stty -a >"$OUT/after"; ls "$OUT/state/terminals" >"$OUT/left"`
	for name, tt := range map[string]struct {
		do   func(w *window, pid func() int)
		code string
	}{
		"quit":      {func(w *window, _ func() int) { w.types("/quit\r") }, "0"},
		"Ctrl-D":    {func(w *window, _ func() int) { w.types("\x04") }, "0"},
		"Ctrl-C":    {func(w *window, _ func() int) { w.types("\x03"); w.sees("again leaves"); w.types("\x03") }, "0"},
		"panic":     {func(w *window, _ func() int) { w.types("/panic\r") }, "2"},
		"SIGTERM":   {func(_ *window, pid func() int) { _ = syscall.Kill(pid(), syscall.SIGTERM) }, "0"},
		"SIGHUP":    {func(_ *window, pid func() int) { _ = syscall.Kill(pid(), syscall.SIGHUP) }, "0"},
		"in a turn": {func(w *window, _ func() int) { w.types("hello\r"); w.sees("answer"); w.types("/quit\r") }, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, out := session(t, script)
			w.sees("say something")
			tt.do(w, func() int { return process(t, out) })
			_ = w.ends()
			if before, after := read(t, out, "before"), read(t, out, "after"); before != after {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
			if code := read(t, out, "code"); code != tt.code {
				t.Errorf("exit %s, want %s; %s", code, tt.code, read(t, out, "errors"))
			}
			if left := read(t, out, "left"); left != "" {
				t.Errorf("left behind: %s", left)
			}
			if written := w.written(); strings.LastIndex(written, "\x1b[?2004l") < strings.LastIndex(written,
				"\x1b[?2004h") {
				t.Errorf("pastes are still bracketed: %q", written)
			}
		})
	}
}

// TestRecovered: after kill -9 the terminal is raw, and the next start puts it back.
func TestRecovered(t *testing.T) {
	t.Parallel()
	w, out := session(t, `stty -a >"$OUT/before"
"$TALK" -state "$OUT/state"; stty -a >"$OUT/killed"
"$TALK" -state "$OUT/state" </dev/null
"$TALK" -state "$OUT/state"; stty -a >"$OUT/after"`)
	w.sees("say something")
	if err := syscall.Kill(process(t, out), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.sees("the terminal is as it was")
	w.await("a second prompt", func() bool { return strings.Count(w.written(), "say something") == 2 })
	w.types("/quit\r")
	_ = w.ends()
	if before, killed := read(t, out, "before"), read(t, out, "killed"); before == killed {
		t.Error("kill -9 left nothing to put back")
	}
	if before, after := read(t, out, "before"), read(t, out, "after"); before != after {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// TestLeftAlone: what a person has put right, or a program that lives needs, is not touched.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	w, out := session(t, `"$TALK" -state "$OUT/state"; stty sane; stty -echo; stty -a >"$OUT/mended"
"$TALK" -state "$OUT/state"; stty -a >"$OUT/after"`)
	w.sees("say something")
	if err := syscall.Kill(process(t, out), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.await("a second prompt", func() bool { return strings.Count(w.written(), "say something") == 2 })
	w.types("/quit\r")
	_ = w.ends()
	if strings.Contains(w.written(), "as it was") {
		t.Error("a terminal that was put right is put back")
	}
	if mended, after := read(t, out, "mended"), read(t, out, "after"); mended != after {
		t.Errorf("mended\n%s\nafter\n%s", mended, after)
	}
}

// TestStopped: Ctrl-Z gives the terminal to the shell, and fg takes it back with what was typed.
func TestStopped(t *testing.T) {
	t.Parallel()
	const bash = "/bin/bash"
	if _, err := os.Stat(bash); err != nil {
		t.Skip("there is no /bin/bash here")
	}
	w, _ := session(t, `PS1='ready> ' exec `+bash+` --norc --noprofile --noediting -i`)
	w.sees("ready> ")
	w.types("\"$TALK\"\n")
	w.sees("say something")
	w.types("half a mess\x1a")
	w.await("a prompt of the shell", func() bool { return strings.Count(w.written(), "ready> ") == 2 })
	w.types("echo in$((1))between\n")
	w.sees("in1between")
	w.types("fg\n")
	w.await("the prompt again", func() bool {
		_, after, _ := strings.Cut(w.written(), "in1between")
		return strings.Contains(after, "> half a mess")
	})
	time.Sleep(300 * time.Millisecond)
	if _, after, _ := strings.Cut(w.written(), "in1between"); strings.Count(after, "half a mess") != 1 {
		t.Errorf("the prompt is there more than once: %q", after)
	}
	w.types("age\r")
	w.sees("> half a message")
	w.types("/quit\r")
	w.await("the shell", func() bool { return strings.Count(w.written(), "ready> ") >= 4 })
}

// TestQuestions: the picker, the question and the pager, between which the conversation goes on.
func TestQuestions(t *testing.T) {
	t.Parallel()
	w, _ := session(t, `printf 'wait '; read -r line; PAGER=cat exec "$TALK"`)
	w.sees("wait ")
	w.types("\n/pick\r") // typed before anybody reads it
	w.sees("the second")
	w.types("\x1b[Bga\x7f\x7fbe\r")
	w.sees("chosen: beta")
	w.types("/ask\r")
	w.sees("Go on? [y/N]")
	w.types("y")
	w.sees("Go on? yes")
	w.types("/page\r")
	w.sees("The end.")
	w.types("/quit\r")
	if err := w.ends(); err != nil {
		t.Error(err)
	}
}
