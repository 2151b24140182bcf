package undo

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/fault"
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
	l := newLeases()
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
