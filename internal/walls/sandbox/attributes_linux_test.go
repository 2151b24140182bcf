//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/workspace"
)

// modes is a Watcher that keeps when the supervisor began to change a mode.
type modes chan time.Time

func (modes) Attach(func() bool) func() { return func() {} }

func (m modes) Wrote(_ string, _ workspace.Status, began time.Time) { m <- began }

func (modes) Moved(string, string, workspace.Status, workspace.Status, time.Time) {}

func (modes) Unseen(string) {}

// TestWhoChangesAMode: where the kernel changes it after the entry, the entry says so. A look right after the entry
// would find the mode from before, and then take the agent's for somebody else's.
func TestWhoChangesAMode(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		must(t, os.WriteFile(g.root+"/file", nil, 0o600))
		w, seen := g.walls(t, tier), make(modes, 1)
		w.seen = seen
		if r := g.run(t, w, "chmod", "+x", "file"); r.ending.ExitCode != 0 {
			t.Fatalf("%+v", r)
		}
		if began := <-seen; began.IsZero() != (tier == Namespaces) {
			t.Errorf("it began at %v", began)
		}
	})
}

// TestLongAttribute: what the kernel would not take is not read, however much a caller says that it is.
func TestLongAttribute(t *testing.T) {
	name := []byte("user.x\x00")
	r := &pathCall{supervisor: &supervisor{listener: -1}, pid: os.Getpid()}
	for size, want := range map[uint64]error{65536: unix.EFAULT, 65537: unix.E2BIG, 1 << 63: unix.E2BIG} {
		// There is no memory at the address of the value.
		err := extended(uint64(uintptr(unsafe.Pointer(&name[0]))), 0, size, 0)(r, -1)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	runtime.KeepAlive(name)
}
