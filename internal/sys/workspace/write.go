package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
)

const (
	temporaryPrefix = ".omniagent-tmp-"
	temporaryEnding = ".new"
	staleAfter      = time.Minute

	// A write examines no more than this many names for leftovers, so that it stays cheap in a directory with a million
	// files.
	sweptPerWrite = 512

	maxLinks = 40 // the limit of Linux for one path
)

// WriteFile replaces the content of path, or creates the file with exactly perm. Whenever the process or the machine
// dies, path has all of the old bytes or all of the new ones. An existing file keeps its permissions. A symbolic link
// stays, and its target is replaced. WriteFile refuses anything but a regular file.
//
// Only an error of the last step, the fsync of the directory, can leave the new content visible.
func WriteFile(path string, data []byte, perm os.FileMode) error {
	return realDisk().writeFile(path, data, perm)
}

// disk has every call of WriteFile that can fail, so that a test can make each of them fail.
type disk struct {
	create  func(name string) (*os.File, error)
	claim   func(*os.File)
	write   func(*os.File, []byte) (int, error)
	chmod   func(*os.File, os.FileMode) error
	sync    func(*os.File) error
	close   func(*os.File) error
	rename  func(from, to string) error
	syncDir func(dir string) error
	remove  func(name string) error
}

func realDisk() disk {
	return disk{
		create:  createExclusively,
		claim:   claim,
		write:   (*os.File).Write,
		chmod:   (*os.File).Chmod,
		sync:    (*os.File).Sync,
		close:   (*os.File).Close,
		rename:  rename,
		syncDir: syncDir,
		remove:  os.Remove,
	}
}

// createExclusively creates the temporary file, readable only by us. It gets the permissions of the target when its
// content is complete.
func createExclusively(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

func (d disk) writeFile(path string, data []byte, perm os.FileMode) error {
	target, err := resolve(path)
	if err != nil {
		return err
	}
	var old fs.FileInfo
	switch info, err := os.Lstat(target); {
	case err == nil && !info.Mode().IsRegular():
		return notRegular(target, info)
	case err == nil:
		old, perm = info, info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return toFault("write", path, err)
	}
	dir := directoryOf(target)
	temporary := dir + temporaryPrefix + ident.Hex(12)
	f, err := d.create(temporary)
	if err != nil {
		return toFault("write", path, err)
	}
	// Do not use defer: tests simulate a kill with a panic, and a killed process does not clean up.
	err = d.fill(f, data, perm, old)
	if err == nil {
		err = d.rename(temporary, target)
	}
	if err != nil {
		_ = d.remove(temporary)
		return toFault("write", path, err)
	}
	if err := d.syncDir(dir); err != nil {
		return toFault("write", path, err)
	}
	_ = sweep(dir, sweptPerWrite) // the write has succeeded; leftovers are for the next one
	return nil
}

// fill writes the content and mode of the temporary file, makes both durable, and always closes it.
func (d disk) fill(f *os.File, data []byte, perm os.FileMode, old fs.FileInfo) error {
	d.claim(f)
	err := d.writeAll(f, data)
	if err == nil && old != nil {
		keepOwner(f, old) // before chmod, because changing the owner clears bits of the mode
	}
	if err == nil {
		err = d.chmod(f, perm)
	}
	if err == nil {
		err = d.sync(f)
	}
	if closed := d.close(f); err == nil {
		err = closed
	}
	return err
}

func (d disk) writeAll(f *os.File, data []byte) error {
	for len(data) > 0 {
		n, err := d.write(f, data)
		if err != nil {
			return err
		}
		if n <= 0 {
			return io.ErrShortWrite
		}
		data = data[n:]
	}
	return nil
}

// resolve follows the links at the end of path. Unlike filepath.EvalSymlinks, it accepts a target that does not exist.
func resolve(path string) (string, error) {
	target := path
	for range maxLinks {
		info, err := os.Lstat(target)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return target, nil // the call that uses the file will report an error
		}
		link, err := os.Readlink(target)
		if err != nil {
			return "", toFault("write", path, err)
		}
		if !filepath.IsAbs(link) {
			link = directoryOf(target) + link
		}
		target = link
	}
	return "", fault.New(fault.SymlinkLoop, "%s is a symbolic link that leads to itself", path).With("path", path)
}

// directoryOf returns the part of path before the name, with a separator at the end. It does not clean it: "link/../x"
// is next to the target of link, but filepath.Dir would return the directory of link.
func directoryOf(path string) string {
	dir, _ := filepath.Split(path)
	if dir == "" || dir == filepath.VolumeName(path) {
		return dir + "." + string(filepath.Separator)
	}
	return dir
}

// sweep examines the first limit names of dir, or all of them if limit is negative.
func sweep(dir string, limit int) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return eachTemporary(d, limit, func(name string) {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && stale(info) && abandoned(path) {
			_ = os.Remove(path)
		}
	})
}

// eachTemporary calls do for the temporary files among the first limit names of a directory, and closes that.
func eachTemporary(d *os.File, limit int, do func(name string)) error {
	names, err := d.Readdirnames(limit)
	_ = d.Close()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, temporaryPrefix) {
			do(name)
		}
	}
	return nil
}

func stale(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && time.Since(info.ModTime()) >= staleAfter
}

// WriteDerived is WriteFile without waiting for the disk, for a file that can be derived again. After a power failure
// it may have the previous content.
func WriteDerived(path string, data []byte, perm os.FileMode) error {
	d := realDisk()
	d.sync = func(*os.File) error { return nil }
	d.syncDir = func(string) error { return nil }
	return d.writeFile(path, data, perm)
}

// Replace is WriteDerived for a regular file with a single writer. Its temporary file always has the same name, so it
// need not look for leftovers, and takes a third of the time.
func Replace(path string, data []byte, perm os.FileMode) error {
	return ReplaceWith(path, perm, func(f *os.File) error { _, err := f.Write(data); return err })
}

// ReplaceWith is Replace with what a func writes.
func ReplaceWith(path string, perm os.FileMode, write func(*os.File) error) error {
	temporary := path + temporaryEnding
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err == nil {
		err = errors.Join(write(f), f.Close())
	}
	if err == nil {
		err = rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return toFault("write", path, err)
	}
	return nil
}
