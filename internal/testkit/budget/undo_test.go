package budget

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// What a snapshot takes of a tree that it knows, as a multiple of git status of the same tree, in work of the
// processors, which does not depend on what else the machine does: the best of some, in turn. That of git has the start
// of its process, which is a small part of it. The aim is 1, in time: we use more processors. bench/undo shows both.
const maxSnapshot = 1.5

const (
	snapshotFiles = 15_000
	snapshotRuns  = 12
)

// here measures the work of a function in this process.
func here(do func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		runtime.GC() // of what the one before left
		began := measure.Used()
		err := do()
		return measure.Used() - began, err
	}
}

func TestSnapshot(t *testing.T) {
	hermetic.Long(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	root := filepath.Join(t.TempDir(), "work")
	if err := measure.Repository(root, snapshotFiles); err != nil {
		t.Fatal(err)
	}
	store, status := undo.Store{Dir: t.TempDir()}, measure.Git(root, nil, "status", "--porcelain")
	var turn *undo.Turn
	begin := here(func() (err error) {
		turn, err = store.Begin(t.Context(), undo.Origin{Dir: root})
		return err
	})
	end := here(func() error { _, err := turn.End(t.Context(), time.Now()); return err })
	var before, after, theirs time.Duration
	for range attempts {
		for i := range snapshotRuns {
			var works [3]time.Duration
			for i, do := range []func() (time.Duration, error){begin, status, end} {
				var err error
				if works[i], err = do(); err != nil {
					t.Fatal(err)
				}
			}
			if i > 0 { // the first one reads more
				before, theirs, after = least(before, works[0]), least(theirs, works[1]), least(after, works[2])
			}
		}
		first, second := float64(before)/float64(theirs), float64(after)/float64(theirs)
		t.Logf("a snapshot takes %v of work before a turn and %v after it, git status %v: %.2f and %.2f times", before, after,
			theirs, first, second)
		if first <= maxSnapshot && second <= maxSnapshot {
			return
		}
	}
	t.Errorf("a snapshot takes %v of work before a turn and %v after it, more than %v times the %v of git status", before, after,
		maxSnapshot, theirs)
}
