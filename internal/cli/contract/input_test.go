package contract

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// neverRead is a standard input that nobody may look at.
type neverRead struct{ t *testing.T }

func (n neverRead) Read([]byte) (int, error) {
	n.t.Error("standard input was read")
	return 0, os.ErrClosed
}

func TestStdin(t *testing.T) {
	t.Parallel()
	drinks := func(t *testing.T, w *world, args ...string) answered {
		t.Helper()
		return w.run(t, append([]string{"drink"}, args...)...)
	}
	required := func(t *testing.T, a answered) {
		t.Helper()
		validEnvelope(t, a.stdout)
		if a.code != 4 || a.at(t, "error.code") != string(fault.StdinRequired) || a.took > hermetic.Patience {
			t.Errorf("exit %d after %s: %s", a.code, a.took, a.stdout)
		}
	}
	t.Run("dash", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.stdin = "one\ntwo \n"
		for _, args := range [][]string{{"pick", "-"}, {"pick", "--id", "-"}} {
			a := w.run(t, args...)
			a.succeeded(t)
			same(t, "the ids", a.value(t, "id"), []any{"one", "two"})
		}
		w.stdin = "../x"
		w.inside(t, nil, []string{"pick", "-"}).refused(t, fault.InvalidAgentInput) // read, then checked like any other
		same(t, "the schema", w.inside(t, nil, []string{"pick", "--schema"}).at(t, "data.parameters.id.stdin_fallback"),
			true)
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for _, nothing := range []string{"", " \n\n"} {
			w.stdin = nothing
			w.inside(t, nil, []string{"pick", "-"}).refused(t, fault.StdinEmpty)
		}
		w.stdin = ""
		w.run(t, "pick", "-").refused(t, fault.StdinEmpty)
		required(t, drinks(t, w))
		closed := w.command("drink")
		required(t, finish(t, closed)) // the null device
	})
	t.Run("terminal", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		onTerminal := func(h *Host) { h.Stdin, h.StdinTerminal = neverRead{t}, true }
		required(t, w.inside(t, nil, []string{"drink"}, onTerminal))
		required(t, w.inside(t, nil, []string{"pick", "-"}, onTerminal))
		w.inside(t, nil, []string{"pick", "a"}, onTerminal).succeeded(t)
		w.inside(t, nil, []string{"echo", "a"}, onTerminal).succeeded(t)
	})
	t.Run("limit", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		for _, size := range []int{65535, 65536} {
			w.stdin = strings.Repeat("x", size)
			a := drinks(t, w)
			a.succeeded(t)
			same(t, "bytes", a.at(t, "data.bytes"), float64(size))
		}
		for _, size := range []int{65537, 10 << 20} {
			w.stdin = strings.Repeat("x", size)
			a := drinks(t, w)
			a.refused(t, fault.StdinTooLarge)
			same(t, "context", a.at(t, "error.context"), map[string]any{
				"received_bytes": float64(size),
				"limit_bytes":    65536.0,
			})
			if hint, _ := a.at(t, "error.suggestion").(string); !strings.Contains(hint, "--input-file") {
				t.Errorf("the hint is %q", hint)
			}
		}
	})
	t.Run("environment", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.env = append(w.env, "OMNIAGENT_MAX_STDIN_BYTES=10")
		w.stdin = "0123456789"
		drinks(t, w).succeeded(t)
		w.stdin += "0"
		a := drinks(t, w)
		a.refused(t, fault.StdinTooLarge)
		same(t, "limit", a.at(t, "error.context.limit_bytes"), 10.0)
		w.inside(t, nil, []string{"pick", "-"}).refused(t, fault.StdinTooLarge)
	})
	t.Run("input_file", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		if err := os.WriteFile(filepath.Join(w.dir, "large"), bytes.Repeat([]byte("x"), 10<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		a := w.run(t, "drink", "--input-file", "large")
		a.succeeded(t)
		same(t, "bytes", a.at(t, "data.bytes"), float64(10<<20))
		w.inside(t, nil, []string{"drink", "--input-file", "large"},
			func(h *Host) { h.Stdin, h.StdinTerminal = neverRead{t}, true }).succeeded(t)
		missing := w.inside(t, nil, []string{"drink", "--input-file", "missing"})
		validEnvelope(t, missing.stdout)
		if err := os.Mkdir(filepath.Join(w.dir, "dir"), 0o700); err != nil {
			t.Fatal(err)
		}
		w.inside(t, nil, []string{"drink", "--input-file", "dir"}).refused(t, fault.Invalid)
		same(t, "a missing file", []any{missing.code, missing.at(t, "error.code")}, []any{5, "FILE_NOT_FOUND"})
	})
	t.Run("input_file_dash", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.stdin = strings.Repeat("x", 65536)
		a := drinks(t, w, "--input-file", "-")
		a.succeeded(t)
		same(t, "bytes", a.at(t, "data.bytes"), 65536.0)
		w.stdin += "x"
		drinks(t, w, "--input-file", "-").refused(t, fault.StdinTooLarge)
	})
}

func TestEnvironmentTable(t *testing.T) {
	t.Parallel()
	// usual are the variables of other programs, which have no prefix.
	usual := strings.Fields(`HOME USER LOGNAME USERNAME USERPROFILE TERM NO_COLOR CI GITHUB_ACTIONS JENKINS_URL DISPLAY WAYLAND_DISPLAY SSH_TTY TMPDIR
		XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME XDG_CACHE_HOME APPDATA LOCALAPPDATA TOOL_TRACE_ID`)
	// silent are never read, because there is nothing to switch off. The program lists them to say so.
	silent := []string{"OMNIAGENT_NO_TELEMETRY", "OMNIAGENT_NO_UPDATE"}
	asked := variablesAsked(t)
	t.Run("prefix", func(t *testing.T) {
		t.Parallel()
		for _, name := range asked {
			if !strings.HasPrefix(name, "OMNIAGENT_") && !slices.Contains(usual, name) {
				t.Errorf("%s is read", name)
			}
		}
		for _, args := range [][]string{
			{"ok", "--stable-output"},
			{"fail", "--stable-output"},
			{"echo", "--stable-output", "--id=.."},
		} {
			w := newWorld(t)
			before := w.run(t, args...)
			w.env = append(w.env, "DEBUG=1", "VERBOSE=1", "OUTPUT=plain", "TIMEOUT=1ns")
			after := w.run(t, args...)
			same(t, strings.Join(args, " "), []any{after.code, after.stdout, after.stderr},
				[]any{before.code, before.stdout, before.stderr})
		}
	})
	t.Run("manifest", func(t *testing.T) {
		t.Parallel()
		p, err := tested()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(p.manifestMeta()["environment"])
		if err != nil {
			t.Fatal(err)
		}
		var listed []Variable
		if err := json.Unmarshal(raw, &listed); err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, v := range listed {
			names = append(names, v.Name)
			if v.Description == "" {
				t.Errorf("%s has no description", v.Name)
			}
		}
		own := slices.DeleteFunc(slices.Concat(asked, silent),
			func(n string) bool { return !strings.HasPrefix(n, "OMNIAGENT_") })
		slices.Sort(own)
		slices.Sort(names)
		same(t, "meta.environment", names, slices.Compact(own))
	})
	t.Run("no_unmask", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		key := "sk-ant-api03-" + strings.Repeat("aB3dE5gH", 12)
		for _, value := range []string{"1", "true"} {
			w.env = append(w.env, "OMNIAGENT_UNMASK="+value, "UNMASK="+value)
			if a := w.run(t, "echo", "--text", key); strings.Contains(a.stdout+a.stderr, key) {
				t.Errorf("the key is shown: %s", a.stdout)
			}
		}
		if a := w.run(t, "echo", "--unmask", "--text", key); !strings.Contains(a.stdout, key) {
			t.Errorf("the flag has no effect: %s", a.stdout)
		}
	})
}

// variablesAsked returns all variables that calls of every sort look up.
func variablesAsked(t *testing.T) []string {
	t.Helper()
	w := newWorld(t)
	var mu sync.Mutex
	asked := map[string]bool{}
	for _, args := range [][]string{
		{"ok"},
		{"fail"},
		{"ok", "--help"},
		{"put", "n"},
		{"put", "n", "--idempotency-key", "k"},
		{"wipe", "n"},
		{"drink"},
		{"echo", "--debug", "--context", "x"},
		{"echo", "--config", "missing"},
		{},
		{"--help"},
		{"--schema"},
		{"nothing"},
		{"listed", "--output", "plain"},
		{"scoped"},
		{"starts"},
	} {
		for _, terminal := range []bool{true, false} {
			w.inside(t, nil, args, func(h *Host) {
				h.StdinTerminal, h.StdoutTerminal, h.StderrTerminal = terminal, terminal, terminal
				h.Lookup = func(name string) (string, bool) {
					mu.Lock()
					defer mu.Unlock()
					asked[name] = true
					if name == "USER" {
						return "", false // then the other names are tried too
					}
					return w.lookup(name)
				}
			})
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Sorted(maps.Keys(asked))
}
