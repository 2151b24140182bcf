package agent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
)

// TestLeftovers: only empty directories and files that were not there before are removed.
func TestLeftovers(t *testing.T) {
	dir, more := pathname.Real(t.TempDir()), pathname.Real(t.TempDir())
	path := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"kept", "held"} {
		must(os.Mkdir(path(d), 0o755))
	}
	l := Launch{Dir: dir}
	l.Spec.Terms.Dirs = []string{more, "relative"}
	absent := Absent(About{Placeholders: []string{"held", "full", "file", "gone", "link/there"}}, l)
	if slices.Contains(absent, path("held")) || !slices.Contains(absent, filepath.Join(more, "held")) ||
		len(absent) != 9 {
		t.Fatalf("%q", absent)
	}
	must(os.MkdirAll(path("full", "here"), 0o755))
	must(os.Mkdir(filepath.Join(more, "gone"), 0o755))
	must(os.WriteFile(path("file"), []byte("x"), 0o600))
	must(os.WriteFile(path("gone"), nil, 0o600))
	must(os.Mkdir(path("kept", "there"), 0o755))
	must(os.Symlink(path("kept"), path("link"))) // an agent can lead a directory elsewhere
	process.RemoveEmpty(absent)
	for _, kept := range []string{"kept/there", "held", "full", "file"} {
		if _, err := os.Lstat(path(kept)); err != nil {
			t.Errorf("%s: %v", kept, err)
		}
	}
	for _, gone := range []string{path("gone"), filepath.Join(more, "gone")} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is left, and empty", gone)
		}
	}
}
