//go:build unix

package agentsfile

import (
	"path/filepath"
	"syscall"
	"testing"

	"omniagent/internal/kit/fault"
)

func TestNothingWaitsForAFIFO(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "omniagent.config.mjs")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read(dir, false)
	wantFault(t, err, fault.ConfigInvalid, path, "not a regular file", "Remove")
}
