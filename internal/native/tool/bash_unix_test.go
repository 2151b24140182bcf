//go:build unix

package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/shell"
)

// TestMain lets the test binary be the guard of the commands, and who moves links while the tools work.
func TestMain(m *testing.M) {
	if yard := os.Getenv(flipVariable); yard != "" {
		flipUntilTheEnd(yard)
		os.Exit(0)
	}
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

// withShell is a desk with a shell in its workspace.
func withShell(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	s, err := shell.New(shell.Options{Root: d.in, Grace: 200 * time.Millisecond})
	check(t, err)
	t.Cleanup(s.Close)
	d.env.Shell = s
	return d
}

func TestBashSaysWhatHostsExpect(t *testing.T) {
	t.Parallel()
	d := withShell(t)
	d.put("a.txt", "x")
	d.put("sub/b.ts", "y")
	for _, c := range []struct {
		command, text string
		failed        bool
		exit          int
	}{
		{"echo hi", "hi\n", false, 0},
		{"ls", "a.txt\nsub\n", false, 0},
		{
			"./run.sh", "Command exited with code 127\n\n[stderr]\nbash: line 1: ./run.sh: No such file or directory\n",
			true, 127,
		},
		{"false", "Command exited with code 1\n", true, 1},
		{"echo e 1>&2", "\n[stderr]\ne\n", false, 0},
		{"echo o; echo e 1>&2; exit 2", "Command exited with code 2\no\n\n[stderr]\ne\n", true, 2},
		{"go version >/dev/null 2>&1 || true", "(no output)", false, 0},
		{"cd sub && ls", "b.ts\n", false, 0},
		{"pwd", filepath.Join(d.in, "sub") + "\n", false, 0},
		{"cd /", "(no output)\n[The command ended in /, which is outside the workspace: the next one begins in the " +
			"workspace again.]", false, 0},
		{"pwd", d.in + "\n", false, 0},
	} {
		r := d.call(Bash, object{"command": c.command})
		if r.Text != c.text || r.Failed != c.failed || r.Exit == nil || *r.Exit != c.exit {
			t.Errorf("%s: got %q, failed %v", c.command, r.Text, r.Failed)
		}
	}
	if r := d.call(Bash, object{"command": "kill -KILL $$"}); r.Text != "Command was ended by SIGKILL\n" || !r.Failed ||
		r.Exit != nil {
		t.Errorf("%+v", r)
	}
}

func TestBashEndsInTime(t *testing.T) {
	t.Parallel()
	d := withShell(t)
	r := d.fails(Bash, object{"command": "echo before; sleep 1000", "timeout": "200"}, "did not end within 200ms",
		"at most 600000", "\nbefore\n")
	if r.Exit != nil {
		t.Errorf("%+v", r)
	}
	there := filepath.Join(d.in, "there")
	check(t, syscall.Mkfifo(there, 0o600))
	action, err := Bash(d.env).Plan(json.RawMessage(`{"command": "echo before; : >there; sleep 1000"}`))
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_, _ = os.ReadFile(there) // until the command has written
	}()
	r = action.Run(ctx)
	if !r.Failed || !strings.Contains(r.Text, "interrupted") || !strings.HasSuffix(r.Text, "\nbefore\n") {
		t.Errorf("%+v", r)
	}
	for _, background := range []bool{false, true} {
		action, err = Bash(d.env).Plan(json.RawMessage(`{"command": ": >started", "run_in_background": ` +
			map[bool]string{false: "false", true: "true"}[background] + `}`))
		check(t, err)
		if r = action.Run(ctx); !r.Failed {
			t.Errorf("%+v", r)
		}
	}
	if _, err := os.Stat(filepath.Join(d.in, "started")); err == nil {
		t.Error("it was started")
	}
}

func TestBashInTheBackground(t *testing.T) {
	t.Parallel()
	d := withShell(t)
	d.says(Bash, object{
		"command":           "echo one; echo two; echo err >&2; while [ ! -e go ]; do sleep 0.01; done; exit 4",
		"run_in_background": "true",
	}, "bash_1")
	all := ""
	read := func(input object, until string) {
		t.Helper()
		over := time.Now().Add(hermetic.Patience)
		for all = ""; !strings.Contains(all, until); time.Sleep(5 * time.Millisecond) {
			r := d.says(BashOutput, input)
			if r.Waits != strings.Contains(r.Text, "is running.") {
				t.Fatalf("waits: %v, and says %q", r.Waits, r.Text)
			}
			if r.Text != "bash_1 is running.\n(no new output)" {
				all += r.Text
			}
			if time.Now().After(over) {
				t.Fatalf("waited too long for %q: %q", until, all)
			}
		}
	}
	read(object{"bash_id": "bash_1", "filter": "t|e"}, "err\n")
	if !strings.Contains(all, "bash_1 is running.\n") || !strings.Contains(all, "\n[stderr]\nerr\n") {
		t.Errorf("%q", all)
	}
	d.put("go", "")
	read(object{"id": "bash_1"}, "bash_1 exited with code 4.")
	d.says(Bash, object{"command": "sleep 1000", "run_in_background": true}, "bash_2")
	d.says(KillShell, object{"bash_id": "bash_2"}, "bash_2 was ended.")
	d.fails(KillShell, object{"shell_id": "bash_7"}, "bash_7", "bash_1, bash_2")
	d.fails(BashOutput, object{"bash_id": "nope"}, "nope")
}

func TestBashPlan(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a, err := Bash(d.env).Plan(json.RawMessage(`{"cmd": "\n  ls -l\necho", "more": [1], "timeout": 5e3}`))
	check(t, err)
	if a.Kind != event.Shell || !a.Changes || a.Command != "\n  ls -l\necho" || a.Title != "ls -l" ||
		string(a.Input) != `{"command":"\n  ls -l\necho","more":[1],"timeout":5e3}` {
		t.Errorf("%+v %s", a, a.Input)
	}
	if r := a.Run(t.Context()); !r.Failed || !strings.Contains(r.Text, "cannot be run") { // there is no shell
		t.Errorf("%+v", r)
	}
	if a, err = Bash(d.env).Plan(json.RawMessage(`{"command": "x", "description": "Do\nit"}`)); err != nil ||
		a.Title != "Do" {
		t.Errorf("%+v %v", a, err)
	}
	for input, want := range map[string]string{
		`{}`: `"command" is missing`, `{"command": " "}`: "empty", `{"command": ["ls"]}`: "a list", `[]`: "a list",
		`{"command": "ls", "timeout": -1}`: "timeout", `{"command": "ls", "cwd": "/x"}`: "begin the command with cd",
	} {
		if _, err := Bash(d.env).Plan(json.RawMessage(input)); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), `{"command"`) {
			t.Errorf("%s: %v", input, err)
		}
	}
	if _, err := BashOutput(d.env).Plan(json.RawMessage(`{"bash_id": "bash_1", "filter": "("}`)); err == nil ||
		!strings.Contains(err.Error(), "regular expression") {
		t.Error(err)
	}
}
