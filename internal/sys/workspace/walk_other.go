//go:build !linux || portable

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"omniagent/internal/kit/fault"
)

// openDir is an open directory.
type openDir struct {
	root *os.Root
	list *os.File // nil until the directory is read
}

func startAt(d *Dir, name string) (openDir, error) {
	root, err := in(d, name, openRootIn)
	return openDir{root: root}, err
}

// placeAt opens a directory by its path.
func placeAt(path string) (openDir, error) {
	root, err := openRoot(path)
	return openDir{root: root}, err
}

// actual returns the path of the directory, if the system reports it.
func (p openDir) actual() (string, error) {
	f, err := p.root.Open(".")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return actualPath(f)
}

func (p openDir) close() {
	_ = p.root.Close()
	if p.list != nil {
		_ = p.list.Close()
	}
}

func (p openDir) enter(name string) (openDir, error) {
	info, err := p.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = fault.New(fault.Unsafe, "%s is a %s, not a directory", name, typeOf(info.Mode()))
	}
	if err != nil {
		return openDir{}, err
	}
	root, err := openSame(p.root, name, info)
	return openDir{root: root}, err
}

func (p openDir) has(name string) bool {
	_, err := p.root.Lstat(name)
	return err == nil
}

func (p openDir) file(name string) (io.ReadCloser, error) {
	info, err := p.root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = notRegularFile(name, info)
	}
	if err != nil {
		return nil, err
	}
	f, err := p.root.OpenFile(name, os.O_RDONLY|openWithoutBlocking, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = fault.New(fault.ConcurrentModification, "%s changed meanwhile", name)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (openDir) keepsTime() bool { return false }

func (p openDir) modified(name string) (time.Time, bool) {
	info, err := p.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return time.Time{}, false
	}
	return info.ModTime(), true
}

func (p openDir) status(name string) (Status, uint64, error) {
	info, err := p.root.Lstat(name)
	if err != nil {
		return Status{}, 0, err
	}
	return StatusOf(info), Links(info), nil
}

func (p openDir) target(name string) (string, error) { return p.root.Readlink(name) }

// lister reads directories.
type lister struct{}

func newLister() *lister { return &lister{} }

// read returns at least most further entries, or all remaining ones.
func (*lister) read(p *openDir, most int) (entries []Entry, done bool, err error) {
	if p.list == nil {
		if p.list, err = p.root.Open("."); err != nil {
			return nil, true, err
		}
	}
	for len(entries) < most {
		some, err := p.list.ReadDir(batch)
		for _, e := range some {
			kind := OtherEntry
			switch {
			case e.Type().IsRegular():
				kind = FileEntry
			case e.Type()&fs.ModeType == fs.ModeDir:
				kind = DirectoryEntry
			}
			entries = append(entries, Entry{e.Name(), kind})
		}
		if errors.Is(err, io.EOF) {
			_ = p.list.Close() // each directory has two descriptors
			p.list = nil
			return entries, true, nil
		}
		if err != nil {
			return entries, true, err
		}
	}
	return entries, false, nil
}
