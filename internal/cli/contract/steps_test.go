package contract

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

func steppedCommands() []*Command {
	stepped := Command{
		Path: "steps", Danger: Mutating, Steps: []string{"fetch", "build", "publish"}, Run: runSteps,
		Exits: []Exit{
			{Code: Success, When: "all steps are done"},
			{Code: PartialFailure, When: "a step failed"},
			{Code: NotFound, When: "the first step failed"},
		},
		Params: []Param{
			{Name: "fail-at", Kind: ID, Help: "step that fails"},
			{Name: "hang-at", Kind: ID, Help: "step that waits for the end"},
			{Name: "stuck", Kind: Bool, Help: "even longer"},
			{Name: "go-on", Kind: Bool, Help: "do not look at failures"},
		},
	}
	return []*Command{quick(stepped)}
}

func runSteps(ctx context.Context, c *Call) (Result, error) {
	var first error
	for _, name := range c.Command.Steps {
		err := c.Step(ctx, name, func(ctx context.Context) error {
			note(c, "log", "do "+name)
			switch name {
			case c.String("fail-at"):
				return fault.New(fault.FileMissing, "the file of %s does not exist", name)
			case c.String("hang-at"):
				ready(c)
				<-ctx.Done()
				if c.Bool("stuck") {
					select {}
				}
				return context.Cause(ctx)
			}
			return nil
		})
		if first == nil {
			first = err
		}
		if err != nil && !c.Bool("go-on") {
			break
		}
	}
	return Result{Data: anyData{"done"}, Effect: Created}, first
}

func doorCommands() []*Command {
	return []*Command{
		quick(Command{
			Path: "door", Params: []Param{choice("which", "spawn", "network", "stdin", "step")}, Run: runDoor,
		}),
		quick(Command{
			Path: "door-listed", Params: []Param{choice("which", "spawn", "step", "twice")}, Run: runDoor,
			Steps: []string{"one"}, Children: []Subprocess{{Binary: "true"}},
		}),
		quick(Command{
			Path: "network", Network: &Network{Timeout: 7e9, Connect: 3e9}, Output: TypeOf[limits](),
			Run: func(_ context.Context, c *Call) (Result, error) {
				n, err := c.Connections()
				return Result{Data: limits{n.Timeout.Milliseconds(), n.Connect.Milliseconds()}}, err
			},
		}),
	}
}

type limits struct {
	Timeout int64 `json:"timeout"`
	Connect int64 `json:"connect"`
}

func runDoor(ctx context.Context, c *Call) (Result, error) {
	var err error
	nothing := func(context.Context) error { note(c, "log", "step"); return nil }
	switch c.String("which") {
	case "spawn":
		_, err = c.Spawn(ctx, "touch", filepath.Join(c.Dir(), "started"))
	case "network":
		_, err = c.Connections()
	case "stdin":
		var r io.ReadCloser
		r, err = c.Input(ctx)
		if err == nil {
			_, _ = io.Copy(io.Discard, r)
		}
	case "step":
		err = c.Step(ctx, "unlisted", nothing)
	case "twice":
		if err = c.Step(ctx, "one", nothing); err == nil {
			err = c.Step(ctx, "one", nothing)
		}
	}
	return Result{Data: anyData{"passed"}}, err
}

// wantAt compares members of an answer, by their dotted paths.
func (a answered) wantAt(t *testing.T, want map[string]any) {
	t.Helper()
	for path, value := range want {
		if got := a.at(t, path); !reflect.DeepEqual(got, value) {
			t.Errorf("%s is %v (%T), want %v", path, got, got, value)
		}
	}
	if t.Failed() {
		t.Log(a.stdout, a.stderr)
	}
}

// wantEnd checks the exit code and that the one envelope agrees with it.
func (a answered) wantEnd(t *testing.T, code int) {
	t.Helper()
	if a.code != code {
		t.Fatalf("exit %d, want %d: %s%s", a.code, code, a.stdout, a.stderr)
	}
	validEnvelope(t, a.stdout)
	a.wantAt(t, map[string]any{"meta.exit_code": float64(code)})
}

func (w *world) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

func list(names ...string) []any {
	all := []any{}
	for _, n := range names {
		all = append(all, n)
	}
	return all
}

func TestSteps(t *testing.T) {
	t.Parallel()
	t.Run("success", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "steps", "--verbose")
		a.wantEnd(t, 0)
		a.wantAt(t, map[string]any{
			"data.completed_steps": list("fetch", "build", "publish"),
			"data.skipped_steps":   list(), "data.failed_step": nil,
		})
		a.saysInOrder(t, a.stderr, "step_started fetch", "step_completed fetch", "step_started build",
			"step_completed build", "step_started publish", "step_completed publish")
		b := w.run(t, "steps", "--output", "jsonl")
		b.saysInOrder(t, b.stdout, `{"event":"step_started","step":"fetch"}`,
			`{"event":"step_completed","step":"fetch"}`, `{"event":"step_started","step":"build"}`,
			`"completed_steps":["fetch","build","publish"]`)
	})
	t.Run("failure", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "steps", "--fail-at", "build", "--go-on")
		a.wantEnd(t, 3)
		a.wantAt(t, map[string]any{
			"error.code": "PARTIAL_FAILURE", "data.completed_steps": list("fetch"), "data.failed_step": "build",
			"data.skipped_steps": list(),
			"data.resume_from":   "build", "error.retryable": false,
		})
		if got := w.read(t, "log"); got != "do fetch\ndo build\n" { // none begins after one has failed
			t.Errorf("done: %q", got)
		}
		if !strings.Contains(a.stdout, "the file of build does not exist") {
			t.Errorf("the cause is not told: %s", a.stdout)
		}
		first := newWorld(t).run(t, "steps", "--fail-at", "fetch")
		first.wantEnd(t, 5) // nothing was done yet: the failure keeps its own code
		first.wantAt(t, map[string]any{"data.failed_step": "fetch", "data.completed_steps": list()})
	})
	t.Run("resume", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "steps", "--resume-from", "build")
		a.wantEnd(t, 0)
		a.wantAt(t, map[string]any{
			"data.completed_steps": list("build", "publish"),
			"data.skipped_steps":   list("fetch"),
		})
		if got := w.read(t, "log"); got != "do build\ndo publish\n" {
			t.Errorf("done: %q", got)
		}
		unknown := newWorld(t).run(t, "steps", "--resume-from", "nothing")
		unknown.wantEnd(t, 2)
		unknown.wantAt(t, map[string]any{"error.code": "VALIDATION_ERROR"})
	})
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		for _, more := range []string{"--no-update-check", "--stuck"} {
			a := newWorld(t).run(t, "steps", "--hang-at", "build", "--timeout", "1s", more)
			a.wantEnd(t, 10)
			wantHalfDone(t, a)
			b := newWorld(t).start(t, "steps", "--hang-at", "build", more).end(t, os.Interrupt)
			b.wantEnd(t, 130)
			wantHalfDone(t, b)
		}
	})
}

func wantHalfDone(t *testing.T, a answered) {
	t.Helper()
	a.wantAt(t, map[string]any{
		"data.completed_steps": list("fetch"), "data.pending_steps": list("build",
			"publish"), "data.skipped_steps": list(),
		"data.resume_from": "build", "data.partial": true, "meta.partial": true,
	})
}

// saysInOrder checks that text holds the parts one after the other.
func (a answered) saysInOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		if !found {
			t.Fatalf("%q does not come in its place in %s", part, text)
		}
		rest = after
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	t.Run("none fail", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "batch")
		a.wantEnd(t, 0)
		a.wantAt(t, map[string]any{"data.summary": map[string]any{"total": 3.0, "succeeded": 3.0, "failed": 0.0}})
		for _, r := range a.at(t, "data.results").([]any) {
			if r := r.(map[string]any); r["ok"] != true || r["error"] != nil {
				t.Errorf("%v", r)
			}
		}
	})
	t.Run("some fail", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "batch", "--broken", "2")
		a.wantEnd(t, 3)
		a.wantAt(t, map[string]any{
			"ok": false, "error.code": "PARTIAL_FAILURE", "error.retryable": false, "error.phase": "execution",
			"data.summary": map[string]any{"total": 3.0, "succeeded": 1.0, "failed": 2.0},
		})
		for i, r := range a.at(t, "data.results").([]any) {
			r := r.(map[string]any)
			e, failed := r["error"].(map[string]any)
			if failed == (r["ok"] == true) || failed != (i < 2) || failed &&
				(e["code"] == "" || e["message"] == "" || e["retryable"] != false) {
				t.Errorf("%v", r)
			}
		}
	})
}

func TestLockedDoors(t *testing.T) {
	t.Parallel()
	locked := func(t *testing.T, args ...string) *world {
		t.Helper()
		w := newWorld(t)
		w.stdin = "some input"
		a := w.run(t, args...)
		a.wantEnd(t, 1)
		a.wantAt(t, map[string]any{"error.code": "UNDECLARED_CAPABILITY", "error.retryable": false})
		return w
	}
	t.Run("spawn", func(t *testing.T) {
		t.Parallel()
		for _, command := range []string{"door", "door-listed"} {
			if _, err := os.Stat(filepath.Join(locked(t, command, "spawn").dir, "started")); err == nil {
				t.Errorf("%s: the child was started", command)
			}
		}
	})
	t.Run("stdin", func(t *testing.T) {
		t.Parallel()
		locked(t, "door", "stdin")
	})
	t.Run("step", func(t *testing.T) {
		t.Parallel()
		locked(t, "door", "step")
		if got := locked(t, "door-listed", "step").read(t, "log"); got != "" {
			t.Errorf("an unlisted step was done: %q", got)
		}
		if got := locked(t, "door-listed", "twice").read(t, "log"); got != "step\n" {
			t.Errorf("a repeated step was done: %q", got)
		}
	})
	t.Run("network", func(t *testing.T) {
		t.Parallel()
		locked(t, "door", "network")
		a := newWorld(t).run(t, "network")
		a.wantEnd(t, 0)
		a.wantAt(t, map[string]any{"data.timeout": 7000.0, "data.connect": 3000.0})
		b := newWorld(t).run(t, "network", "--connect-timeout", "4s")
		b.wantAt(t, map[string]any{"data.timeout": 7000.0, "data.connect": 4000.0})
	})
}
