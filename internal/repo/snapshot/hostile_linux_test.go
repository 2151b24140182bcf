package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/repo/snapshot"
)

// TestStoreThatFails has a store on which nothing can be written any more.
func TestStoreThatFails(t *testing.T) {
	root, small := t.TempDir(), t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a small file system cannot be mounted here: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, 0) })
	random := rand.NewChaCha8([32]byte{})
	for i := range 10 {
		text := make([]byte, 20<<10)
		_, _ = random.Read(text)
		write(t, root, fmt.Sprint(i), string(text))
	}
	store := openStore(t, small)
	before := take(t, root, snapshot.Options{Store: store})
	if len(before.Gaps) == 0 || !strings.Contains(before.Gaps[0].Reason, "no space left") {
		t.Fatalf("gaps: %v", before.Gaps)
	}
	write(t, root, "0", "new\n")
	c := snapshot.Diff(before, take(t, root, snapshot.Options{Store: store, Since: before}))
	expect(t, c, map[string]snapshot.Status{"0": snapshot.Modified})
}
