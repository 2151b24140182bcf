package policy

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLeft: what lies beside a place is found, also in the directories above it, and no link is followed there, since a
// command may have put one in place of such a directory.
func TestLeft(t *testing.T) {
	dir, hidden := t.TempDir(), t.TempDir()
	for _, name := range []string{"q/ws/inside", "q/beside", "top", "d/e/f", filepath.Join(hidden, "key")} {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(hidden, filepath.Join(dir, "moved")); err != nil {
		t.Skipf("no link can be made here: %v", err)
	}
	as := filepath.FromSlash("/tmp")
	at := func(name string) string { return filepath.Join(as, filepath.FromSlash(name)) }
	got := Left(dir, as, []string{at("q/ws"), at("moved/ws")})
	if want := []string{at("d") + string(filepath.Separator), at("q/beside"), at("top")}; !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
