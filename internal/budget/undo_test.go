package budget

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"omniagent/internal/measure"
	"omniagent/internal/undo"
)

// What a snapshot takes of a tree that it knows, as a multiple of git status of the same tree: the best of some, in
// turn. The time of git has the start of its process, which is a small part of it.
const maxSnapshot = 1.0

const (
	snapshotFiles = 15_000
	snapshotRuns  = 12
)

func TestSnapshot(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	root := filepath.Join(t.TempDir(), "work")
	if err := measure.Repository(root, snapshotFiles); err != nil {
		t.Fatal(err)
	}
	store, status := undo.Store{Dir: t.TempDir()}, measure.Git(root, nil, "status", "--porcelain")
	took := func(best *time.Duration, do func() error) {
		runtime.GC() // of what the one before left
		began := time.Now()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		*best = least(*best, time.Since(began))
	}
	var before, after, theirs time.Duration
	for range attempts {
		for i := range snapshotRuns {
			var turn *undo.Turn
			var skip time.Duration
			first := &before
			if i == 0 {
				first = &skip // it reads more
			}
			took(first, func() (err error) {
				turn, err = store.Begin(t.Context(), undo.Origin{Dir: root})
				return err
			})
			took(&theirs, func() error { _, err := status(); return err })
			took(&after, func() error { _, err := turn.End(t.Context(), time.Now()); return err })
		}
		first, second := float64(before)/float64(theirs), float64(after)/float64(theirs)
		t.Logf("a snapshot takes %v before a turn and %v after it, git status %v: %.2f and %.2f times", before, after,
			theirs, first, second)
		if first <= maxSnapshot && second <= maxSnapshot {
			return
		}
	}
	t.Errorf("a snapshot takes %v before a turn and %v after it, more than %v times the %v of git status", before, after,
		maxSnapshot, theirs)
}
