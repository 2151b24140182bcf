package workspace

import (
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
)

// ReplaceOptions controls Replace. The zero value replaces any regular file.
type ReplaceOptions struct {
	Mode   fs.FileMode  // of a new file, before the umask; 0 means 0666. An existing file keeps its own
	Expect *Fingerprint // what must be there immediately before; the zero Fingerprint means no file
	// the result of Resolve when the write was permitted; may be empty
	Target string
}

// Replace writes data to the file atomically: whenever the process dies, the file has all of the old bytes or all of
// the new ones. It creates missing parents. An existing file keeps its permissions and, if possible, its owner. A link
// stays, and its target below the root is replaced. Replace refuses anything but a regular file, and a read-only file,
// although a rename could replace that.
//
// It opens each directory in its parent by name, never through a link. If an element becomes a link after the name was
// resolved, it returns fault.ConcurrentModification.
//
// If a file has several hard links, this name gets the new content and the others keep the old. So an outside file that
// is linked into the workspace never changes. Extended attributes and set-user-id bits are lost.
func (d *Dir) Replace(name string, data []byte, o ReplaceOptions) error {
	if own, rel := d.owner(name); own != d {
		if o.Target != "" {
			where, target := d.owner(o.Target)
			if where != own {
				return changedSince(name)
			}
			o.Target = target
		}
		return own.Replace(rel, data, o)
	}
	if filepath.IsAbs(filepath.FromSlash(name)) {
		return reasoned(fault.New(fault.PermissionDenied, "%s can only be read", printable(name)), name, "read-only").
			Hint("Write beneath %s.", d.path)
	}
	target, err := d.resolve(name)
	switch {
	case err != nil:
		return d.toFault("write", name, err)
	case o.Target != "" && o.Target != target:
		return changedSince(name)
	case target == ".":
		return notRegularDirectory(name)
	}
	if d.restrictions.isHidden(target) { // check before creating a directory for it
		return hiddenFile(name)
	}
	base := path.Base(target)
	parent, err := d.reach(path.Dir(target))
	if err != nil {
		return d.toFault("write", name, err)
	}
	defer parent.Close()
	named := name
	if o.Target != "" { // the write was permitted for this target only
		named = o.Target
	}
	if err := d.mayWrite(named, parent, target); err != nil {
		return err
	}
	d.replaceMu.Lock()
	defer d.replaceMu.Unlock()
	old, err := d.replaceable(parent, base, target)
	if err != nil {
		return err
	}
	mode := o.Mode
	switch {
	case old != nil:
		// users who may not read the old file must never be able to read the new one
		mode = 0o600
	case mode == 0:
		mode = 0o666
	}
	return d.replaceIn(diskIn(parent, mode), parent, slot{target, base, old}, data, o.Expect)
}

// reach opens a directory below the root, never through a link. It creates missing directories.
func (d *Dir) reach(dir string) (*os.Root, error) {
	at, err := d.root.OpenRoot(".")
	if err != nil || dir == "." {
		return at, err
	}
	for name, above := range steps(dir) {
		next, made, err := step(at, name)
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		if at = next; made {
			info, _ := at.Stat(".")
			d.tell(path.Join(above, name), nil, info)
		}
	}
	return at, nil
}

// steps returns the elements of a path, each with those before it.
func steps(dir string) iter.Seq2[string, string] {
	return func(yield func(name, above string) bool) {
		above := ""
		for name := range strings.SplitSeq(dir, "/") {
			if !yield(name, above) {
				return
			}
			above = path.Join(above, name)
		}
	}
}

// step opens or creates a directory in another one.
func step(at *os.Root, name string) (next *os.Root, made bool, err error) {
	info, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = at.Mkdir(name, 0o777)
		if made = err == nil; made || errors.Is(err, fs.ErrExist) {
			info, err = at.Lstat(name)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, made, changedSince(name) // it existed a moment ago
	case err != nil:
		return nil, made, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, made, changedSince(name) // it was not a link when the name was resolved
	case !info.IsDir():
		return nil, made, notDirectory(name, info)
	}
	next, err = openSame(at, name, info)
	if errors.Is(err, fault.ConcurrentModification) || errors.Is(err, fs.ErrNotExist) {
		err = changedSince(name)
	}
	return next, made, err
}

// slot is the place of a file.
type slot struct {
	name string // below the root, without links
	base string // the last element of name
	old  fs.FileInfo
}

// replaceable returns the existing file, or nil.
func (d *Dir) replaceable(parent *os.Root, base, name string) (fs.FileInfo, error) {
	old, err := parent.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, d.toFault("write", name, err)
	case !old.Mode().IsRegular():
		return nil, notRegularFile(name, old)
	case old.Mode().Perm()&0o222 == 0:
		return nil, reasoned(fault.New(fault.PermissionDenied, "%s is read-only", printable(name)), name, "blocked").
			Hint("Give yourself the permission to write it first.")
	}
	return old, nil
}

// diskIn returns the calls of a replacement that can fail, in an open directory.
func diskIn(parent *os.Root, mode fs.FileMode) disk {
	d := realDisk()
	d.create = func(name string) (*os.File, error) {
		return parent.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	}
	d.rename = func(from, to string) error { return renameIn(parent, from, to) }
	d.remove = parent.Remove
	d.syncDir = func(string) error { return syncIn(parent) }
	return d
}

// replaceIn writes a temporary file next to the file and renames it.
func (d *Dir) replaceIn(k disk, parent *os.Root, at slot, data []byte, expect *Fingerprint) error {
	temporary := temporaryPrefix + ident.Hex(12)
	f, err := k.create(temporary)
	if err != nil {
		return d.toFault("write", at.name, err)
	}
	// Do not use defer: tests simulate a kill with a panic, and a killed process does not clean up.
	err = fillLike(k, f, data, at.old)
	if err == nil && expect != nil {
		err = d.checkUnchanged(parent, at, *expect)
	}
	after, _ := parent.Lstat(temporary)
	switch {
	case err != nil:
	case expect != nil && !expect.Exists():
		err = settle(k, parent, temporary, at)
	default:
		err = k.rename(temporary, at.base)
	}
	if err != nil {
		_ = k.remove(temporary)
		return d.toFault("write", at.name, err)
	}
	d.tell(at.name, at.old, after)
	if err := k.syncDir("."); err != nil {
		return d.toFault("write", at.name, err)
	}
	sweepIn(parent, sweptPerWrite) // ignore errors: the write has succeeded
	return nil
}

// WriteAtomic writes a file in an open directory atomically, readable only by us, in place of whatever has its name,
// even a link.
func WriteAtomic(parent *os.Root, name string, data []byte) error {
	k, temporary := diskIn(parent, 0o600), temporaryPrefix+ident.Hex(12)
	f, err := k.create(temporary)
	if err != nil {
		return err
	}
	err = k.fill(f, data, 0o600, nil) // the mode regardless of the umask
	if err == nil {
		err = k.rename(temporary, name)
	}
	if err != nil {
		_ = k.remove(temporary)
	}
	return err
}

// fillLike fills the temporary file, and gives it the mode of the old file if there is one.
func fillLike(k disk, f *os.File, data []byte, old fs.FileInfo) error {
	like := old
	if like == nil {
		var err error
		if like, err = f.Stat(); err != nil {
			_ = k.close(f)
			return err
		}
	}
	return k.fill(f, data, like.Mode().Perm(), old)
}

// settle gives the temporary file its final name. It fails if another process has created that meanwhile, which a
// rename would not notice.
func settle(k disk, parent *os.Root, temporary string, at slot) error {
	switch err := parent.Link(temporary, at.base); {
	case err == nil:
		_ = k.remove(temporary)
		return nil
	case errors.Is(err, fs.ErrExist):
		return changedSince(at.name)
	}
	return k.rename(temporary, at.base) // the file system has no hard links
}

func notRegularDirectory(name string) error {
	return reasoned(fault.New(fault.Unsafe, "%s is a directory where a file belongs", printable(name)), name,
		"not-regular")
}

// sweepIn is sweep in an open directory.
func sweepIn(parent *os.Root, limit int) {
	f, err := parent.Open(".")
	if err != nil {
		return
	}
	_ = eachTemporary(f, limit, func(name string) {
		if info, err := parent.Lstat(name); err == nil && stale(info) && abandonedIn(parent, name) {
			_ = parent.Remove(name)
		}
	})
}
