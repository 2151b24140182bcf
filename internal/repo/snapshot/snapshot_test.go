package snapshot_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"omniagent/internal/repo/snapshot"
)

func hasGit(t testing.TB) bool {
	if _, err := exec.LookPath("git"); err != nil {
		t.Log("git is not installed: what needs it is left out")
		return false
	}
	return true
}

func needGit(t testing.TB) {
	if !hasGit(t) {
		t.Skip("git is not installed")
	}
}

func run(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func openStore(t testing.TB, dir string) *snapshot.Store {
	t.Helper()
	mkdir(t, dir)
	return snapshot.OpenStore(dir)
}

func take(t testing.TB, root string, o snapshot.Options) *snapshot.Index {
	t.Helper()
	x, err := snapshot.Take(context.Background(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// saved returns the index after Encode and Parse.
func saved(t testing.TB, x *snapshot.Index) *snapshot.Index {
	t.Helper()
	loaded, err := snapshot.Parse(x.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
