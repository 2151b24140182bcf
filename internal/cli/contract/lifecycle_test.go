package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"omniagent/internal/sys/workspace"
	"omniagent/internal/testkit/hermetic"
)

// way is one way in which a call can end.
type way struct {
	name   string
	args   []string
	signal os.Signal
	code   int
	fault  string
}

func everyWay() []way {
	return []way{
		{"return", []string{"ends", "return"}, nil, 0, ""},
		{"error", []string{"ends", "error"}, nil, 5, "FILE_NOT_FOUND"},
		{"panic", []string{"ends", "panic"}, nil, 1, "INTERNAL_ERROR"},
		{"goexit", []string{"ends", "goexit"}, nil, 1, "INTERNAL_ERROR"},
		{"timeout", []string{"ends", "hang", "--timeout", "500ms"}, nil, 10, "TIMEOUT"},
		{"timeout, obeyed", []string{"ends", "polite", "--timeout", "500ms"}, nil, 10, "TIMEOUT"},
		{"TERM", []string{"ends", "hang"}, syscall.SIGTERM, 143, "CANCELLED"},
		{"TERM, obeyed", []string{"ends", "polite"}, syscall.SIGTERM, 143, "CANCELLED"},
	}
}

// ended is a call that ended in one of the ways.
type ended struct {
	way
	*world
	answered
}

// goEach carries out a call for each of the ways, all at the same time, and checks their answers.
func goEach(t *testing.T, ways []way) []ended {
	t.Helper()
	all := make([]ended, len(ways))
	var done sync.WaitGroup
	for i, y := range ways {
		w := newWorld(t)
		done.Go(func() {
			if y.signal == nil {
				all[i] = ended{y, w, w.run(t, y.args...)}
			} else {
				all[i] = ended{y, w, w.start(t, y.args...).end(t, y.signal)}
			}
		})
	}
	done.Wait()
	for _, e := range all {
		if e.answered.code != e.way.code {
			t.Fatalf("%s: exit %d, want %d: %s%s", e.name, e.answered.code, e.way.code, e.stdout, e.stderr)
		}
		e.wantEnd(t, e.way.code)
		if e.fault != "" {
			e.wantAt(t, map[string]any{"error.code": e.fault})
		}
	}
	return all
}

func (w *world) audit(t *testing.T) (entries []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, ".local", "share", "oatest", "audit.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}

func TestAudit(t *testing.T) {
	t.Parallel()
	t.Run("every end", func(t *testing.T) {
		t.Parallel()
		ways := append(everyWay(),
			way{"usage", []string{"ends", "no-such-way"}, nil, 2, "VALIDATION_ERROR"},
			way{"flag", []string{"ok", "--no-such-flag"}, nil, 2, "VALIDATION_ERROR"})
		for _, y := range goEach(t, ways) {
			entries := y.audit(t)
			if len(entries) != 1 {
				t.Fatalf("%s: %d entries: %v", y.name, len(entries), entries)
			}
			e := entries[0]
			if e["exit_code"] != float64(y.way.code) || e["command"] != y.args[0] ||
				e["request_id"] != y.at(t, "meta.request_id") || e["duration_ms"] == nil || e["operator"] != "tester" {
				t.Errorf("%s: %v", y.name, e)
			}
			if code, _ := e["error_code"].(string); code != y.fault {
				t.Errorf("%s: error_code %q", y.name, code)
			}
		}
	})
	t.Run("pure calls", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{
			{},
			{"--help"},
			{"--version"},
			{"ok", "--help"},
			{"ok", "--schema"},
			{"quietly"},
		} {
			w := newWorld(t)
			if a := w.run(t, args...); a.code != 0 {
				t.Fatalf("%v: exit %d %s", args, a.code, a.stdout)
			}
			if got := filesBelow(t, w.home); len(got) > 0 {
				t.Errorf("%v left %v", args, got)
			}
		}
	})
}

func filesBelow(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCleanup(t *testing.T) {
	t.Parallel()
	t.Run("every end", func(t *testing.T) {
		t.Parallel()
		for _, y := range goEach(t, everyWay()) {
			dir := y.at(t, "meta.session_tmp_dir").(string)
			if got := y.read(t, "hooks"); got != "third\nsecond\nfirst\n" {
				t.Errorf("%s: hooks %q", y.name, got)
			}
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("%s: %s is left: %v", y.name, dir, err)
			}
			wantFree(t, filepath.Join(y.dir, "lock"))
		}
	})
	t.Run("hung", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "hooks", "hang")
		a.wantEnd(t, 0)
		if d := a.at(t, "meta.duration_ms").(float64); d < 900 || d > 10_000 {
			t.Errorf("the hook was given %v ms", d)
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "hooks", "panic")
		a.wantEnd(t, 0)
		if got := w.read(t, "hooks"); got != "before\n" {
			t.Errorf("the other hooks were left out: %q", got)
		}
		if !strings.Contains(a.stdout, "CLEANUP_FAILED") {
			t.Errorf("it is not told: %s", a.stdout)
		}
	})
}

func wantFree(t *testing.T, path string) {
	t.Helper()
	lock, err := workspace.Lock(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

func TestTemp(t *testing.T) {
	t.Parallel()
	t.Run("private", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		seen := map[string]bool{}
		for range 2 {
			s := w.start(t, "ends", "polite", "--session-id", "mine")
			made, err := filepath.Glob(filepath.Join(w.tmp(), "oatest-*"))
			if err != nil || len(made) != 1 || modeOf(t, made[0]) != fs.ModeDir|0o700 {
				t.Fatalf("%v %v", made, err)
			}
			a := s.end(t, syscall.SIGTERM)
			id := a.at(t, "meta.request_id").(string)
			if got := a.at(t, "meta.session_tmp_dir"); got != made[0] || seen[made[0]] ||
				!strings.Contains(made[0], id) || !strings.Contains(made[0], "mine") {
				t.Errorf("%v, meta has %v, the call is %s", made, got, id)
			}
			seen[made[0]] = true
			_ = os.Remove(filepath.Join(w.dir, "lock"))
		}
	})
	t.Run("modes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		open := w.command("ends", "polite")
		s := w.startThis(t, w.wrapped(open, "sh", "-c", `umask 0; exec "$@"`, "sh"))
		for _, path := range append(filesBelow(t, w.tmp()), filesBelow(t, w.home)...) {
			if mode := modeOf(t, path); mode.Perm()&0o077 != 0 {
				t.Errorf("%s has mode %v", path, mode)
			}
		}
		s.end(t, syscall.SIGTERM).wantEnd(t, 143)
		log := filepath.Join(w.home, ".local", "share", "oatest", "audit.jsonl")
		if mode := modeOf(t, log); mode != 0o600 {
			t.Errorf("%s has mode %v", log, mode)
		}
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		for _, y := range goEach(t, everyWay()) {
			if left := filesBelow(t, y.tmp()); len(left) > 0 {
				t.Errorf("%s left %v", y.name, left)
			}
		}
	})
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode()
}

func TestTimeoutEndsHungHandler(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	t.Run("hung", func(t *testing.T) {
		t.Parallel()
		for _, how := range []string{"read", "spin", "all"} {
			a := newWorld(t).run(t, "stuck", how, "--timeout", "200ms", "--quiet")
			a.wantEnd(t, 10)
			if a.took > hermetic.Patience {
				t.Errorf("%s took %v", how, a.took)
			}
			if a.stderr != "" || len(a.stdout) > 64<<10 {
				t.Errorf("%s: %d bytes, %s", how, len(a.stdout), a.stderr)
			}
		}
	})
	t.Run("envelope", func(t *testing.T) {
		t.Parallel()
		safe := newWorld(t).run(t, "hang", "--timeout", "50ms")
		safe.wantEnd(t, 10)
		safe.wantAt(t, map[string]any{
			"error.code": "TIMEOUT", "error.phase": "execution", "error.retryable": true,
			"error.timeout_ms": 50.0, "data": nil, "meta.partial": true,
		})
		changes := newWorld(t).run(t, "stuck-change", "--timeout", "50ms")
		changes.wantEnd(t, 10)
		changes.wantAt(t, map[string]any{"error.code": "TIMEOUT", "error.phase": "execution", "error.retryable": false})
	})
	t.Run("meta", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.run(t, "ok").wantAt(t, map[string]any{"meta.timeout_ms": 30000.0})
		w.run(t, "ok", "--no-such-flag").wantAt(t, map[string]any{"meta.timeout_ms": 30000.0})
		w.run(t, "--help").wantAt(t, map[string]any{"meta.timeout_ms": 30000.0})
		w.run(t, "ok", "--timeout", "7s").wantAt(t, map[string]any{"meta.timeout_ms": 7000.0})
		w.env = append(w.env, "OMNIAGENT_TIMEOUT=9s")
		w.run(t, "ok").wantAt(t, map[string]any{"meta.timeout_ms": 9000.0})
		w.run(t, "ok", "--timeout", "0").wantAt(t, map[string]any{"meta.timeout_ms": 0.0, "ok": true})
		w.stdin = "a b"
		w.run(t, "ids", "-", "--timeout", "0").wantAt(t, map[string]any{"meta.timeout_ms": 0.0, "ok": true})
	})
}

func TestEnvelopeShapes(t *testing.T) {
	t.Parallel()
	t.Run("success", func(t *testing.T) {
		t.Parallel()
		for _, count := range []string{"0", "1", "7"} {
			a := newWorld(t).run(t, "rows", count)
			a.wantEnd(t, 0)
			keys := []string{}
			for k := range a.envelope {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			if !slices.Equal(keys, []string{"data", "error", "meta", "ok", "warnings"}) {
				t.Errorf("%s: %v", count, keys)
			}
			if rows, isList := a.at(t, "data.items").([]any); !isList || len(rows) != int(count[0]-'0') {
				t.Errorf("%s: %s", count, a.stdout)
			}
		}
	})
	t.Run("failure", func(t *testing.T) {
		t.Parallel()
		for _, bad := range []struct {
			args []string
			code int
			want map[string]any
		}{
			{[]string{"rows", "many"}, 2, map[string]any{"error.code": "VALIDATION_ERROR", "data": nil}},
			{[]string{"no-such-command"}, 2, map[string]any{"error.code": "UNKNOWN_COMMAND", "data": nil}},
			{[]string{"fail"}, 5, map[string]any{"error.code": "FILE_NOT_FOUND", "data": nil}},
			{[]string{"goes-wrong", "plain"}, 1, map[string]any{
				"error.code":    "INTERNAL_ERROR",
				"error.message": "a plain error", "data": nil,
			}},
			{[]string{"goes-wrong", "wrapped"}, 5, map[string]any{"error.code": "FILE_NOT_FOUND", "data": nil}},
			{[]string{"goes-wrong", "with-data"}, 6, map[string]any{
				"error.code": "ALREADY_EXISTS",
				"data.value": "the one there is",
			}},
		} {
			a := newWorld(t).run(t, bad.args...)
			a.wantEnd(t, bad.code)
			a.wantAt(t, bad.want)
		}
	})
	t.Run("panic", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "panic")
		a.wantEnd(t, 1)
		a.wantAt(t, map[string]any{"error.code": "INTERNAL_ERROR", "data": nil})
		if strings.Contains(a.stdout+a.stderr, "goroutine") {
			t.Errorf("the trace is shown: %s%s", a.stdout, a.stderr)
		}
		early := newWorld(t).run(t, "panic-early")
		early.wantEnd(t, 1)
		early.wantAt(t, map[string]any{"error.code": "INTERNAL_ERROR", "data": nil})
		b := newWorld(t).run(t, "panic", "--debug")
		b.wantEnd(t, 1)
		if !strings.Contains(b.stderr, "goroutine") || strings.Contains(b.stdout, "goroutine") ||
			strings.Contains(b.stderr, "\x1b") {
			t.Errorf("with --debug: %q %q", b.stdout, b.stderr)
		}
	})
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "hang", "--timeout", "100ms")
		a.wantEnd(t, 10)
		a.wantAt(t, map[string]any{"meta.timeout_ms": 100.0})
		if d := a.at(t, "meta.duration_ms").(float64); d < 100 || d > 5100 {
			t.Errorf("duration_ms is %v", d)
		}
	})
}

func TestEffect(t *testing.T) {
	t.Parallel()
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "change", "--how", "silently")
		a.wantEnd(t, 1)
		a.wantAt(t, map[string]any{"error.code": "INTERNAL_ERROR"})
	})
	t.Run("reported", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "change")
		a.wantEnd(t, 0)
		a.wantAt(t, map[string]any{"data.effect": "updated", "meta.effect": "updated", "data.value": "changed"})
	})
}

// inside runs a call of the misbehaving program in this process, for what only its streams and clock can show.
func inside(t *testing.T, home string, stdout, stderr io.Writer, args ...string) int {
	t.Helper()
	return insideApp(t, misbehaving(), home, nil, stdout, stderr, args...)
}

func insideApp(t *testing.T, app App, home string, seen func(string), stdout, stderr io.Writer, args ...string) int {
	t.Helper()
	p, err := New(app)
	if err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) {
		if seen != nil {
			seen(name)
		}
		if name == "HOME" {
			return home, true
		}
		return "", false
	}
	return p.Run(context.Background(), Host{
		Args: args, Lookup: lookup, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Dir: home,
	}, nil)
}

// writes are the single writes to a stream.
type writes struct {
	mu   sync.Mutex
	all  []string
	seen func()
}

func (w *writes) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *writes) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(b))
	if w.seen != nil {
		w.seen()
	}
	return len(b), nil
}

func TestLifecycle(t *testing.T) {
	t.Parallel()
	t.Run("order", func(t *testing.T) {
		t.Parallel()
		home := t.TempDir()
		var seen []string
		see := func(what string) {
			if !slices.Contains(seen, what) {
				seen = append(seen, what)
			}
		}
		there := func(parts ...string) bool {
			found, err := filepath.Glob(filepath.Join(append([]string{home}, parts...)...))
			return err == nil && len(found) > 0
		}
		locked := func() bool { return there(".local", "state", "oatest", "idempotency", "*.lock") }
		audited := func() bool { return there(".local", "share", "oatest", "audit.jsonl") }
		command := quick(Command{
			Path: "order", Danger: Destructive, DryRun: true, Output: TypeOf[itemData](),
			Params: []Param{{Name: "n", Kind: Int, Help: "a number"}},
			Run: func(context.Context, *Call) (Result, error) {
				if locked() {
					see("once")
				}
				see("run")
				return Result{
					Effect: Deleted,
					Data: itemData{Rows[item]{Seq: func(yield func(item) bool) {
						see("shape")
						yield(item{strings.Repeat("word ", 1<<19), 1})
					}}},
				}, nil
			},
		})
		command.Validate = validateSees(func() {
			see("validate")
			if locked() {
				see("once before validate")
			}
		})
		app := App{Name: "oatest", Version: "1.0.0", Summary: "order", Commands: made(command)}
		call := func(args ...string) (map[string]any, int) {
			seen = nil
			var out bytes.Buffer
			code := insideApp(t, app, home, func(name string) {
				switch name {
				case "OMNIAGENT_INSTANCE_ID":
					see("environment")
				case "OMNIAGENT_GRACE":
					see("config")
				}
			}, io.MultiWriter(&out, &writes{seen: func() {
				if audited() {
					see("record before write")
				}
				see("write")
			}}), io.Discard, append([]string{"order"}, args...)...)
			return validEnvelope(t, out.String()), code
		}
		wantSeen := func(args []string, code int, problem string, want ...string) map[string]any {
			t.Helper()
			e, got := call(args...)
			if !slices.Equal(seen, want) || got != code || problem != "" &&
				e["error"].(map[string]any)["code"] != problem {
				t.Fatalf("%v: exit %d, %v %v, want %v", args, got, seen, e["error"], want)
			}
			if err := os.RemoveAll(filepath.Join(home, ".local", "share")); err != nil {
				t.Fatal(err)
			}
			return e
		}
		// If two steps fail, the answer reports the earlier one, with all problems of the arguments, and no later step
		// runs.
		wantSeen([]string{"--no-such-flag", "--config", "missing"}, 2, "VALIDATION_ERROR", "validate", "write")
		wantSeen([]string{"--instance-id", "../x", "--config", "missing"}, 2, "INVALID_AGENT_INPUT", "environment",
			"validate", "write")
		wantSeen([]string{"--config", "missing", "--n", "x"}, 2, "CONFIG_INVALID", "environment", "config", "write")
		wantSeen([]string{"--n", "x", "--idempotency-key", "k1"}, 2, "VALIDATION_ERROR", "environment", "config",
			"validate", "write")
		// run: the dry run that finds what would be lost
		wantSeen([]string{"--idempotency-key", "k2"}, 2, "CONFIRMATION_REQUIRED", "environment", "config", "validate",
			"run", "shape", "write")
		e := wantSeen([]string{"--idempotency-key", "k3", "--confirm-destructive"}, 0, "", "environment", "config",
			"validate", "once", "run", "shape", "write")
		if e["meta"].(map[string]any)["truncated"] != true {
			t.Error("it was written before it was cut")
		}
		_, code := call("--confirm-destructive")
		if code != 0 || !audited() {
			t.Errorf("exit %d before the record", code)
		}
	})
}
