//go:build unix

package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/fault"
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
