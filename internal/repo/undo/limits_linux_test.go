package undo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/kit/fault"
)

// sparse makes a file of that size, which takes no room.
func sparse(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

// TestFewFilesAreHeldOpen: more are copied at once, for a process may open only so many.
func TestFewFilesAreHeldOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	sparse(t, path, 1)
	l := newLeases(0)
	defer l.close()
	if !l.take(path, nil) {
		t.Skip("the file system of the temporary directory has no leases")
	}
	taken := 1
	for taken <= mostLeases && l.take(path, nil) {
		taken++
	}
	if taken != mostLeases {
		t.Errorf("%d files are open", taken)
	}
}

// TestLargeObjectsAreNotCopied: a snapshot fails rather than fill the disk with objects, and holds none in memory.
func TestLargeObjectsAreNotCopied(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	sparse(t, filepath.Join(from, "large"), copyLimit+1)
	never := func(string, os.FileInfo) bool { return false }
	if err := bringAll(from, to, []string{"large"}, never); !errors.Is(err, fault.FieldTooLarge) {
		t.Errorf("an object of more than 1 GiB is copied: %v", err)
	}
	for size, small := range map[int64]bool{looseLimit: true, looseLimit + 1: false} {
		sparse(t, filepath.Join(from, "loose"), size)
		if info, err := os.Stat(filepath.Join(from, "loose")); err != nil || isSmall("", info) != small {
			t.Errorf("%d bytes are held: %t, %v", size, !small, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(from, "objects", "info"), 0o700); err != nil {
		t.Fatal(err)
	}
	if sparse(t, filepath.Join(from, "objects/info/alternates"), jsonLimit+1); readAlternates(from) != nil {
		t.Error("a file of any size is read")
	}
}

// TestFewObjectsAreLookedAt: whether others share the objects of a repository is found out by some of the loose ones,
// or each turn would wait for all. Of the packs each counts.
func TestFewObjectsAreLookedAt(t *testing.T) {
	common := t.TempDir()
	objects := filepath.Join(common, "objects")
	for _, dir := range []string{"00", "pack"} {
		if err := os.MkdirAll(filepath.Join(objects, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 513 { // every other one is looked at, from the first on
		if err := os.WriteFile(fmt.Sprintf("%s/00/%04d", objects, i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sparse(t, filepath.Join(objects, "pack/x.pack"), 1)
	p := &place{store: Store{Dir: t.TempDir()}}
	for _, c := range []struct {
		name   string
		shared bool
	}{{"00/0001", false}, {"00/0002", true}, {"pack/x.pack", true}} {
		other := filepath.Join(t.TempDir(), "other")
		if err := os.Link(filepath.Join(objects, c.name), other); err != nil {
			t.Fatal(err)
		}
		if p.shared(common, objects) != c.shared {
			t.Errorf("%s has another name: %t", c.name, !c.shared)
		}
		if err := os.Remove(other); err != nil {
			t.Fatal(err)
		}
	}
}
