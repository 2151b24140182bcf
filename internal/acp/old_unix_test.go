//go:build unix

package acp

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/hermetic"
)

// TestLedgersAreFiles: anything but a regular file is ignored, and nothing blocks on it.
func TestLedgersAreFiles(t *testing.T) {
	t.Parallel()
	p, content := past(t)
	other := filepath.Join(t.TempDir(), "other.jsonl")
	if err := errors.Join(os.WriteFile(other, content, 0o600), syscall.Mkfifo(p.ledgerFile("pipe"), 0o600),
		os.Symlink(other, p.ledgerFile("link"))); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, id := range []string{"pipe", "link"} {
			if err := p.find(t.Context(), id); !errors.Is(err, fault.NotFoundCode) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if got, err := p.list(t.Context(), ""); err != nil || len(got) != 1 {
			t.Error(got, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(hermetic.Patience):
		t.Fatal("it waits for a pipe")
	}
}
