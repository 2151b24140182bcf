package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/event"
	"omniagent/internal/undo"
)

// TestCover: a snapshot names what it does not have, and whether git may overwrite it. With too many gaps to name it
// covers nothing.
func TestCover(t *testing.T) {
	t.Parallel()
	root := workspaceOf(t)
	store := undo.Store{Dir: t.TempDir(), FileLimit: 40_000, IgnoredLimit: 5}
	sh(t, root, "head -c 50000 /dev/urandom > large; head -c 50000 /dev/urandom > src/f1.go; head -c 50000 /dev/urandom > dist/big")
	covers := func(dir string) event.Cover {
		t.Helper()
		turn := begin(t, store, dir)
		defer turn.Drop()
		cover := turn.Cover()
		for i := range cover.Gaps {
			if cover.Gaps[i].Why == "" {
				t.Errorf("%+v has no reason", cover.Gaps[i])
			}
			cover.Gaps[i].Why = ""
		}
		return cover
	}
	want := event.Cover{Roots: []string{root}, Gaps: []event.Gap{
		{Path: root + "/.env"},
		{Path: root + "/dist"},
		{Path: root + "/large", Loose: true},
		{Path: root + "/src/f1.go", Loose: true},
	}}
	if diff := cmp.Diff(want, covers(filepath.Join(root, "src"))); diff != "" {
		t.Errorf("(-want +is):\n%s", diff)
	}
	linked := filepath.Join(t.TempDir(), "linked")
	sh(t, root, "git worktree add -q "+linked)
	store.FileLimit = 0
	git := event.Gap{Path: root + "/.git/worktrees/linked", Loose: true}
	if diff := cmp.Diff(event.Cover{Roots: []string{linked}, Gaps: []event.Gap{git}}, covers(linked)); diff != "" {
		t.Errorf("in a linked worktree (-want +is):\n%s", diff)
	}
	store.FileLimit = 40_000
	for i := range 120 {
		if err := os.WriteFile(fmt.Sprintf("%s/many%d", root, i), make([]byte, 50_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if cover := covers(root); cover.Roots != nil {
		t.Errorf("with %d gaps: %v", len(cover.Gaps), cover.Roots)
	}
}
