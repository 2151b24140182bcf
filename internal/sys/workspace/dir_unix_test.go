//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

func TestNothingOfADirWaits(t *testing.T) {
	y := newYard(t)
	check(t, syscall.Mkfifo(filepath.Join(y.in, "fifo"), 0o600))
	y.link(t, "fifo", "to-fifo")
	y.link(t, filepath.Join(y.in, "fifo"), "to-fifo-absolute")
	for _, name := range []string{"fifo", "to-fifo", "to-fifo-absolute"} {
		_, _, err := y.Open(name)
		wantReason(t, name, err, "not-regular")
		wantReason(t, name, y.Replace(name, nil, ReplaceOptions{}), "not-regular")
	}
	_, _, err := y.ReadDir("fifo", 0)
	wantReason(t, "fifo", err, "not-directory")
}

func TestAReadOnlyDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	y := newYard(t)
	check(t, os.Chmod(filepath.Join(y.in, "sub"), 0o500))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(y.in, "sub"), 0o700) })
	wantReason(t, "read-only directory", y.Replace("sub/x", nil, ReplaceOptions{}), "blocked")
}

func TestAFileThatMayNotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	y := newYard(t)
	check(t, os.Chmod(filepath.Join(y.in, "file"), 0))
	_, _, err := y.Open("file")
	wantReason(t, "file", err, "blocked")
	wantCode(t, err, fault.PermissionDenied)
}

func TestAWorkspaceWithManyLinksInARow(t *testing.T) {
	y := newYard(t)
	last := "file"
	for range 30 {
		next := last + "x"
		y.link(t, filepath.Join(y.in, last), next)
		last = next
	}
	check(t, y.Replace(last, []byte(newText), ReplaceOptions{}))
	wantContent(t, filepath.Join(y.in, "file"), newText)
	if strings.Count(last, "x") != 30 {
		t.Fatal(last)
	}
}

// TestNoDirectoryIsWaitedFor: a FIFO where a directory belongs, also one that has just taken its place.
func TestNoDirectoryIsWaitedFor(t *testing.T) {
	y := newYard(t)
	info, err := y.root.Lstat("sub")
	check(t, err)
	check(t, os.Rename(filepath.Join(y.in, "sub"), filepath.Join(y.top, "sub")))
	fifo := filepath.Join(y.in, "sub")
	check(t, syscall.Mkfifo(fifo, 0o600))
	for what, open := range map[string]func() error{
		"taken":   func() error { _, err := openSame(y.root, "sub", info); return err },
		"root":    func() error { _, err := OpenDir(fifo); return err },
		"usage":   func() error { _, _, err := Usage(fifo, Walk{}); return err },
		"removal": func() error { _, err := RemoveTree(fifo, "x", Walk{}); return err },
		"survey":  func() error { _, err := y.Survey(t.Context(), "sub", nil, Survey{}); return err },
		"listing": func() error { _, _, err := y.ReadDir("sub", 0); return err },
		"beneath": func() error { return y.Replace("sub/x", nil, ReplaceOptions{}) },
	} {
		ended := make(chan error, 1)
		go func() { ended <- open() }()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: a FIFO is a directory", what)
			}
		case <-time.After(hermetic.Patience):
			t.Fatalf("%s waits for a FIFO", what)
		}
	}
}

// TestAFurtherDirectoryThatBecomesALink shows nothing of where it leads.
func TestAFurtherDirectoryThatBecomesALink(t *testing.T) {
	y := newYard(t)
	kept := filepath.Join(y.top, "kept")
	check(t, os.Rename(kept, kept+"-old"))
	check(t, os.Symlink(y.out, kept))
	if data, err := y.ReadFile(kept+"/secret", 100); err == nil {
		t.Fatalf("read %q", data)
	}
	check(t, os.Remove(kept))
	check(t, os.Rename(kept+"-old", kept))
	if _, err := y.ReadFile(kept+"/long", 100); err != nil {
		t.Fatal(err)
	}
}
