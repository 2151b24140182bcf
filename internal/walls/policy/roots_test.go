package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
)

// TestFurtherRoots are written in, but for what is protected in each.
func TestFurtherRoots(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := func(name string) string {
		path := filepath.Join(top, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	home := dir("home")
	w := policy.Wanted{Root: dir("in"), Roots: []string{dir("more"), home}, Home: home, Temp: dir("temp")}
	dir("home/.ssh")
	dir("more/.git/hooks")
	limits, err := w.Policy()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"in/a": true, "more/a": true, "more/.git/hooks/a": false, "more/.git/config": false, "more/.mcp.json": false,
		"more/.vscode/x": false, "home/a": true, "home/.ssh/a": false, "home/.bashrc": false,
		"beside/a": false, "in/.mcp.json": false,
	} {
		for _, tier := range []sandbox.Tier{sandbox.Namespaces, sandbox.Seatbelt} {
			effects := limits.Explain(filepath.Join(top, filepath.FromSlash(path)), sandbox.Report{Tier: tier})
			if path == "beside/a" && tier == sandbox.Namespaces {
				continue // it may lie in /tmp, where commands have a directory of their own
			}
			if effects[1].Allowed != want {
				t.Errorf("%s: %+v", path, effects[1])
			}
		}
	}
	w.Roots = []string{filepath.Join(top, "none")}
	if _, err := w.Policy(); err == nil {
		t.Error("a directory that is not there")
	}
}
