//go:build unix

package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/repo/snapshot"
	"omniagent/internal/testkit/hermetic"
)

// TestChangeWithinATick rewrites a file so soon that its status may be the same.
func TestChangeWithinATick(t *testing.T) {
	for i := range 50 {
		root := t.TempDir()
		write(t, root, "a", "one")
		info, err := os.Stat(filepath.Join(root, "a"))
		if err != nil {
			t.Fatal(err)
		}
		before := take(t, root, snapshot.Options{})
		write(t, root, "a", "two")
		if err := os.Chtimes(filepath.Join(root, "a"), time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
		c := snapshot.Diff(before, take(t, root, snapshot.Options{Since: before}))
		if len(c.Files) != 1 {
			t.Fatalf("attempt %d: %v", i, c.Files)
		}
	}
}

// TestNothingButFilesIsOpened would wait for ever if a FIFO were opened.
func TestNothingButFilesIsOpened(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "a\n")
	c, patch := difference(t, root, func() {
		if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(root, "socket"), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = socket.Close() })
		_ = os.Remove(filepath.Join(root, "a"))
		if err := syscall.Mkfifo(filepath.Join(root, "a"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	expect(t, c, map[string]snapshot.Status{"fifo": snapshot.Added, "socket": snapshot.Added, "a": snapshot.Type})
	if strings.Contains(patch, "fifo") || !strings.Contains(patch, "deleted file") {
		t.Errorf("the diff is\n%s", patch)
	}
}

func TestHardLinks(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "one\n")
	if err := os.Link(filepath.Join(root, "a"), filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	c, _ := difference(t, root, func() {
		write(t, root, "a", "two\n")
		write(t, root, "c", "")
	})
	expect(t, c, map[string]snapshot.Status{"a": snapshot.Modified, "b": snapshot.Modified, "c": snapshot.Added})
	c, _ = difference(t, root, func() { _ = os.Link(filepath.Join(root, "a"), filepath.Join(root, "d")) })
	expect(t, c, map[string]snapshot.Status{"d": snapshot.Added}) // the others have another time, and the same content
}

func TestHugeFileIsNotRead(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "huge")
	write(t, root, "huge", "")
	if err := os.Truncate(path, 8<<40); err != nil {
		t.Skip("the file system cannot have a sparse file of 8 TB: ", err)
	}
	began := time.Now()
	c, patch := difference(t, root, func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("x"), 5<<40); err != nil {
			t.Fatal(err)
		}
	})
	if took := time.Since(began); took > hermetic.Patience {
		t.Errorf("it took %v", took)
	}
	expect(t, c, map[string]snapshot.Status{"huge": snapshot.Modified})
	if c.Files[0].Added != nil || !strings.Contains(patch, "Binary files a/huge and b/huge differ\n") {
		t.Errorf("lines %v, and the diff\n%s", c.Files[0].Added, patch)
	}
}

func TestLimits(t *testing.T) {
	root := t.TempDir()
	for i := range 10 {
		write(t, root, fmt.Sprint(i), strings.Repeat(fmt.Sprint(i), 100))
	}
	for reason, o := range map[string]snapshot.Options{
		"larger than the limit": {FileLimit: 99},
		"together":              {TotalLimit: 500},
		"number of files":       {CountLimit: 5},
	} {
		o.Store = openStore(t, filepath.Join(t.TempDir(), "store"))
		x := take(t, root, o)
		if n := len(x.Gaps); n != 5 && o.FileLimit == 0 || n != 10 && o.FileLimit != 0 {
			t.Errorf("%s: %d gaps", reason, n)
		}
		for _, g := range x.Gaps {
			if !strings.Contains(g.Reason, reason) || g.Unread {
				t.Errorf("%s: %v", reason, g)
			}
		}
	}
}

// TestUnreadable tells nothing of a directory that could not be read once.
func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read every directory")
	}
	root := t.TempDir()
	write(t, root, "closed/in/a", "a")
	write(t, root, "b", "b")
	c, _ := difference(t, root, func() {
		if err := os.Chmod(filepath.Join(root, "closed"), 0); err != nil {
			t.Fatal(err)
		}
		write(t, root, "b", "c")
	})
	_ = os.Chmod(filepath.Join(root, "closed"), 0o755)
	expect(t, c, map[string]snapshot.Status{"closed": snapshot.Mode, "b": snapshot.Modified})
	if len(c.Gaps) != 1 || c.Gaps[0].Path != "closed" || !c.Gaps[0].Unread {
		t.Errorf("gaps: %v", c.Gaps)
	}
}

// TestRace walks while others write, create, delete, and put links to the outside in place of directories.
func TestRace(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret", "secret")
	for i := range 200 {
		write(t, root, fmt.Sprintf("d%d/f%d", i%20, i), "text")
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			at := filepath.Join(root, fmt.Sprintf("d%d", i%20))
			_ = os.Rename(at, at+"moved")
			_ = os.Symlink(outside, at)
			_ = os.Remove(at)
			_ = os.Rename(at+"moved", at)
		}
	})
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := filepath.Join(root, fmt.Sprintf("d%d/f%d", i%20, i%200))
			_ = os.WriteFile(name, bytes.Repeat([]byte("x"), i%5000), 0o644)
			_ = os.WriteFile(name+"new", nil, 0o644)
			_ = os.Remove(name + "new")
		}
	})
	dir := filepath.Join(t.TempDir(), "store")
	store := openStore(t, dir)
	var since *snapshot.Index
	for range 50 {
		x, err := snapshot.Take(ctx, root, snapshot.Options{Store: store, Since: since})
		if err != nil {
			t.Fatal(err)
		}
		if since != nil {
			for _, f := range snapshot.Diff(since, x).Files {
				if strings.Contains(f.Path, "secret") {
					t.Errorf("%s is outside of the root", f.Path)
				}
			}
		}
		since = x
	}
	stop()
	group.Wait()
	sum := sha256.Sum256([]byte("secret"))
	packs, _ := filepath.Glob(filepath.Join(dir, "*.pack"))
	for _, pack := range packs {
		if data, err := os.ReadFile(pack); err != nil || bytes.Contains(data, sum[:]) {
			t.Error("the store has a content from outside of the root:", err)
		}
	}
	if len(packs) == 0 {
		t.Error("the store has nothing")
	}
}

func TestEndOfContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := snapshot.Take(ctx, t.TempDir(), snapshot.Options{}); err == nil {
		t.Error("Take went on")
	}
}
