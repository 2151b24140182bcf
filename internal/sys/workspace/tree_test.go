package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

// plant makes files (and the directories above them) with ten bytes each.
func plant(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(root, filepath.FromSlash(name))
		check(t, os.MkdirAll(filepath.Dir(path), 0o700))
		check(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Skip("no symbolic links here")
	}
}

func TestRemoveTreeTakesTheTreeAndReports(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	plant(t, root, "gone/a", "gone/deep/er/b", "stays")
	plant(t, outside, "precious")
	link(t, outside, filepath.Join(root, "gone", "out"))
	link(t, filepath.Join(outside, "precious"), filepath.Join(root, "gone", "file"))
	link(t, "nowhere", filepath.Join(root, "gone", "dangling"))
	link(t, "../stays", filepath.Join(root, "gone", "up"))
	removed, err := RemoveTree(root, "gone", Walk{})
	check(t, err)
	if removed != 20 {
		t.Fatalf("%d bytes", removed)
	}
	if exists(filepath.Join(root, "gone")) || !exists(filepath.Join(root, "stays")) ||
		!exists(filepath.Join(outside, "precious")) {
		t.Fatal("the wrong things are gone")
	}
	removed, err = RemoveTree(root, filepath.Join(root, "stays"), Walk{})
	check(t, err)
	if removed != 10 || exists(filepath.Join(root, "stays")) {
		t.Fatalf("%d bytes", removed)
	}
	_, err = RemoveTree(root, "stays", Walk{})
	wantCode(t, err, fault.FileMissing)
}

// Several remove a tree at once: it is gone, and one of them did it.
func TestRemoveTreeAtOnce(t *testing.T) {
	for range 20 {
		root := t.TempDir()
		for n := range 10 {
			plant(t, root, "tree/"+strconv.Itoa(n)+"/deep/file")
		}
		ends := make(chan error)
		for range 4 {
			go func() {
				_, err := RemoveTree(root, "tree", Walk{})
				ends <- err
			}()
		}
		removed := 0
		for range 4 {
			if err := <-ends; err == nil {
				removed++
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
		if _, err := os.Lstat(filepath.Join(root, "tree")); removed != 1 || !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%d removed it, %v", removed, err)
		}
	}
}

func TestRemoveTreeRefusesRootAndOutside(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "root")
	plant(t, base, "root/a/b", "other/c")
	link(t, filepath.Join(base, "other"), filepath.Join(root, "escape"))
	link(t, "a", filepath.Join(root, "inner"))
	for _, path := range []string{
		"", ".", root, root + "/", "a/..", "..", "../other", "../other/c", base, filepath.Join(base, "other"),
		filepath.Join(root, "..", "other"), "escape/c", "inner/b", "/", root + "x",
	} {
		if path == root+"x" {
			plant(t, base, "rootx")
		}
		_, err := RemoveTree(root, path, Walk{})
		if err == nil {
			t.Errorf("%q was removed", path)
		}
		wantCode(t, err, fault.Unsafe)
	}
	for _, none := range []string{"", "/", string(filepath.Separator)} {
		_, err := RemoveTree(none, filepath.Join(base, "other"), Walk{})
		wantCode(t, err, fault.Unsafe)
	}
	for _, name := range []string{"root/a/b", "other/c", "rootx"} {
		if !exists(filepath.Join(base, name)) {
			t.Errorf("%s is gone", name)
		}
	}
	removed, err := RemoveTree(root, "escape", Walk{})
	check(t, err)
	if removed != 0 || !exists(filepath.Join(base, "other", "c")) || exists(filepath.Join(root, "escape")) {
		t.Fatalf("%d bytes", removed)
	}
}

func TestRemoveTreeBeneathALinkedRoot(t *testing.T) {
	base := t.TempDir()
	plant(t, base, "real/a/b")
	root := filepath.Join(base, "link")
	link(t, "real", root)
	_, err := RemoveTree(root, filepath.Join(base, "real", "a"), Walk{})
	check(t, err)
	if exists(filepath.Join(base, "real", "a")) {
		t.Fatal("still there")
	}
}

func TestRemoveTreeReportsALoopAndLeavesAll(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "tree/a/b/file")
	loop := filepath.Join(root, "tree", "a", "b", "loop")
	for _, to := range []string{"..", filepath.Join(root, "tree"), "../../..", "."} {
		link(t, to, loop)
		_, err := RemoveTree(root, "tree", Walk{})
		f := wantCode(t, err, fault.SymlinkLoop)
		if f.Detail["path"] != filepath.Join("tree", "a", "b", "loop") || f.Detail["loop_target"] == "" ||
			f.Detail["completed_count"] == nil {
			t.Fatalf("got %v", f.Detail)
		}
		if !exists(filepath.Join(root, "tree", "a", "b", "file")) {
			t.Fatal("something was removed")
		}
		_, _, err = Usage(root, Walk{})
		wantCode(t, err, fault.SymlinkLoop)
		check(t, os.Remove(loop))
	}
	link(t, "loop", loop)
	_, err := RemoveTree(root, "tree", Walk{})
	wantCode(t, err, fault.SymlinkLoop)
	_, err = RemoveTree(root, "tree", Walk{NoFollow: true})
	check(t, err)
}

func TestRemoveTreeIsBoundedInDepth(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "tree/file", "tree/"+strings.Repeat("d/", 51)+"file")
	_, err := RemoveTree(root, "tree", Walk{})
	f := wantCode(t, err, fault.DepthExceeded)
	if f.Detail["max_depth"] != 50 || !exists(filepath.Join(root, "tree", "file")) {
		t.Fatalf("got %v", f.Detail)
	}
	removed, err := RemoveTree(root, "tree", Walk{MaxDepth: 51})
	check(t, err)
	if removed != 20 {
		t.Fatalf("%d bytes", removed)
	}
}

func TestUsage(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "a", "b/c", "b/d/e")
	link(t, "b", filepath.Join(root, "again"))
	bytes, files, err := Usage(root, Walk{})
	check(t, err)
	if bytes != 30 || files != 3 {
		t.Fatalf("%d bytes in %d files", bytes, files)
	}
	bytes, files, err = Usage(filepath.Join(root, "none"), Walk{})
	check(t, err)
	if bytes != 0 || files != 0 {
		t.Fatalf("%d bytes in %d files", bytes, files)
	}
}
