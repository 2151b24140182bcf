//go:build unix

package shim

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

type vector struct {
	Name   string
	Args   []string
	TTY    bool `json:"stdin_tty"`
	Stdin  *string
	Config *struct{ File, Text string }
	Stub   []struct{ Exit int }
	Absent []string `json:"missing_agents"`
	Expect struct {
		Exit    int
		Calls   *int   `json:"agent_calls"`
		Command string `json:"agent_command"`
		Stdin   string `json:"agent_stdin"`
		Args    []struct {
			Call        int
			Contains    []string
			NotContains []string `json:"not_contains"`
			EndsWith    []string `json:"ends_with"`
		} `json:"call_args"`
		Stderr []string `json:"stderr_contains"`
	}
}

func TestVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []vector }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) < 25 {
		t.Fatalf("%d cases", len(all.Cases))
	}
	for _, v := range all.Cases {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, v.Absent...)
			for _, s := range v.Stub {
				w.behave.Exits = append(w.behave.Exits, s.Exit)
			}
			if v.Config != nil {
				w.file(v.Config.File, v.Config.Text)
			}
			v.check(t, w, v.play(w))
		})
	}
}

func (v vector) play(w *world) result {
	if !v.TTY {
		return w.run(strings.NewReader(*v.Stdin), v.Args...)
	}
	master, slave, err := pty.Open()
	if err != nil {
		w.t.Fatal(err)
	}
	defer master.Close()
	cmd := w.command(v.Args...)
	var out, errOut strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, &out, &errOut
	err = runWithin(cmd, 30*time.Second)
	_ = slave.Close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func (v vector) check(t *testing.T, w *world, r result) {
	e, calls := v.Expect, w.calls()
	if r.code != e.Exit {
		t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, e.Exit, r.stdout, r.stderr)
	}
	if e.Calls != nil && len(calls) != *e.Calls {
		t.Fatalf("%d calls of agents, want %d; stderr: %s", len(calls), *e.Calls, r.stderr)
	}
	for _, s := range e.Stderr {
		if !strings.Contains(r.stderr, s) {
			t.Errorf("stderr lacks %q: %s", s, r.stderr)
		}
	}
	if e.Exit == 2 && !strings.Contains(r.stderr, "hint: ") {
		t.Errorf("no hint: %s", r.stderr)
	}
	if e.Command != "" && (len(calls) == 0 || calls[0].Agent != e.Command) {
		t.Errorf("calls %+v, want %s", calls, e.Command)
	}
	if e.Stdin == "<tty>" && (len(calls) == 0 || !calls[0].Terminal) {
		t.Error("the agent's standard input is not a terminal")
	}
	for _, want := range e.Args {
		if want.Call >= len(calls) {
			t.Errorf("no call %d", want.Call)
			continue
		}
		args := calls[want.Call].Args
		joined := strings.Join(args, "\x00")
		for _, s := range want.Contains {
			if !strings.Contains(joined, s) {
				t.Errorf("argv %q lacks %q", args, s)
			}
		}
		for _, s := range want.NotContains {
			if strings.Contains(joined, s) {
				t.Errorf("argv %q has %q", args, s)
			}
		}
		if n := len(want.EndsWith); n > len(args) || !slices.Equal(args[max(0, len(args)-n):], want.EndsWith) {
			t.Errorf("argv %q does not end with %q", args, want.EndsWith)
		}
	}
}
