//go:build unix

package contract

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

func TestSignals(t *testing.T) {
	t.Parallel()
	t.Run("TERM", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).start(t, "hang").end(t, syscall.SIGTERM)
		a.wantEnd(t, 143)
		a.wantAt(t, map[string]any{
			"error.code": "CANCELLED", "error.signal": "SIGTERM", "meta.partial": true,
			"error.retryable": false,
		})
		if a.took > hermetic.Patience {
			t.Errorf("took %v", a.took)
		}
		w := newWorld(t)
		b := w.start(t, "polite").end(t, syscall.SIGTERM)
		b.wantEnd(t, 143)
		b.wantAt(t, map[string]any{"data.value": "half", "data.partial": true, "meta.partial": true})
		w.await(t, "cleaned")
	})
	t.Run("INT", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).start(t, "hang").end(t, syscall.SIGINT)
		a.wantEnd(t, 130)
		a.wantAt(t, map[string]any{"error.code": "CANCELLED", "error.signal": "SIGINT"})
	})
	t.Run("ignored from the beginning", func(t *testing.T) { // as nohup does, and a shell for a background job
		t.Parallel()
		w := newWorld(t)
		asked := w.command("hang")
		cmd := exec.Command("/bin/sh", append([]string{"-c", `trap "" HUP INT; exec "$0" "$@"`}, asked.Args...)...)
		cmd.Dir, cmd.Env = asked.Dir, asked.Env
		w.startThis(t, cmd).end(t, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM).wantEnd(t, 143)
	})
	t.Run("second", func(t *testing.T) {
		t.Parallel()
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			w := newWorld(t)
			w.env = append(w.env, "OMNIAGENT_GRACE=1h") // only the second signal can end it in time
			s := w.start(t, "stubborn")
			if err := s.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			w.await(t, "told")
			a := s.end(t, sig)
			a.wantEnd(t, 128+int(sig))
			if a.took > hermetic.Patience {
				t.Errorf("%v took %v", sig, a.took)
			}
		}
	})
	t.Run("second while cleaning up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		s := w.start(t, "hooks", "slow")
		for range 2 {
			if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			w.await(t, "cleaning")
		}
		w.make(t, "go")
		s.end(t).wantEnd(t, 143)
	})
	t.Run("children", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env = append(w.env, "OMNIAGENT_GRACE=300ms")
		f := w.follow(t, "parent")
		w.await(t, "ready")
		if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		envelope := validEnvelope(t, f.line(t))
		pid, err := strconv.Atoi(strings.TrimSpace(w.read(t, "pid")))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("the child lives after the answer: %v", err)
		}
		if _, code := f.end(t); code != 143 || envelope["error"].(map[string]any)["signal"] != "SIGTERM" {
			t.Errorf("exit %d %v", code, envelope)
		}
	})
	t.Run("lock freed", func(t *testing.T) {
		t.Parallel()
		for _, how := range []string{"hang", "polite"} {
			w := newWorld(t)
			w.start(t, "ends", how).end(t, syscall.SIGTERM)
			wantFree(t, filepath.Join(w.dir, "lock"))
		}
	})
	t.Run("before the run", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		cmd := w.command("ids", "-")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		s := begin(t, cmd)
		// More than a pipe holds: once it is written, somebody is reading.
		if _, err := in.Write([]byte(strings.Repeat("x", 200<<10))); err != nil {
			t.Fatal(err)
		}
		a := s.end(t, syscall.SIGTERM)
		a.wantEnd(t, 143)
		if a.took > hermetic.Patience {
			t.Errorf("took %v", a.took)
		}
	})
}

func TestBrokenPipe(t *testing.T) {
	t.Parallel()
	broken := func(t *testing.T, w *world, args ...string) answered {
		t.Helper()
		r, pipe, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		defer pipe.Close()
		var stderr strings.Builder
		cmd := w.command(args...)
		cmd.Stdout, cmd.Stderr = pipe, &stderr
		err = cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return answered{stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	}
	t.Run("safe", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{{"ok"}, {"rows", "5", "--stream"}, {"ok", "--output", "plain"}} {
			if a := broken(t, newWorld(t), args...); a.code != 0 || a.stderr != "" {
				t.Errorf("%v: exit %d %q", args, a.code, a.stderr)
			}
		}
	})
	t.Run("mutating", func(t *testing.T) {
		t.Parallel()
		for how, code := range map[string]int{"well": 0, "badly": 6} {
			w := newWorld(t)
			if a := broken(t, w, "change", "--how", how); a.code != code {
				t.Errorf("%s: exit %d %s", how, a.code, a.stderr)
			}
			if entries := w.audit(t); len(entries) != 1 || entries[0]["exit_code"] != float64(code) {
				t.Errorf("%s: %v", how, entries)
			}
		}
	})
}
