//go:build unix

package contract

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/testkit/hermetic"
)

// onTerminal runs the program with all three streams on pseudo terminals, one for standard error alone.
func (w *world) onTerminal(t *testing.T, args ...string) answered {
	t.Helper()
	var a answered
	var readers sync.WaitGroup
	open := func(into *string) *os.File {
		master, tty, err := pty.Open()
		if err != nil {
			t.Skipf("no pseudo terminals here: %v", err)
		}
		readers.Go(func() {
			var b bytes.Buffer
			_, _ = io.Copy(&b, master) // ends with an error when the last process has closed the other side
			*into = strings.ReplaceAll(b.String(), "\r\n", "\n")
			_ = master.Close()
		})
		return tty
	}
	out, errs := open(&a.stdout), open(&a.stderr)
	cmd := w.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = out, out, errs
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(hermetic.Patience, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	_ = out.Close()
	_ = errs.Close()
	_ = cmd.Wait()
	readers.Wait()
	a.code, a.took = cmd.ProcessState.ExitCode(), time.Since(begun)
	if json.Unmarshal([]byte(a.stdout), &a.envelope) != nil {
		a.envelope = nil
	}
	return a
}

func TestAutomaticJSON(t *testing.T) {
	t.Parallel()
	t.Run("pipe", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "ok")
		a.wantEnd(t, 0)
	})
	t.Run("ci on terminal", func(t *testing.T) {
		t.Parallel()
		for _, variable := range []string{"CI=true", "GITHUB_ACTIONS=true", "JENKINS_URL=x"} {
			w := newWorld(t)
			w.env = append(w.env, variable)
			a := w.onTerminal(t, "ok")
			a.wantEnd(t, 0)
		}
	})
	t.Run("no color on terminal", func(t *testing.T) {
		t.Parallel()
		for _, variable := range []string{"NO_COLOR=1", "NO_COLOR=", "OTHER="} {
			w := newWorld(t)
			w.env = append(w.env, variable, "TERM=xterm-256color")
			a := w.onTerminal(t, "ok")
			if a.code != 0 || a.envelope != nil || !strings.Contains(a.stdout, "done") ||
				strings.Contains(a.stdout+a.stderr, "\x1b") {
				t.Errorf("%s: exit %d %q %q", variable, a.code, a.stdout, a.stderr)
			}
		}
	})
}

// TestColour: nothing that is printed carries colour. Only the help on a terminal has bold headings, and none where a
// variable refuses them.
func TestColour(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	calls := [][]string{{"ok"}, {"fail"}, {"panic", "--debug"}, {"talks", "--debug"}, {"no-such-command"}, {"--help"}}
	bold := regexp.MustCompile("(?m)^\x1b\\[1m[^\x1b\n]+\x1b\\[0?m$")
	for _, variable := range []string{
		"NO_COLOR=1", "NO_COLOR=", "CI=1", "GITHUB_ACTIONS=1", "JENKINS_URL=x",
		"TERM=dumb", "TERM=xterm-256color", "FORCE_COLOR=1",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.env = append(w.env, variable)
			for _, args := range calls {
				a := w.onTerminal(t, args...)
				plain := a.stdout
				if name, value, _ := strings.Cut(variable, "="); args[0] == "--help" &&
					(name == "FORCE_COLOR" || name == "TERM" && value != "dumb" || variable == "NO_COLOR=") {
					if plain = bold.ReplaceAllString(plain, ""); plain == a.stdout {
						t.Errorf("the help has no headings: %q", a.stdout)
					}
				}
				if strings.Contains(plain+a.stderr, "\x1b") || a.stdout+a.stderr == "" {
					t.Errorf("%v on a terminal: %q %q", args, a.stdout, a.stderr)
				}
				if a := w.run(t, args...); strings.Contains(a.stdout+a.stderr, "\x1b") || a.stdout == "" {
					t.Errorf("%v: %q %q", args, a.stdout, a.stderr)
				}
			}
		})
	}
}

// TestLiveLine: a command that takes longer than a second shows a person that it is at work, on a line that is gone in
// the end. In CI, and for programs, it shows nothing.
func TestLiveLine(t *testing.T) {
	t.Parallel()
	t.Run("in CI", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env = append(w.env, "CI=1")
		if a := w.onTerminal(t, "hang", "--timeout", "1500ms"); strings.Contains(a.stderr, "1s") {
			t.Errorf("%q", a.stderr)
		}
	})
	t.Run("for a person", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).onTerminal(t, "hang", "--timeout", "2500ms")
		if a.code != 10 || !strings.HasPrefix(a.stderr, "\rhang: 1s\rhang: 2s\r") ||
			!strings.Contains(a.stderr, "s\r        \b\b\b\b\b\b\b\b\roatest: hang did not end within") {
			t.Errorf("exit %d: %q", a.code, a.stderr)
		}
	})
}
