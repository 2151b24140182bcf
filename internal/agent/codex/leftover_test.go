package codex

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"omniagent/internal/agent"
)

// TestLeftovers: only empty directories that were not there before are removed.
func TestLeftovers(t *testing.T) {
	dir, more := t.TempDir(), t.TempDir()
	path := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	mkdir := func(paths ...string) {
		t.Helper()
		for _, p := range paths {
			if err := os.MkdirAll(p, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	mkdir(path(".git"), path(".agents"))
	l := agent.Launch{Dir: dir}
	l.Spec.Terms.Dirs = []string{more, "relative"}
	left := New().Observe(l).(agent.Leaver).Leaves()
	if slices.Contains(left, path(".agents")) || !slices.Contains(left, filepath.Join(more, ".git")) || len(left) != 6 {
		t.Fatalf("%q", left)
	}
	mkdir(path(".aws", "here"), path("elsewhere"), filepath.Join(more, ".aws"))
	if err := os.Symlink("elsewhere", path(".codex")); err != nil {
		t.Skip(err)
	}
	agent.Clear(left)
	for _, kept := range []string{".git", ".agents", ".aws", ".codex", "elsewhere"} {
		if _, err := os.Lstat(path(kept)); err != nil {
			t.Errorf("%s: %v", kept, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(more, ".aws")); err == nil {
		t.Error("an empty directory is left")
	}
}
