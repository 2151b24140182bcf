//go:build unix

package parts

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// TestScriptsThatAreNone: Rehearse refuses files that would block it, files without an end, and files that are too
// large.
func TestScriptsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	fifo, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "large")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, maxScript+1); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, large, "/dev/zero", dir, filepath.Join(dir, "none")} {
		done := make(chan error, 1)
		go func() {
			_, _, err := Rehearse(path, "", dir, 0, 0)
			done <- err
		}()
		select {
		case err := <-done:
			if f := fault.Of(err); !errors.Is(err, fault.ArgError) || f.Suggestion == "" {
				t.Errorf("%s: %v", path, err)
			}
		case <-time.After(hermetic.Patience):
			t.Fatalf("%s holds us", path)
		}
	}
}
