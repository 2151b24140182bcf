package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/undo"
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
