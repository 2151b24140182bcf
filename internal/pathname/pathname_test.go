package pathname

import (
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
