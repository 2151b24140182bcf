package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/ident"
)

// ReplaceOptions says how a file is replaced. The zero value replaces whatever is there.
type ReplaceOptions struct {
	Mode   fs.FileMode  // of a new file, less the umask; 0 means 0666. An existing file keeps its own.
	Expect *Fingerprint // what must still be there immediately before; the zero Fingerprint: no file
	// what Resolve said that the name leads to, when it was decided that it may be written; "": wherever it leads
	Target string
}

// Replace gives the file the content data, whole or not at all: whenever the process dies, all of the old bytes are
// there or all of the new ones. Directories that lead to it are made. An existing file keeps its permissions and, where
// we may, its owner; a link stays, and the file beneath the root that it leads to is replaced. What is not a regular
// file is refused, and so is a file that nobody may write, although a rename could.
//
// The directories are opened one in the other, each by its name and none through a link: what becomes a link after the
// name was resolved is fault.ConcurrentModification.
//
// A file with several hard links loses one of them: this name gets the new content, the others keep the old, and so a
// file outside that somebody has linked into the workspace is never changed. Extended attributes and the bits for
// set-user-id are lost.
func (d *Dir) Replace(name string, data []byte, o ReplaceOptions) error {
	if own, rel := d.of(name); own != d {
		if o.Target != "" {
			where, target := d.of(o.Target)
			if where != own {
				return changedSince(name)
			}
			o.Target = target
		}
		return own.Replace(rel, data, o)
	}
	if filepath.IsAbs(filepath.FromSlash(name)) {
		return reasoned(fault.New(fault.PermissionDenied, "%s can only be read", shown(name)), name, "read-only").
			Hint("Write beneath %s.", d.path)
	}
	target, err := d.resolve(name)
	switch {
	case err != nil:
		return d.refused("write", name, err)
	case o.Target != "" && o.Target != target:
		return changedSince(name)
	case target == ".":
		return notRegularDirectory(name)
	}
	if d.withheld.isHidden(target) { // before a directory is made for it
		return hiddenFile(name)
	}
	base := path.Base(target)
	parent, err := d.reach(path.Dir(target))
	if err != nil {
		return d.refused("write", name, err)
	}
	defer parent.Close()
	named := name
	if o.Target != "" { // who decided has seen it
		named = o.Target
	}
	if err := d.mayWrite(named, parent, target); err != nil {
		return err
	}
	d.one.Lock()
	defer d.one.Unlock()
	old, err := d.replaceable(parent, base, target)
	if err != nil {
		return err
	}
	mode := o.Mode
	switch {
	case old != nil:
		// until it is complete: who may not read the old file shall not read the new one, not even for a moment
		mode = 0o600
	case mode == 0:
		mode = 0o666
	}
	return d.replaceIn(diskIn(parent, mode), parent, slot{target, base, old}, data, o.Expect)
}

// reach opens a directory beneath the root, through no link. It makes what is missing.
func (d *Dir) reach(dir string) (*os.Root, error) {
	at, err := d.root.OpenRoot(".")
	if err != nil || dir == "." {
		return at, err
	}
	for name := range strings.SplitSeq(dir, "/") {
		next, err := step(at, name)
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// step opens the directory name in another one, or makes it.
func step(at *os.Root, name string) (*os.Root, error) {
	info, err := at.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = at.Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
			info, err = at.Lstat(name)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, changedSince(name) // it was there a moment ago
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, changedSince(name) // it was none when the name was resolved
	case !info.IsDir():
		return nil, notDirectory(name, info)
	}
	next, err := openSame(at, name, info)
	if errors.Is(err, fault.ConcurrentModification) || errors.Is(err, fs.ErrNotExist) {
		err = changedSince(name)
	}
	return next, err
}

// slot is where a file goes.
type slot struct {
	name string // beneath the root, without links
	base string // the last part of it, in the open directory
	old  fs.FileInfo
}

// replaceable is what there is to replace, nil for nothing.
func (d *Dir) replaceable(parent *os.Root, base, name string) (fs.FileInfo, error) {
	old, err := parent.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, d.refused("write", name, err)
	case !old.Mode().IsRegular():
		return nil, notRegularFile(name, old)
	case old.Mode().Perm()&0o222 == 0:
		return nil, reasoned(fault.New(fault.PermissionDenied, "%s is read-only", shown(name)), name, "blocked").
			Hint("Give yourself the permission to write it first.")
	}
	return old, nil
}

// diskIn is every call of a replacement that can fail, on names in an open directory.
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

// replaceIn writes beside the file and renames.
func (d *Dir) replaceIn(k disk, parent *os.Root, at slot, data []byte, expect *Fingerprint) error {
	temporary := temporaryPrefix + ident.Hex(12)
	f, err := k.create(temporary)
	if err != nil {
		return d.refused("write", at.name, err)
	}
	// No defer: a test kills us with a panic, and a killed process tidies nothing either.
	err = fillLike(k, f, data, at.old)
	if err == nil && expect != nil {
		err = d.still(parent, at, *expect)
	}
	switch {
	case err != nil:
	case expect != nil && !expect.Exists():
		err = settle(k, parent, temporary, at)
	default:
		err = k.rename(temporary, at.base)
	}
	if err != nil {
		_ = k.remove(temporary)
		return d.refused("write", at.name, err)
	}
	if err := k.syncDir("."); err != nil {
		return d.refused("write", at.name, err)
	}
	sweepIn(parent, sweptPerWrite) // the write has succeeded; leftovers are for the next one
	return nil
}

// fillLike fills the temporary file. It has the mode of the old file in the end, or the one that it was made with.
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

// settle gives the temporary file its name unless somebody else has taken it meanwhile, which a rename would not
// notice.
func settle(k disk, parent *os.Root, temporary string, at slot) error {
	switch err := parent.Link(temporary, at.base); {
	case err == nil:
		_ = k.remove(temporary)
		return nil
	case errors.Is(err, fs.ErrExist):
		return changedSince(at.name)
	}
	return k.rename(temporary, at.base) // a file system without hard links
}

func notRegularDirectory(name string) error {
	return reasoned(fault.New(fault.Unsafe, "%s is a directory where a file belongs", shown(name)), name, "not-regular")
}

// sweepIn is sweep in an open directory.
func sweepIn(parent *os.Root, limit int) {
	f, err := parent.Open(".")
	if err != nil {
		return
	}
	names, err := f.Readdirnames(limit)
	_ = f.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	for _, name := range names {
		if !strings.HasPrefix(name, temporaryPrefix) {
			continue
		}
		info, err := parent.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || time.Since(info.ModTime()) < staleAfter {
			continue
		}
		if abandonedIn(parent, name) {
			_ = parent.Remove(name)
		}
	}
}
