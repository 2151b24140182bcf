package pathname

import (
	"os"
	"path/filepath"
	"testing"
)

func TestIn(t *testing.T) {
	for _, c := range []struct {
		dir, file, rel string
		within         bool
	}{
		{"/w", "/w", ".", true},
		{"/w", "/w/a/b", "a/b", true},
		{"/w/", "/w/a/../b", "b", true},
		{"/w", "/w-evil/a", "", false},
		{"/w", "/", "", false},
		{"/w", "/w/../x", "", false},
		{"/w", "/w/..a", "..a", true},
		{"/", "/a", "a", true},
		{"/w", "a", "", false},
		{"a", "a/b", "b", true},
		{".", "b", "b", true},
		{".", "../b", "", false},
		{"", "", "", false},
		{"", "b", "", false},
		{".", "", "", false},
	} {
		rel, within := In(filepath.FromSlash(c.dir), filepath.FromSlash(c.file))
		if rel != filepath.FromSlash(c.rel) || within != c.within {
			t.Errorf("In(%q, %q) = %q, %v", c.dir, c.file, rel, within)
		}
		if got := Within(filepath.FromSlash(c.dir), filepath.FromSlash(c.file)); got != c.within {
			t.Errorf("Within(%q, %q) = %v", c.dir, c.file, got)
		}
	}
}

func TestReal(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"real/sub", "other"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "real/sub", "nowhere": "real/gone"} {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Skipf("there are no symbolic links here: %v", err)
		}
	}
	for path, want := range map[string]string{
		"link":            "real/sub",
		"link/..":         "real",
		"link/new":        "real/sub/new",
		"link/new/er":     "real/sub/new/er",
		"link/../new":     "real/new",
		"link/new/..":     "real/sub",
		"link/new//":      "real/sub/new",
		"other/../absent": "absent",
		"nowhere":         "nowhere",
		"nowhere/x":       "nowhere/x",
	} {
		if got := Real(base + "/" + path); got != filepath.Join(base, want) {
			t.Errorf("Real(%q) = %q", path, got)
		}
	}
}

func TestSame(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", "link"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"file": true, "./file": true, "link": true, ".": false, "absent": false} {
		if got := Same("file", path); got != want {
			t.Errorf("Same(file, %s) = %v", path, got)
		}
	}
	if !Same("absent", "x/../absent") || Same("absent", "other") {
		t.Error("a path that does not exist is itself, and no other")
	}
}
