package undo

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// copyLimit is how many bytes of objects are copied from one repository at a time.
const copyLimit = 1 << 30

// pinned returns a directory of the store, like .git, that has what it takes to read the objects of a repository.
func (p *place) pinned(common string) string { return filepath.Join(p.dir, "git", key(common)) }

// commons returns the common directories of the repositories of a snapshot.
func commons(indexes []*snapshot.Index) (dirs []string) {
	for _, x := range indexes {
		all := x.GitDirs()
		for _, dir := range x.Repositories() {
			all = append(all, filepath.Join(x.Root, filepath.FromSlash(dir)))
		}
		for _, dir := range all {
			if opened, err := git.At(dir); err == nil && !slices.Contains(dirs, opened.Common()) {
				dirs = append(dirs, opened.Common())
			}
		}
	}
	return dirs
}

// pin brings the objects of repositories, given by their common directories, into the store, and records their names
// with the turn.
func (p *place) pin(commons []string, id string) error {
	for _, common := range commons {
		to := p.pinned(common)
		listed := filepath.Join(p.dir, "objects-"+key(common))
		known := namesIn(listed)
		prepare(common, to)
		names, err := p.pinObjects(common, known)
		if err != nil {
			return err
		}
		if err := p.keepAlternates(common, id); err != nil {
			return err
		}
		text := []byte(strings.Join(names, "\n"))
		if !slices.Equal(names, known) || !exists(listed) {
			if err := workspace.Replace(listed, text, 0o600); err != nil {
				return err
			}
		}
		mine := filepath.Join(p.turn(id), "objects-"+key(common))
		if os.Link(listed, mine) == nil {
			continue
		}
		if err := workspace.Replace(mine, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// pinObjects brings the objects of a repository into the store, except for known ones, and returns the names of all. If
// git packs some meanwhile and removes them, the objects are listed again, with the pack.
func (p *place) pinObjects(common string, known []string) (names []string, err error) {
	from, to := filepath.Join(common, "objects"), filepath.Join(p.pinned(common), "objects")
	for range 100 { // git removes thousands one by one
		names = git.ObjectsIn(common)
		fresh := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			_, pinned := slices.BinarySearch(known, name)
			return pinned
		})
		if err = bringAll(from, to, fresh, isSmall); err == nil {
			return names, p.keepLoose(key(common), fresh)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return nil, err
}

// prepare writes the files that git needs to read the pinned objects.
func prepare(common, to string) {
	_ = workspace.MkdirAll(filepath.Join(to, "objects", "info"))
	for _, name := range []string{"HEAD", "config"} {
		if data, err := workspace.ReadFile(filepath.Join(common, name), jsonLimit); err == nil {
			renew(filepath.Join(to, name), data)
		}
	}
	borrowed := readAlternates(common)
	if borrowed == nil {
		return
	}
	var all []string
	for line := range strings.Lines(string(borrowed)) {
		if line = strings.TrimSpace(line); line != "" && !filepath.IsAbs(line) {
			line = filepath.Join(common, "objects", line)
		}
		all = append(all, line)
	}
	renew(filepath.Join(to, "objects", "info", "alternates"), []byte(strings.Join(all, "\n")+"\n"))
}

// renew writes a file unless it already has that content. It ignores errors.
func renew(path string, data []byte) {
	if is, err := workspace.ReadFile(path, jsonLimit); err != nil || !bytes.Equal(is, data) {
		_ = workspace.Replace(path, data, 0o600)
	}
}

// namesIn reads a sorted list of names. It returns nil if the file cannot be read.
func namesIn(path string) []string {
	data, err := workspace.ReadFile(path, 1<<30)
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// bringAll calls bring for objects, in parallel: a repository may have thousands of loose ones. If some have vanished,
// it brings the others, and the error is fs.ErrNotExist.
func bringAll(from, to string, names []string, mayShare func(name string, info fs.FileInfo) bool) error {
	var left, next atomic.Int64
	var vanished atomic.Pointer[error]
	left.Store(copyLimit)
	errs := make([]error, min(workspace.Workers(), len(names)))
	var group sync.WaitGroup
	for worker := range errs {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)) && errs[worker] == nil; i = next.Add(1) - 1 {
				share := func(info fs.FileInfo) bool { return mayShare(names[i], info) }
				name := filepath.FromSlash(names[i])
				err := bring(filepath.Join(from, name), filepath.Join(to, name), share, &left)
				if errors.Is(err, fs.ErrNotExist) {
					vanished.Store(&err)
					continue
				}
				errs[worker] = err
			}
		})
	}
	group.Wait()
	if err := cmp.Or(errs...); err != nil || vanished.Load() == nil {
		return err
	}
	return *vanished.Load()
}

// bring makes an object, or a file of a pack, available under another name. It does nothing if that name exists. The
// error is fs.ErrNotExist if the file has vanished.
//
// Packs are cloned where the file system can, and otherwise linked: they are too large to copy, and git makes them
// read-only and never writes into one again. Loose objects that may be shared are linked too, the others are copied.
func bring(from, to string, mayShare func(fs.FileInfo) bool, left *atomic.Int64) error {
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	info, err := os.Lstat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil || !info.Mode().IsRegular():
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fault.New(fault.PermissionDenied, "%s cannot be made: %s", filepath.Dir(to), fault.Bare(err)).
			Because(err)
	}
	pack := filepath.Base(filepath.Dir(to)) == "pack"
	if pack && write(from, to, info.Mode().Perm(), workspace.Clone) == nil ||
		(pack || mayShare(info)) && os.Link(from, to) == nil {
		return nil
	}
	if left.Add(-info.Size()) < 0 {
		return fault.New(fault.FieldTooLarge, "the objects of git that have to be copied are too large: %s", from)
	}
	err = write(from, to, info.Mode().Perm(), workspace.Copy)
	if err != nil {
		return fault.New(fault.PermissionDenied, "%s cannot be copied: %s", from, fault.Bare(err)).Because(err)
	}
	return nil
}

// write makes a file from another one, whole or not at all.
func write(from, to string, perm fs.FileMode, make func(from, to string, perm fs.FileMode) error) error {
	temporary := filepath.Join(filepath.Dir(to), "tmp_omniagent_"+filepath.Base(to))
	_ = os.Remove(temporary) // of a process that was killed
	err := make(from, temporary, perm)
	if err == nil {
		err = os.Rename(temporary, to)
	}
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// objects are those that a repository had when a turn was recorded and that have to be given back.
type objects struct {
	gitDir string // relative to the root
	pinned string // a directory of the store
	names  []string
	loose  map[string][32]byte // those that can be repaired
	broken []string            // of names, those that the repository has damaged
	alone  bool                // nothing else of the repository is restored
	// borrowing is the content of the alternates file; nil: there was none.
	borrowing []byte
}

// lacking returns the objects that a repository has lost since a turn was recorded, or loses by the actions. It fails
// if the store does not have one of them undamaged.
func (p *place) lacking(root, gitDir, id string, actions []action) (objects, error) {
	removed := map[string]bool{} // if objects are not known as such: the turn had destroyed the repository
	for _, a := range actions {
		removed[a.path] = a.was == nil
	}
	common := filepath.Join(root, filepath.FromSlash(gitDir))
	o := objects{
		gitDir: gitDir, pinned: filepath.Join(p.pinned(common), "objects"), loose: p.looseSums(key(common)),
		borrowing: p.alternates(common, id),
	}
	list := filepath.Join(p.turn(id), "objects-"+key(common))
	if !exists(list) { // it was not a repository
		return objects{}, nil
	}
	r, err := p.read(id)
	if err != nil {
		return o, err
	}
	missing, damaged := p.harmed(common, id, writtenSince(r.Began))
	o.broken = damaged
	for _, name := range namesIn(list) {
		_, is := slices.BinarySearch(missing, name)
		_, broken := slices.BinarySearch(damaged, name)
		if !is && !broken && !removed[path.Join(gitDir, "objects", name)] {
			continue
		}
		err := git.CheckObject(o.pinned, name)
		if sum, kept := o.loose[name]; err != nil && kept {
			_, err = p.looseObjects().Get(sum, looseLimit) // it can be repaired
		}
		if err != nil {
			return o, fault.New(fault.Unsafe, "the snapshot is damaged: %v", err).Because(err)
		}
		o.names = append(o.names, name)
	}
	return o, nil
}

// giveBack puts objects back into a repository below the root.
func (o objects) giveBack(root *os.Root) error {
	if o.pinned == "" {
		return nil
	}
	to := filepath.Join(filepath.FromSlash(o.gitDir), "objects")
	made := map[string]bool{}
	directory := func(name string) error {
		dir := filepath.Join(to, name)
		if made[dir] {
			return nil
		}
		if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := root.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = fault.New(fault.Unsafe, "%s is not a directory", dir)
		}
		made[dir] = err == nil
		return err
	}
	if info, err := root.Lstat(to); err == nil && !info.IsDir() && len(o.names) == 0 {
		return nil // the objects are elsewhere, and complete
	}
	for _, name := range []string{"", "info", "pack"} {
		if err := directory(name); err != nil {
			return err
		}
	}
	for _, name := range o.names {
		if err := directory(filepath.Dir(filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	for _, name := range o.broken {
		if err := root.Remove(filepath.Join(to, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	if err := o.borrow(root); err != nil {
		return err
	}
	return bringAll(o.pinned, filepath.Join(root.Name(), to), o.names, func(name string, _ fs.FileInfo) bool {
		_, kept := o.loose[name]
		return kept
	})
}
