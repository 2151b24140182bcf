package undo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/core/event"
	"omniagent/internal/repo/undo"
)

// TestCover: a snapshot names what it does not have, and whether git may overwrite it. With too many gaps to name it
// covers nothing.
func TestCover(t *testing.T) {
	t.Parallel()
	root := workspaceOf(t)
	store := undo.Store{Dir: t.TempDir(), FileLimit: 40_000, IgnoredLimit: 5}
	sh(t, root,
		"head -c 50000 /dev/urandom > large; head -c 50000 /dev/urandom > src/f1.go; head -c 50000 /dev/urandom > "+
			"dist/big")
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
	shared := []event.Gap{{Path: linked}, {Path: root + "/.git/worktrees/linked", Loose: true}}
	if diff := cmp.Diff(event.Cover{Roots: []string{linked}, Gaps: shared}, covers(linked)); diff != "" {
		t.Errorf("in a linked worktree (-want +is):\n%s", diff)
	}
	inside := root + "/inside"
	sh(t, root, "git worktree add -q "+inside)
	if cover := covers(root); len(cover.Gaps) > 0 && cover.Gaps[0].Path == root || slices.ContainsFunc(cover.Gaps,
		func(g event.Gap) bool { return filepath.Base(g.Path) == "inside" }) {
		t.Errorf("with a linked worktree inside: %v", cover.Gaps)
	}
	if gaps := covers(inside).Gaps; len(gaps) == 0 || gaps[0].Path != inside {
		t.Errorf("in the linked worktree inside: %v", gaps)
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

// TestCoverOfOtherNames: what somebody else has under another name is not covered, nor what has no content.
func TestCoverOfOtherNames(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	root := filepath.Join(base, "work")
	sh(t, base, `git init -q origin; cd origin; for i in 1 2 3; do echo $i > f$i; git add -A; git commit -qm $i; done
		git gc -q; echo 4 > f4; git add -A; git commit -qm 4; cd ..; git clone -q --local origin work; cd work
		echo p > ../p; ln ../p linked; echo in > in; ln in again; mkfifo fifo
		echo node_modules/ > .gitignore; mkdir -p node_modules/a/b; ln ../p node_modules/a/b/c; ln ../p node_modules/d`)
	store := undo.Store{Dir: t.TempDir()}
	want := []string{root + "/.git/objects", root + "/fifo", root + "/linked", root + "/node_modules"}
	for range 2 { // the second one has pins already
		turn := begin(t, store, root)
		var is []string
		for _, g := range turn.Cover().Gaps {
			is = append(is, g.Path)
			if g.Loose || g.Why == "" {
				t.Errorf("%+v", g)
			}
		}
		slices.Sort(is)
		turn.Drop()
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("(-want +is):\n%s", diff)
		}
	}
	origin := begin(t, store, filepath.Join(base, "origin"))
	defer origin.Drop()
	if gaps := origin.Cover().Gaps; len(gaps) != 1 || gaps[0].Path != base+"/origin/.git/objects" {
		t.Errorf("the other one has %v", gaps)
	}
}
