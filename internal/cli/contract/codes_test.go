package contract

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// exitOf is the table of the specification, written once more: the number of each kind of failure.
func exitOf() map[fault.Kind]int {
	return map[fault.Kind]int{
		fault.General: 1, fault.Input: 2, fault.Partial: 3, fault.Precondition: 4, fault.NotFound: 5, fault.Conflict: 6,
		fault.Denied: 7, fault.Auth: 8,
		fault.Payment: 9, fault.Timeout: 10, fault.RateLimited: 11, fault.Unavailable: 12, fault.Redirected: 13,
		fault.Cancelled: 143,
	}
}

type coded struct {
	fault.Entry
	answered
}

// everyCode runs a call for each code of the catalogue, several at a time.
func everyCode(t *testing.T) (got []coded) {
	t.Helper()
	w := newWorld(t)
	all := fault.Catalogue()
	got = make([]coded, len(all))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var done sync.WaitGroup
	for i, e := range all {
		done.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			got[i] = coded{e, w.run(t, "code", string(e.Code))}
		})
	}
	done.Wait()
	for _, c := range got {
		c.wantEnd(t, exitOf()[c.Kind])
	}
	return got
}

func TestErrorObject(t *testing.T) {
	t.Parallel()
	hermetic.Long(t)
	every := everyCode(t)
	t.Run("catalogue", func(t *testing.T) {
		t.Parallel()
		for _, c := range every {
			c.wantAt(t, map[string]any{"error.code": string(c.Code), "error.retryable": c.Retryable})
		}
	})
	t.Run("members", func(t *testing.T) {
		t.Parallel()
		code := regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)
		for _, e := range every {
			o := e.at(t, "error").(map[string]any)
			message, _ := o["message"].(string)
			suggestion, _ := o["suggestion"].(string)
			if !code.MatchString(o["code"].(string)) || strings.Count(message, " ") < 2 || suggestion == "" ||
				o["phase"] == "" || o["docs_url"] == "" {
				t.Errorf("%v", o)
			}
			if detail, there := o["detail"]; there {
				if _, text := detail.(string); !text {
					t.Errorf("detail is %v", detail)
				}
			}
		}
	})
	t.Run("fix required", func(t *testing.T) {
		t.Parallel()
		for _, e := range every {
			if e.Kind != fault.Input {
				continue
			}
			if fix, _ := e.at(t, "error.fix_required").(string); fix == "" || e.at(t, "error.retryable") != false ||
				e.at(t, "error.phase") != "validation" {
				t.Errorf("%s", e.stdout)
			}
		}
	})
	t.Run("retry", func(t *testing.T) {
		t.Parallel()
		for _, e := range every {
			o := e.at(t, "error").(map[string]any)
			retry, isBool := o["retryable"].(bool)
			wait, known := o["retry_after_ms"].(float64)
			if !isBool || known && (!retry || wait <= 0) || !known &&
				(e.Code == fault.TooManyRequests || e.Code == fault.LockHeld) {
				t.Errorf("%v", o)
			}
			if (o["retry_strategy"] != nil) != retry || o["fix_required"] != nil && retry {
				t.Errorf("%v", o)
			}
		}
		w := newWorld(t)
		w.run(t, "code", "RATE_LIMITED", "--after-ms", "250").wantAt(t, map[string]any{"error.retry_after_ms": 250.0})
		w.run(t, "code", "RATE_LIMITED", "--after-ms", "250", "--final").wantAt(t,
			map[string]any{"error.retry_after_ms": nil, "error.retryable": false})
	})
	t.Run("exit code", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := w.run(t, "fail")
		a.wantEnd(t, 5)
		a.wantAt(t, map[string]any{"error.exit_code": 5.0, "meta.exit_code": 5.0})
		if !strings.HasSuffix(a.stderr, "TOOL_FAILED=1\n") {
			t.Errorf("%q", a.stderr)
		}
		if b := w.run(t, "fail", "--quiet"); b.stderr != "" {
			t.Errorf("--quiet: %q", b.stderr)
		}
		if b := w.run(t, "ok"); strings.Contains(b.stderr, "TOOL_FAILED") {
			t.Errorf("success: %q", b.stderr)
		}
	})
	t.Run("already exists", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "goes-wrong", "with-data")
		a.wantEnd(t, 6)
		a.wantAt(t, map[string]any{
			"error.code": "ALREADY_EXISTS", "error.conflict_id": "x", "error.retryable": false,
			"data": map[string]any{"value": "the one there is"},
		})
	})
	t.Run("fix commands", func(t *testing.T) {
		t.Parallel()
		fixCommands(t)
	})
}

// fixCommands checks with the real program that the commands in the catalogue's advice exist and do no harm.
func fixCommands(t *testing.T) {
	t.Helper()
	built, err := measure.Shared(filepath.Join("..", "..", ".."), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := built.File
	manifest := exec.Command(program, "manifest", "--output", "json")
	manifest.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := manifest.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Data struct {
			Commands map[string]struct {
				Danger string `json:"danger_level"`
			} `json:"commands"`
		} `json:"data"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, e := range fault.Catalogue() {
		command, named := strings.CutPrefix(e.NextStep, "Run: ")
		if !named {
			continue
		}
		found++
		words := strings.Fields(command)
		entry, known := answer.Data.Commands[strings.Join(words[1:], ".")]
		if words[0] != "omniagent" || !known || entry.Danger == string(Destructive) ||
			strings.ContainsAny(command, "<>$") {
			t.Errorf("%s sends to %q, which is %v", e.Code, command, entry)
		}
	}
	if found == 0 {
		t.Error("the catalogue names no command")
	}
}

func TestExitTable(t *testing.T) {
	t.Parallel()
	t.Run("kinds", func(t *testing.T) {
		t.Parallel()
		for _, e := range fault.Catalogue() {
			if _, known := exitOf()[e.Kind]; !known {
				t.Errorf("%s has the kind %q, which has no exit code", e.Code, e.Kind)
			}
		}
		for kind, want := range exitOf() {
			if got := ExitFor(kind); got != want {
				t.Errorf("%s ends with %d, want %d", kind, got, want)
			}
		}
		if runtime.GOOS == "windows" {
			return
		}
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
			newWorld(t).start(t, "hang").end(t, sig).wantEnd(t, 128+int(sig))
		}
	})
	t.Run("numbers", func(t *testing.T) {
		t.Parallel()
		want := map[Code]int{
			"SUCCESS": 0, "GENERAL_ERROR": 1, "ARG_ERROR": 2, "PARTIAL_FAILURE": 3, "PRECONDITION": 4, "NOT_FOUND": 5,
			"CONFLICT": 6, "PERMISSION_DENIED": 7,
			"AUTH_REQUIRED": 8, "PAYMENT_REQUIRED": 9, "TIMEOUT": 10, "RATE_LIMITED": 11, "UNAVAILABLE": 12,
			"REDIRECTED": 13,
			"HANGUP":     129, "INTERRUPTED": 130, "QUIT": 131, "TERMINATED": 143,
		}
		if len(standards()) != len(want) {
			t.Errorf("%d codes, want %d", len(standards()), len(want))
		}
		for _, s := range standards() {
			if n, known := want[s.code]; !known || n != s.number {
				t.Errorf("%s is %d", s.code, s.number)
			}
		}
		for n := -1; n <= 256; n++ {
			exits := []Exit{{Code: Success, When: "done"}, Specific(n, "OWN_CODE", "its own reason")}
			_, err := New(App{Name: "oatest", Commands: made(quick(Command{Path: "own", Exits: exits}))})
			if (err == nil) != (n >= 79 && n <= 125) {
				t.Errorf("%d as a code of its own: %v", n, err)
			}
		}
		own := newWorld(t).run(t, "exits", "OWN_CODE")
		own.wantEnd(t, 80)
		own.wantAt(t, map[string]any{"error.code": "OWN_CODE", "warnings": list()})
	})
	t.Run("argument error", func(t *testing.T) {
		t.Parallel()
		a := newWorld(t).run(t, "rows", "many")
		a.wantEnd(t, 2)
		a.wantAt(t, map[string]any{
			"error.phase": "validation", "error.retryable": false,
			"error.fix_required": "correct count",
		})
		for _, c := range Open(misbehaving()).All() {
			if e := c.exits()["2"]; e.SideEffects != None || e.Retryable || e.Name != "ARG_ERROR" {
				t.Errorf("%s: %v", c.Path, e)
			}
		}
	})
	t.Run("undeclared", func(t *testing.T) {
		t.Parallel()
		for code, number := range map[string]int{"CONFLICT": 6, "NO_SUCH_CODE": 1} {
			a := newWorld(t).run(t, "exits", code)
			a.wantEnd(t, number)
			if w := a.at(t, "warnings").([]any); len(w) != 1 ||
				!strings.HasPrefix(w[0].(string), "EXIT_CODE_UNDECLARED") {
				t.Errorf("%s: %v", code, w)
			}
		}
	})
}
