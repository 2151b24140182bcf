package undo

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// restorer carries out a plan.
type restorer struct {
	*plan
	place    *place
	root     *os.Root
	contents *snapshot.Contents
	before   *snapshot.Index
	staging  string                 // the name of a temporary file, in the directory of the file that it becomes
	opened   map[string]fs.FileMode // directories that were made writable, with their modes
	cleared  map[string]bool        // paths that were removed
	inodes   map[inode]bool         // of files that lost a name, or got another mode
	failed   map[string]bool
	left     map[string]bool // directories that are not removed because something in them is kept
	made     []string        // directories that were created
}

// inode identifies a file, whatever its names are.
type inode struct{ device, number uint64 }

func inodeOf(s workspace.Status) inode { return inode{s.Device, s.Inode} }

// carryOut restores each path of the plan, and returns those that it restored. It adds the others to what is kept.
func (p *place) carryOut(
	c *plan, before *snapshot.Index, contents *snapshot.Contents, staging string,
) (restored []string) {
	whole := func(err error) []string {
		c.keep(c.root, err)
		c.keptState = append(c.keptState, "")
		return nil
	}
	if err := os.MkdirAll(c.root, 0o755); err != nil { // even the workspace itself may be gone
		return whole(err)
	}
	root, err := os.OpenRoot(c.root)
	if err != nil {
		return whole(err)
	}
	defer root.Close()
	r := &restorer{
		plan: c, place: p, root: root, contents: contents, before: before, staging: staging,
		opened: map[string]fs.FileMode{}, cleared: map[string]bool{}, inodes: map[inode]bool{},
		failed: map[string]bool{}, left: map[string]bool{},
	}
	r.clearAll(-1) // it frees space too
	var later []objects
	for _, o := range c.objects {
		if r.isReady(o) {
			r.giveBack(o)
		} else {
			later = append(later, o)
		}
	}
	_ = r.makeDirs(-1)
	for at := range c.states { // before the files of the working tree take the space
		later = r.restoreState(at, later)
	}
	for _, o := range later {
		r.giveBack(o)
	}
	r.writeAll(-1)
	r.finish()
	for _, a := range c.actions {
		if !r.failed[a.path] && !r.left[a.path] {
			restored = append(restored, a.path)
		}
	}
	return restored
}

// isReady reports whether a repository can be given objects before anything else is restored: nothing has to be created
// or removed for them first.
func (r *restorer) isReady(o objects) bool {
	info, err := r.root.Lstat(filepath.FromSlash(cmp.Or(o.gitDir, ".")))
	return err == nil && info.IsDir() && !slices.ContainsFunc(r.actions, func(a action) bool {
		return strings.HasPrefix(a.path, path.Join(o.gitDir, "objects")+"/")
	})
}

// giveBack gives a repository its objects back. If that fails, the state of the repository is not restored, because its
// refs would name missing objects.
func (r *restorer) giveBack(o objects) {
	err := o.giveBack(r.root)
	if err == nil {
		return
	}
	at := r.stateWith(o.gitDir)
	if at < 0 || o.alone {
		r.note(o.gitDir, err)
		return
	}
	r.leaveState(at, err)
}

// note adds a path that could not be restored to what is kept.
func (r *restorer) note(name string, err error) {
	if err != nil && !r.failed[name] {
		r.failed[name] = true
		r.keep(name, err)
	}
}

// clearAll removes what is in the way of a restored directory .git, or with -1 everywhere else: files first, then the
// directories that are empty by then.
func (r *restorer) clearAll(state int) {
	clearThese := func(dirs bool) {
		for _, a := range slices.Backward(r.actions) {
			if a.is != nil && a.is.Mode.IsDir() == dirs && !r.failed[a.path] && r.stateWith(a.path) == state {
				r.note(a.path, r.clear(a))
			}
		}
	}
	clearThese(false)
	if state < 0 {
		for _, dir := range r.removed {
			r.note(dir, r.dropState(dir))
		}
	}
	clearThese(true)
}

// clear removes what is at a path, if nothing or something of another type was there before.
func (r *restorer) clear(a action) error {
	if a.was != nil && a.was.Mode.Type() == a.is.Mode.Type() && a.is.Target() == "" {
		return nil
	}
	if !a.is.Mode.IsDir() && a.was != nil && !a.was.Mode.IsDir() {
		return nil // a rename replaces it
	}
	if slices.Contains(r.removed, a.path) {
		return nil
	}
	err := r.writable(path.Dir(a.path))
	if err == nil {
		err = r.unchanged(a)
	}
	if err == nil && a.is.Mode.IsDir() {
		err = r.dropObjects(a.path)
	}
	if err == nil {
		err = r.root.Remove(filepath.FromSlash(a.path))
	}
	switch {
	case err == nil:
		r.cleared[a.path], r.inodes[inodeOf(a.is.Status)] = true, true
	case errors.Is(err, fs.ErrNotExist):
		r.cleared[a.path] = true
		return nil
	case errors.Is(err, fs.ErrExist) && a.was == nil && r.holdsKept(a.path):
		r.left[a.path] = true // what is kept in it is listed
		return nil
	case errors.Is(err, fs.ErrExist):
		return notEmpty
	}
	return err
}

// unchanged returns an error if a path is not as the plan found it. The content of a directory does not count.
func (r *restorer) unchanged(a action) error {
	info, err := r.root.Lstat(filepath.FromSlash(a.path))
	nothing := a.is == nil || r.cleared[a.path]
	switch {
	case errors.Is(err, fs.ErrNotExist) && nothing:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return changedSince
	case err != nil:
		return err
	case nothing, a.is.Mode.Type() != info.Mode().Type():
		return changedSince
	case a.is.Mode.IsDir():
		return nil
	}
	is, was := workspace.StatusOf(info), a.is.Status
	if r.inodes[inodeOf(is)] || was.Inode == 0 || is.Inode == 0 {
		is.Changed, is.Inode, is.Device = was.Changed, was.Inode, was.Device
	}
	if is != was {
		return changedSince
	}
	return nil
}

// dropState removes a directory .git that the turn made.
func (r *restorer) dropState(dir string) error {
	var dirs []string
	err := fs.WalkDir(r.root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return err
		case d.Name() == "objects":
			if err := r.dropObjects(path.Dir(name)); err != nil || !exists(filepath.Join(r.plan.root, name)) {
				return cmp.Or(err, fs.SkipDir)
			}
		}
		dirs = append(dirs, name)
		return nil
	})
	for _, name := range slices.Backward(dirs) {
		if err == nil {
			if err = r.root.Remove(filepath.FromSlash(name)); err == nil {
				r.cleared[name] = true
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrExist):
		return notEmpty
	}
	return err
}

// dropObjects removes the objects of a repository that the turn made, if the store has all of them.
func (r *restorer) dropObjects(gitDir string) error {
	at := filepath.FromSlash(gitDir)
	common := filepath.Join(r.plan.root, at)
	pinned := r.place.pinned(common)
	info, err := r.root.Lstat(filepath.Join(at, "objects"))
	if err != nil || !info.IsDir() || !exists(pinned) {
		return nil
	}
	for _, name := range git.ObjectsIn(common) {
		if !exists(filepath.Join(pinned, "objects", filepath.FromSlash(name))) {
			return changedSince
		}
	}
	return r.root.RemoveAll(filepath.Join(at, "objects"))
}

// writable makes a directory writable. It fails if an element of its path is not a directory.
func (r *restorer) writable(dir string) error {
	if _, done := r.opened[dir]; done {
		return nil
	}
	if dir != "." {
		if err := r.writable(path.Dir(dir)); err != nil {
			return err
		}
	}
	info, err := r.root.Lstat(filepath.FromSlash(dir))
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fault.New(fault.ConcurrentModification, "%s is not a directory any more", dir)
	}
	r.opened[dir] = info.Mode()
	if info.Mode().Perm()&0o300 != 0o300 {
		return r.root.Chmod(filepath.FromSlash(dir), info.Mode().Perm()|0o700)
	}
	return nil
}

// makeDirs creates the directories of a restored directory .git, or with -1 all others.
func (r *restorer) makeDirs(state int) (first error) {
	for _, a := range r.actions {
		if a.was != nil && a.was.Mode.IsDir() && !r.failed[a.path] && r.stateWith(a.path) == state {
			err := r.makeDir(a)
			if state < 0 {
				r.note(a.path, err)
			}
			first = cmp.Or(first, err)
		}
	}
	return first
}

// writeAll writes the files of a restored directory .git, or with -1 all others.
func (r *restorer) writeAll(state int) {
	for _, a := range r.actions {
		if a.was != nil && !a.was.Mode.IsDir() && !r.failed[a.path] && r.stateWith(a.path) == state {
			r.note(a.path, r.write(a))
		}
	}
}

// makeDir creates a directory. finish sets its mode.
func (r *restorer) makeDir(a action) error {
	if a.is != nil && a.is.Mode.IsDir() {
		return nil
	}
	if err := r.makeParents(path.Dir(a.path)); err != nil {
		return err
	}
	err := r.root.Mkdir(filepath.FromSlash(a.path), 0o700)
	if err == nil {
		r.made = append(r.made, a.path)
	}
	if errors.Is(err, fs.ErrExist) {
		if info, failed := r.root.Lstat(filepath.FromSlash(a.path)); failed == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// makeParents creates the missing directories above a path, and makes dir writable.
func (r *restorer) makeParents(dir string) error {
	_, err := r.root.Lstat(filepath.FromSlash(dir))
	if !errors.Is(err, fs.ErrNotExist) {
		return r.writable(dir)
	}
	if err := r.makeParents(path.Dir(dir)); err != nil {
		return err
	}
	if err := r.root.Mkdir(filepath.FromSlash(dir), 0o755); err != nil {
		return err
	}
	r.made = append(r.made, dir)
	if err := r.writable(dir); err != nil {
		return err
	}
	if was := r.before.Find(dir); was != nil && was.Mode.IsDir() {
		r.opened[dir] = was.Mode
	}
	return nil
}

// write restores a file or a link.
func (r *restorer) write(a action) error {
	name := filepath.FromSlash(a.path)
	if err := r.makeParents(path.Dir(a.path)); err != nil {
		return err
	}
	if sameContent(a.was, a.is) {
		if err := r.unchanged(a); err != nil {
			return err
		}
		r.inodes[inodeOf(a.is.Status)] = true
		return r.root.Chmod(name, a.was.Perm())
	}
	staged := filepath.Join(filepath.Dir(name), r.staging) // not in the root: this may be another file system
	if err := r.stage(a.was, staged); err != nil {
		_ = r.root.Remove(staged)
		return err
	}
	err := r.unchanged(a)
	if err == nil {
		err = r.root.Rename(staged, name)
	}
	if err != nil {
		_ = r.root.Remove(staged)
	} else if a.is != nil {
		r.inodes[inodeOf(a.is.Status)] = true
	}
	return err
}

// stage creates a file or a link under a temporary name.
func (r *restorer) stage(was *snapshot.File, name string) error {
	if was.Target() != "" {
		return r.root.Symlink(was.Target(), name)
	}
	data, err := r.contents.Read(was)
	if err != nil {
		return err
	}
	f, err := r.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(was.Perm()), f.Close()); err != nil {
		return err
	}
	at := time.Unix(0, was.Modified)
	return r.root.Chtimes(name, at, at)
}

// finish sets the modes of the directories, and the times of those that existed before the turn.
func (r *restorer) finish() {
	modes := map[string]fs.FileMode{}
	for dir, mode := range r.opened {
		modes[dir] = mode.Perm() | mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
	}
	for _, a := range r.actions {
		if a.was != nil && a.was.Mode.IsDir() && !r.failed[a.path] {
			modes[a.path] = a.was.Perm()
		}
	}
	for _, dir := range slices.Backward(slices.Sorted(maps.Keys(modes))) {
		name := filepath.FromSlash(dir)
		info, err := r.root.Lstat(name)
		if err != nil || !info.IsDir() {
			continue
		}
		if was := r.before.Find(dir); was != nil && was.Mode.IsDir() {
			at := time.Unix(0, was.Modified)
			_ = r.root.Chtimes(name, at, at)
		}
		if info.Mode()&^fs.ModeDir != modes[dir] {
			_ = r.root.Chmod(name, modes[dir])
		}
	}
}
