package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"omniagent/internal/kit/fault"
)

const defaultDepth = 50

// Walk bounds a walk through a tree. The zero value is the strictest.
type Walk struct {
	MaxDepth int  // directories below the start; 0 means 50
	NoFollow bool // do not examine links, so that a link to a parent is not an error
}

// RemoveTree deletes path, a file or a whole tree, which must be below root: absolute, or relative to root. It first
// walks the tree without changing it. It leaves the tree untouched if it is too deep (fault.DepthExceeded), has a link
// to a parent directory (fault.SymlinkLoop, unless walk.NoFollow) or has another file system mounted in it
// (fault.Unsafe). It removes links themselves and never follows them. A link among the parents of path is fault.Unsafe.
// It returns how many bytes of regular files it removed. Of several that remove a tree at once, one succeeds, and the
// others get fs.ErrNotExist. If the removal fails half-way, the fault has completed_count.
func RemoveTree(root, path string, walk Walk) (bytes int64, err error) {
	parent, rel, err := openParent(root, path)
	if err != nil {
		return 0, err
	}
	defer parent.Close()
	name := filepath.Base(rel)
	info, err := parent.Lstat(name)
	if err != nil {
		return 0, toFault("remove", path, err)
	}
	look, err := newWalker(root, rel, walk, false)
	if err != nil {
		return 0, err
	}
	if err := look.entry(parent, name, rel, info, 0); err != nil {
		return 0, err
	}
	sweep, err := newWalker(root, rel, walk, true)
	if err != nil {
		return 0, err
	}
	sweep.NoFollow = true // links have been checked
	err = sweep.entry(parent, name, rel, info, 0)
	return sweep.bytes, err
}

// Purge removes a directory with everything in it, also directories that nobody may write, such as Go modules, or
// enter, such as those that the kernel makes for overlays. It follows names, so no program may change the tree
// meanwhile.
func Purge(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Usage adds up the regular files below root. It does not follow links. A root that does not exist is empty.
func Usage(root string, walk Walk) (bytes int64, files int, err error) {
	top, err := openRoot(root)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, toFault("read", root, err)
	}
	defer top.Close()
	w, err := newWalker(root, ".", walk, false)
	if err != nil {
		return 0, 0, err
	}
	w.acrossFileSystems = true
	info, err := top.Stat(".")
	if err != nil {
		return 0, 0, toFault("read", root, err)
	}
	err = w.directory(top, ".", info, 0)
	return w.bytes, w.files, err
}

// openParent opens the parent directory of path, going down from root one name at a time, never through a link.
func openParent(root, path string) (*os.Root, string, error) {
	outside := func() (*os.Root, string, error) {
		return nil, "", fault.New(fault.Unsafe, "%s is not below %s, so it is not removed", path, root).
			With("path", path).With("root", root)
	}
	if root == "" || path == "" || filepath.Dir(filepath.Clean(root)) == filepath.Clean(root) {
		return outside() // no root, or a whole file system
	}
	rel := filepath.Clean(path)
	if filepath.IsAbs(rel) {
		base, err := filepath.Abs(root)
		if err != nil {
			return nil, "", toFault("remove", path, err)
		}
		rel = beneath(base, rel)
	}
	if rel == "." || !filepath.IsLocal(rel) {
		return outside()
	}
	at, err := openRoot(root)
	if err != nil {
		return nil, "", toFault("remove", path, err)
	}
	parts := strings.Split(rel, string(filepath.Separator))
	for _, name := range parts[:len(parts)-1] {
		info, err := at.Lstat(name)
		if err == nil && !info.IsDir() {
			err = fault.New(fault.Unsafe, "%s in %s is a %s, so nothing behind it is removed", name, path,
				typeOf(info.Mode())).
				With("path", path)
		}
		var next *os.Root
		if err == nil {
			next, err = openSame(at, name, info)
		}
		_ = at.Close()
		if err != nil {
			return nil, "", toFault("remove", path, err)
		}
		at = next
	}
	return at, rel, nil
}

// beneath returns path relative to base. If path is elsewhere by its name, it resolves the links in both, such as /tmp
// on macOS.
func beneath(base, path string) string {
	rel, err := filepath.Rel(base, path)
	if err == nil && filepath.IsLocal(rel) {
		return rel
	}
	realBase, err := filepath.EvalSymlinks(base)
	if err != nil {
		return rel
	}
	realDir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return rel
	}
	if resolved, err := filepath.Rel(realBase, filepath.Join(realDir, filepath.Base(path))); err == nil {
		return resolved
	}
	return rel
}

// openSame opens the directory that info describes. It returns an error if something has replaced it.
func openSame(parent *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	dir, err := openRootIn(parent, name)
	if err != nil {
		return nil, err
	}
	now, err := dir.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = fault.New(fault.ConcurrentModification, "%s changed meanwhile", name)
	}
	if err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// walker walks a tree through open directories, so that it cannot be led elsewhere by renames or links.
type walker struct {
	Walk
	remove            bool
	acrossFileSystems bool
	real              string        // the root without links
	above             []fs.FileInfo // the parents, from the root on
	bytes             int64
	files             int
	done              int // entries completed
}

// newWalker prepares a walk that starts at rel, relative to root.
func newWalker(root, rel string, walk Walk, remove bool) (*walker, error) {
	real, err := filepath.EvalSymlinks(root)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return nil, toFault("read", root, err)
	}
	if walk.MaxDepth <= 0 {
		walk.MaxDepth = defaultDepth
	}
	w := &walker{Walk: walk, remove: remove, real: real}
	for dir := rel; dir != "."; {
		dir = filepath.Dir(dir)
		info, err := os.Lstat(filepath.Join(real, dir))
		if err != nil {
			return nil, toFault("read", dir, err)
		}
		w.above = append(w.above, info)
	}
	slices.Reverse(w.above)
	return w, nil
}

// entry handles one name in a directory; path is relative to the root.
func (w *walker) entry(parent *os.Root, name, path string, info fs.FileInfo, depth int) error {
	switch {
	case info.IsDir():
		dir, err := openSame(parent, name, info)
		if err == nil {
			err = w.directory(dir, path, info, depth)
			_ = dir.Close()
		}
		if err != nil {
			return w.failed(path, err)
		}
	case info.Mode()&fs.ModeSymlink != 0 && !w.NoFollow:
		if err := w.link(path); err != nil {
			return err
		}
	}
	if w.remove {
		// What others removed from the tree is gone as well, but only one of them has removed the tree.
		if err := parent.Remove(name); err != nil && (depth == 0 || !errors.Is(err, fs.ErrNotExist)) {
			return w.failed(path, err)
		}
	}
	w.done++
	if info.Mode().IsRegular() {
		w.bytes += info.Size()
		w.files++
	}
	return nil
}

// directory handles the entries of an open directory.
func (w *walker) directory(dir *os.Root, path string, info fs.FileInfo, depth int) error {
	if depth > w.MaxDepth {
		return fault.New(fault.DepthExceeded, "%s is more than %d directories deep", path, w.MaxDepth).
			With("path", path).With("max_depth", w.MaxDepth).With("completed_count", w.done)
	}
	if len(w.above) > 0 && !w.acrossFileSystems && !sameFileSystem(w.above[0], info) {
		return fault.New(fault.Unsafe, "another file system is mounted at %s, so the tree is not removed", path).
			With("path", path)
	}
	w.above = append(w.above, info)
	defer func() { w.above = w.above[:len(w.above)-1] }()
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		child, err := dir.Lstat(name)
		if err == nil {
			err = w.entry(dir, name, filepath.Join(path, name), child, depth+1)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed in the meantime
		}
		if err != nil {
			return w.failed(filepath.Join(path, name), err)
		}
	}
	return nil
}

// link checks the target of a link. A link to a parent directory is a loop. Any other link is a leaf, because a target
// outside the root is never followed, and one inside is walked by its own name.
func (w *walker) link(path string) error {
	full := filepath.Join(w.real, path)
	info, err := os.Stat(full)
	if errors.Is(err, syscall.ELOOP) {
		return w.loop(path, path)
	}
	if err != nil || !info.IsDir() {
		return nil // it leads to a file, or nowhere
	}
	for _, dir := range w.above {
		if os.SameFile(dir, info) {
			target, err := filepath.EvalSymlinks(full)
			if err != nil {
				target = full
			}
			return w.loop(path, target)
		}
	}
	return nil
}

func (w *walker) loop(path, target string) error {
	return fault.New(fault.SymlinkLoop, "the link %s leads back to %s", path, target).
		With("path", path).With("loop_target", target).With("completed_count", w.done)
}

// failed adds the progress of the walk to the first error.
func (w *walker) failed(path string, err error) error {
	verb := "read"
	if w.remove {
		verb = "remove"
	}
	f := fault.Of(toFault(verb, path, err))
	if _, known := f.Detail["completed_count"]; !known {
		f.With("completed_count", w.done)
	}
	return f
}

func namesIn(dir *os.Root) ([]string, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}
