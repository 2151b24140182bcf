//go:build unix

package acp_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/acp"
	"omniagent/internal/fault"
)

// TestLedgersAreFiles: what is no file of ours among them is no session, and nothing waits for it.
func TestLedgersAreFiles(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other.jsonl")
	begin := []byte(`{"begin":{"v":1,"agent":"claude","dir":"/w"}}` + "\n" + `{"update":{"Kind":"session_info_update","Title":"x"}}` + "\n")
	for _, file := range []string{other, filepath.Join(dir, "mine.jsonl")} {
		if err := os.WriteFile(file, begin, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, "pipe.jsonl"), 0o600), os.Symlink(other, filepath.Join(dir, "link.jsonl"))); err != nil {
		t.Fatal(err)
	}
	l := acp.Ledger{Dir: dir, Agent: "claude", Log: t.Logf}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, id := range []string{"pipe", "link"} {
			if _, err := l.Find(t.Context(), id); !errors.Is(err, fault.NotFoundCode) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if _, err := l.List(t.Context()); err != nil {
			t.Error(err)
		}
		if k, err := l.Find(t.Context(), "mine"); err != nil || k.Dir != "/w" {
			t.Errorf("%+v, %v", k, err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a pipe")
	}
}
