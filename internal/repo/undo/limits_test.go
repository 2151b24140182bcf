package undo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/repo/undo"
)

// TestManyChangesAndLargeFiles: a record counts all changes and names some, and a file that is too large is a gap.
func TestManyChangesAndLargeFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	large := filepath.Join(root, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 64<<20+1); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	turn := begin(t, undo.Store{Dir: t.TempDir()}, root)
	if gaps := turn.Cover().Gaps; len(gaps) != 1 || !strings.HasSuffix(gaps[0].Path, "large") {
		t.Errorf("gaps: %v", gaps)
	}
	for i := range 150 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := end(t, turn); r.Files != 150 || len(r.Changed) != 100 {
		t.Errorf("%d changes, %d are named", r.Files, len(r.Changed))
	}
}

// TestManyIgnoredBytes: what .gitignore excludes can be made again, and is kept only if it is little.
func TestManyIgnoredBytes(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, size := range map[string]int64{
		".git/HEAD": 0, ".gitignore": 0, "build/a": 50 << 20, "build/b": 50 << 20, "build/c": 50 << 20,
	} {
		file := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("build\n"), 0o600),
			os.Truncate(file, max(size, 6))); err != nil { // holes: they take no room
			t.Fatal(err)
		}
	}
	turn := begin(t, undo.Store{Dir: t.TempDir()}, root)
	if gaps := turn.Cover().Gaps; len(gaps) != 1 || !strings.HasSuffix(gaps[0].Path, "build") {
		t.Errorf("gaps: %v", gaps)
	}
	end(t, turn)
}
