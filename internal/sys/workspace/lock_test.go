package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

func TestLockExcludesAlsoWithinAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path, 0)
	check(t, err)
	_, err = Lock(t.Context(), path, 30*time.Millisecond)
	f := wantCode(t, err, fault.LockHeld)
	if f.Detail["holder_pid"] != os.Getpid() || f.Detail["holder_age_ms"].(int64) < 30 || f.RetryAfter <= 0 ||
		!f.Retryable() {
		t.Fatalf("got %+v", f)
	}
	check(t, held.Unlock())
	check(t, held.Unlock())
	again, err := Lock(t.Context(), path, 0)
	check(t, err)
	check(t, again.Unlock())
	if !exists(path) {
		t.Fatal("the lock file went away")
	}
}

func TestLockIsHandedOverWhileSomebodyWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path, 0)
	check(t, err)
	got := make(chan error)
	go func() {
		second, err := Lock(t.Context(), path, time.Minute)
		if err == nil {
			err = second.Unlock()
		}
		got <- err
	}()
	check(t, held.Unlock())
	check(t, <-got)
}

func TestLockEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path, 0)
	check(t, err)
	defer held.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Lock(ctx, path, time.Hour)
	wantCode(t, err, fault.Interrupted)
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = Lock(ctx, path, time.Hour)
	wantCode(t, err, fault.TimedOut)
}

func TestLockRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	_, err := Lock(t.Context(), dir, 0)
	wantCode(t, err, fault.Unsafe)
	_, err = Lock(t.Context(), filepath.Join(dir, "none", "lock"), 0)
	wantCode(t, err, fault.FileMissing)
	if os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "link")) == nil && openWithoutLinks != 0 {
		_, err = Lock(t.Context(), filepath.Join(dir, "link"), 0)
		wantCode(t, err, fault.Unsafe)
	}
}

func TestRemovedLockFileIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(t.Context(), path, 0)
	check(t, err)
	defer held.Unlock()
	if os.Remove(path) != nil {
		t.Skip("an open file cannot be removed here")
	}
	second, err := Lock(t.Context(), path, 0)
	check(t, err)
	defer second.Unlock()
	_, err = Lock(t.Context(), path, 0)
	wantCode(t, err, fault.LockHeld)
}

func TestNoUpdateIsLostUnderLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter")
	check(t, os.WriteFile(path, []byte("0"), 0o600))
	const processes = 8
	var waits []func() error
	for range processes {
		cmd, _, _ := other(t, "count", path)
		waits = append(waits, cmd.Wait)
	}
	for _, wait := range waits {
		check(t, wait())
	}
	wantContent(t, path, fmt.Sprint(processes*25))
}

func TestLockOfAKilledProcessIsFreeAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 10 {
		cmd, _, out := other(t, "hold", path)
		awaitLines(t, out, 1)
		_, err := Lock(t.Context(), path, 0)
		f := wantCode(t, err, fault.LockHeld)
		if f.Detail["holder_pid"] != cmd.Process.Pid {
			t.Fatalf("got %v", f.Detail)
		}
		check(t, cmd.Process.Kill())
		_ = cmd.Wait()
		held, err := Lock(t.Context(), path, 0)
		check(t, err)
		check(t, held.Unlock())
	}
}

// TestLooksDoNotMisleadEachOther: a look at a lock takes it for a moment. Another look does not take that for the
// process that the file still names, which is gone.
func TestLooksDoNotMisleadEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd, _, out := other(t, "hold", path)
	awaitLines(t, out, 1)
	if by, held := HolderOf(path); !held || by.PID != cmd.Process.Pid {
		t.Fatalf("%v is held: %v", by, held)
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 2000 {
				if by, held := HolderOf(path); held {
					t.Errorf("held by %v", by)
					return
				}
			}
		})
	}
	all.Wait()
}
