package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/sys/workspace"
)

// desk is a workspace with an outside, and the tools on it.
type desk struct {
	t   testing.TB
	top string // holds the workspace, in, and what is outside, out
	in  string
	env *Env
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	d := &desk{t: t, top: top, in: filepath.Join(top, "in")}
	check(t, os.Mkdir(d.in, 0o755))
	check(t, os.Mkdir(filepath.Join(top, "out"), 0o755))
	files, err := workspace.OpenDir(d.in)
	check(t, err)
	t.Cleanup(func() { _ = files.Close() })
	d.env = &Env{Files: files, Seen: &Seen{}, Todos: &Todos{}}
	return d
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) put(name, content string) {
	d.t.Helper()
	path := filepath.Join(d.in, name)
	check(d.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(d.t, os.WriteFile(path, []byte(content), 0o644))
}

func (d *desk) holds(name, want string) {
	d.t.Helper()
	got, err := os.ReadFile(filepath.Join(d.in, name))
	check(d.t, err)
	if string(got) != want {
		d.t.Fatalf("%s holds\n%q, want\n%q", name, clip(string(got)), clip(want))
	}
}

// object is an input.
type object map[string]any

// call plans and runs. An input that is refused is a failed result here, as it is to the model.
func (d *desk) call(make func(*Env) Tool, input any) Result {
	d.t.Helper()
	raw, ok := input.(string)
	if !ok {
		data, err := json.Marshal(input)
		check(d.t, err)
		raw = string(data)
	}
	action, err := make(d.env).Plan(json.RawMessage(raw))
	if err != nil {
		return failed(err)
	}
	return action.Run(context.Background())
}

// says holds that a call succeeds and says all of the parts.
func (d *desk) says(make func(*Env) Tool, input any, parts ...string) Result {
	d.t.Helper()
	r := d.call(make, input)
	if r.Failed {
		d.t.Fatalf("%v failed: %s", input, r.Text)
	}
	d.contains(r, parts)
	return r
}

// fails holds that a call fails and says all of the parts.
func (d *desk) fails(make func(*Env) Tool, input any, parts ...string) Result {
	d.t.Helper()
	r := d.call(make, input)
	if !r.Failed {
		d.t.Fatalf("%v did not fail: %s", input, r.Text)
	}
	d.contains(r, parts)
	return r
}

func (d *desk) contains(r Result, parts []string) {
	d.t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.Text, part) {
			d.t.Fatalf("the result is\n%s\nwithout\n%s", r.Text, part)
		}
	}
}
