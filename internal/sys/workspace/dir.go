package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// Dir is a directory that a program works in. Every file is opened below it, by descriptor, whatever links there are
// and whatever is moved meanwhile. Names have slashes and are relative to the root, which is ".". A link that leads out
// of the root is refused. A link that leads back into it is followed, even if it is absolute.
//
// A Dir may have further read-only directories, and further roots, each with its own Dir. Names in them are absolute
// paths with slashes. Links from one of them into another are refused.
//
// A refusal is a fault with the detail "reason": outside, invalid, missing, blocked, not-regular, not-directory,
// too-large, read-only, changed, full or, for any other error of the system, failed.
type Dir struct {
	path         string // absolute, as it was given
	real         string // the same without links
	root         *os.Root
	readOnly     []further
	roots        []*Dir // further roots
	out          error  // the error of os.Root for a name that leads outside
	restrictions restrictions
	// allows one replacement at a time, so that no other of ours happens between the last check of a file and its
	// rename
	replaceMu sync.Mutex
	wrote     func(path string, before, after Status) // see Watch; nil: no watcher
}

// Watch sets a function that is called for each written path: absolute, without links, with the status before and
// after.
func (d *Dir) Watch(wrote func(path string, before, after Status)) {
	for _, dir := range append([]*Dir{d}, d.roots...) {
		dir.wrote = wrote
	}
}

// tell reports a written path to the watcher. after may be nil.
func (d *Dir) tell(name string, before, after fs.FileInfo) {
	if d.wrote == nil || after == nil {
		return
	}
	var was Status
	if before != nil {
		was = StatusOf(before)
	}
	d.wrote(filepath.Join(d.real, filepath.FromSlash(name)), was, StatusOf(after))
}

// OpenDir opens the directory root. The directories in also are read-only, and need not exist yet.
func OpenDir(root string, also ...string) (*Dir, error) {
	d := &Dir{}
	var err error
	if d.path, err = filepath.Abs(root); err == nil {
		d.real, err = filepath.EvalSymlinks(d.path)
	}
	if err == nil {
		d.root, err = openRoot(d.real)
	}
	if err != nil {
		return nil, d.toFault("open", root, err)
	}
	_, d.out = d.root.Lstat("..")
	var escape *fs.PathError
	if errors.As(d.out, &escape) {
		d.out = escape.Err
	}
	for _, dir := range also {
		if dir, err = filepath.Abs(dir); err != nil {
			_ = d.root.Close()
			return nil, d.toFault("open", dir, err)
		}
		d.readOnly = append(d.readOnly, further{dir, pathname.Real(dir)})
	}
	return d, nil
}

// Close closes the directory.
func (d *Dir) Close() error {
	err := d.root.Close()
	for _, more := range d.roots {
		err = errors.Join(err, more.Close())
	}
	return err
}

// Path returns the absolute path of the root.
func (d *Dir) Path() string { return d.path }

// Open opens a regular file for reading. It refuses anything else, so it never blocks on a FIFO or a device.
func (d *Dir) Open(name string) (*os.File, os.FileInfo, error) {
	if own, rel := d.owner(name); own != d {
		return own.Open(rel)
	}
	info, err := d.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, notRegularFile(name, info)
	}
	f, err := in(d, name, func(r *os.Root, name string) (*os.File, error) {
		return r.OpenFile(name, os.O_RDONLY|openWithoutBlocking, 0)
	})
	if err != nil {
		return nil, nil, d.toFault("read", name, err)
	}
	// Only a check of the opened file is reliable.
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegularFile(name, info)
	}
	if err == nil {
		err = d.mayRead(name, f)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, d.toFault("read", name, err)
	}
	return f, info, nil
}

// Stat describes the file, following a link.
func (d *Dir) Stat(name string) (os.FileInfo, error) {
	if own, rel := d.owner(name); own != d {
		return own.Stat(rel)
	}
	info, err := in(d, name, (*os.Root).Stat)
	if err != nil {
		return nil, d.toFault("read", name, err)
	}
	return info, nil
}

// Lstat describes the file without following a link.
func (d *Dir) Lstat(name string) (os.FileInfo, error) {
	if own, rel := d.owner(name); own != d {
		return own.Lstat(rel)
	}
	info, err := d.lstat(name)
	if err != nil {
		return nil, d.toFault("read", name, err)
	}
	return info, nil
}

func (d *Dir) lstat(name string) (os.FileInfo, error) {
	if filepath.IsAbs(filepath.FromSlash(name)) {
		return in(d, name, (*os.Root).Lstat)
	}
	// Follow links in its parents only.
	return in(d, path.Dir(name), func(r *os.Root, dir string) (os.FileInfo, error) {
		return r.Lstat(filepath.Join(dir, path.Base(name)))
	})
}

// ReadDir lists a directory, sorted by name. If it has more than limit entries, ReadDir returns limit of them and more
// is true. 0 means no limit.
func (d *Dir) ReadDir(name string, limit int) (entries []fs.DirEntry, more bool, err error) {
	if own, rel := d.owner(name); own != d {
		return own.ReadDir(rel, limit)
	}
	f, err := in(d, name, func(r *os.Root, name string) (*os.File, error) {
		info, err := r.Stat(name)
		if err == nil && !info.IsDir() {
			err = notDirectory(name, info)
		}
		if err != nil {
			return nil, err
		}
		return r.OpenFile(name, os.O_RDONLY|openWithoutBlocking, 0)
	})
	if err != nil {
		return nil, false, d.toFault("list", name, err)
	}
	defer f.Close()
	if err := d.mayRead(name, f); err != nil {
		return nil, false, err
	}
	if limit <= 0 {
		limit = -1
	} else {
		limit++
	}
	if entries, err = f.ReadDir(limit); err != nil && !errors.Is(err, io.EOF) {
		return nil, false, d.toFault("list", name, err)
	}
	if limit > 0 && len(entries) == limit {
		entries, more = entries[:limit-1], true
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, more, nil
}

// ReadFile reads a regular file of at most limit bytes.
func (d *Dir) ReadFile(name string, limit int64) ([]byte, error) {
	data, _, err := d.Load(name, limit)
	return data, err
}

// in calls do with a name below the root or in one of the further directories. os.Root refuses absolute links even if
// they lead back into the root, so a refused name is resolved and tried again, still below the root.
func in[T any](d *Dir, name string, do func(*os.Root, string) (T, error)) (T, error) {
	if local := filepath.FromSlash(name); filepath.IsAbs(local) {
		return inFurther(d, local, do)
	}
	value, err := do(d.root, filepath.FromSlash(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return value, err
	}
	resolved, failed := d.Resolve(name)
	switch {
	case failed != nil:
		return value, failed
	case resolved == name:
		return value, err
	}
	return do(d.root, filepath.FromSlash(resolved))
}

// further is a read-only directory.
type further struct {
	path string // absolute, as it was given
	real string // path without links, if it existed
}

// open opens the directory. If a link has replaced it, it does not open the link's target.
func (f further) open() (*os.Root, error) {
	info, err := os.Lstat(f.real)
	if err == nil && !info.IsDir() {
		err = notDirectory(f.path, info)
	}
	if err != nil {
		return nil, err
	}
	root, err := openRoot(f.real)
	if err != nil {
		return nil, err
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = root.Close()
		return nil, changedSince(f.path)
	}
	return root, nil
}

// openRoot opens a directory. With "/.", anything else fails at once, while os.OpenRoot alone would block on a FIFO.
func openRoot(path string) (*os.Root, error) { return os.OpenRoot(path + "/.") }

// openRootIn is openRoot in an open directory.
func openRootIn(at *os.Root, name string) (*os.Root, error) { return at.OpenRoot(name + "/.") }

func inFurther[T any](d *Dir, local string, do func(*os.Root, string) (T, error)) (value T, err error) {
	for _, dir := range d.readOnly {
		rel, ok := beneathPath(dir.path, local, foldsCase(d.path))
		if !ok {
			continue
		}
		root, err := dir.open()
		if err != nil {
			return value, err
		}
		defer root.Close()
		return do(root, rel)
	}
	return value, d.outside(local)
}

// Resolve returns name without links, even if the file does not exist. It examines one directory after the other,
// always below the root. The result must only be used below the root again, so moving a link meanwhile gains nothing. A
// name in a further directory is returned unchanged.
func (d *Dir) Resolve(name string) (string, error) {
	if own, rel := d.owner(name); own != d {
		resolved, err := own.Resolve(rel)
		if err != nil {
			return "", err
		}
		return own.outerName(resolved), nil
	}
	if filepath.IsAbs(filepath.FromSlash(name)) {
		return name, nil
	}
	resolved, err := d.resolve(name)
	if err != nil {
		return "", d.toFault("read", name, err)
	}
	return resolved, nil
}

func (d *Dir) resolve(name string) (string, error) {
	todo, done := strings.Split(name, "/"), []string{}
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && len(done) > 0:
			done = done[:len(done)-1]
			continue
		case part == "..":
			// A link may leave the root and come back.
			rel, ok := d.relative(filepath.Join(append([]string{filepath.Dir(d.real)}, todo...)...))
			if links++; !ok || links > maxLinks {
				return "", d.outside(name)
			}
			todo = strings.Split(rel, "/")
			continue
		}
		here := path.Join(append(slices.Clone(done), part)...)
		info, err := d.root.Lstat(filepath.FromSlash(here))
		if err != nil && !Absent(err) {
			return "", err
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = append(done, part)
			continue
		}
		link, err := d.root.Readlink(filepath.FromSlash(here))
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", reasoned(fault.New(fault.SymlinkLoop, "%s is a symbolic link that leads to itself",
				printable(name)),
				name, "invalid")
		}
		if filepath.IsAbs(link) {
			rel, ok := d.relative(link)
			if !ok {
				return "", d.outside(name)
			}
			link, done = rel, done[:0]
		}
		todo = append(strings.Split(filepath.ToSlash(link), "/"), todo...)
	}
	return path.Join(append([]string{"."}, done...)...), nil
}

// relative returns an absolute path relative to the root, with slashes, if it is below the root by its name. It does
// not touch the file system, because the author of a link chose the path, and even a stat may mount something or wait
// for a server.
func (d *Dir) relative(abs string) (string, bool) {
	fold := foldsCase(d.path)
	// Try it without Clean first: in link/../x, the dots go up from the target of the link.
	for _, abs := range []string{abs, filepath.Clean(abs)} {
		for _, base := range []string{d.path, d.real} {
			if rel, ok := beneathPath(base, abs, fold); ok {
				return filepath.ToSlash(rel), true
			}
		}
	}
	return "", false
}

// under returns an absolute and clean path from a model, relative to the root.
func (d *Dir) under(abs string) (string, bool) {
	if rel, ok := d.relative(abs); ok {
		return rel, true
	}
	// Links above the root, such as /tmp on macOS, may give it further names.
	rel, ok := beneathPath(d.real, pathname.Real(abs), foldsCase(d.path))
	return filepath.ToSlash(rel), ok
}

// beneathPath returns p relative to base, if it is below base by its name. Both must be absolute and clean. /w-evil is
// not below /w.
func beneathPath(base, p string, fold bool) (string, bool) {
	same := func(a, b string) bool { return a == b || fold && strings.EqualFold(a, b) }
	if same(base, p) {
		return ".", true
	}
	if !strings.HasSuffix(base, string(filepath.Separator)) {
		base += string(filepath.Separator)
	}
	if len(p) > len(base) && same(base, p[:len(base)]) {
		return p[len(base):], true
	}
	return "", false
}

// foldsCase reports whether the file system at root ignores case.
func foldsCase(root string) bool { return runtime.GOOS == "windows" || mountedDrive(root) }
