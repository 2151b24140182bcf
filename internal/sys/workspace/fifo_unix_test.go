//go:build unix

package workspace

import (
	"path/filepath"
	"syscall"
	"testing"

	"omniagent/internal/kit/fault"
)

func TestNothingWaitsForAFIFO(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fifo")
	check(t, syscall.Mkfifo(path, 0o600))
	_, err := ReadFile(path, 10)
	wantCode(t, err, fault.Unsafe)
	wantCode(t, WriteFile(path, nil, 0o600), fault.Unsafe)
	wantCode(t, Append(path, []byte("x"), 0), fault.Unsafe)
	_, err = Lock(t.Context(), path, 0)
	wantCode(t, err, fault.Unsafe)
	removed, err := RemoveTree(dir, "fifo", Walk{})
	check(t, err)
	if removed != 0 || exists(path) {
		t.Fatalf("%d bytes", removed)
	}
}
