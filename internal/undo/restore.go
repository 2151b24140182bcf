package undo

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/tree"
)

// staging is the file in which a content is written before it gets its name.
const staging = ".omniagent-undo.tmp"

// restorer carries out a plan.
type restorer struct {
	*plan
	root     *os.Root
	contents *tree.Contents
	before   *tree.Index
	opened   map[string]fs.FileMode // directories that were opened for writing, with their modes
}

// carryOut makes each path of the plan what it was. What could not be restored is added to what is kept.
func (p *place) carryOut(c *plan, before *tree.Index, contents *tree.Contents, id string) (restored []string,
	err error,
) {
	if err := os.MkdirAll(c.root, 0o755); err != nil { // even the workspace itself may be gone
		return nil, fault.New(fault.PermissionDenied, "%s cannot be made: %v", c.root, err).Because(err)
	}
	root, err := os.OpenRoot(c.root)
	if err != nil {
		return nil, fault.New(fault.FileMissing, "%s cannot be opened: %v", c.root, err).Because(err)
	}
	defer root.Close()
	_ = root.Remove(staging) // of a restore that was killed
	r := &restorer{c, root, contents, before, map[string]fs.FileMode{}}
	failed := map[string]bool{}
	note := func(name string, err error) {
		if err != nil && !failed[name] {
			failed[name] = true
			c.kept = append(c.kept, Kept{name, reasonOf(err)})
		}
	}
	for _, a := range slices.Backward(c.actions) {
		if a.is != nil && !a.is.Mode.IsDir() {
			note(a.path, r.clear(a))
		}
	}
	for _, dir := range c.gone {
		note(dir, r.dropState(dir))
	}
	for _, a := range slices.Backward(c.actions) {
		if a.is != nil && a.is.Mode.IsDir() {
			note(a.path, r.clear(a))
		}
	}
	for _, a := range c.actions {
		if a.was != nil && a.was.Mode.IsDir() {
			note(a.path, r.makeDir(a))
		}
	}
	for _, dir := range c.states {
		note(dir, p.giveBack(filepath.Join(c.root, filepath.FromSlash(dir)), id))
	}
	for _, a := range c.actions {
		if a.was != nil && !a.was.Mode.IsDir() && !failed[a.path] {
			note(a.path, r.write(a))
		}
	}
	r.finish()
	for _, a := range c.actions {
		if !failed[a.path] {
			restored = append(restored, a.path)
		}
	}
	return restored, nil
}

func reasonOf(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return err.Error()
}

// clear removes what is at a path, if that is to be nothing or of another type. Directories must be empty by then.
func (r *restorer) clear(a action) error {
	if a.was != nil && a.was.Mode.Type() == a.is.Mode.Type() && a.is.Target() == "" {
		return nil
	}
	if !a.is.Mode.IsDir() && a.was != nil && !a.was.Mode.IsDir() {
		return nil // a rename replaces it
	}
	if slices.Contains(r.gone, a.path) {
		return nil
	}
	err := r.writable(path.Dir(a.path))
	if err == nil {
		err = r.root.Remove(filepath.FromSlash(a.path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil && a.is.Mode.IsDir() {
		if r.holdsMine(a.path) || a.was == nil {
			return nil // something of the user's, or of a gap, is in it
		}
	}
	return err
}

// holdsMine reports whether a path beneath a directory was left as it is.
func (r *restorer) holdsMine(dir string) bool {
	for name := range r.mine {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// dropState removes what is left of a directory .git that the turn made: its objects, which the store has.
func (r *restorer) dropState(dir string) error {
	at := filepath.FromSlash(dir)
	if err := r.root.RemoveAll(filepath.Join(at, "objects")); err != nil {
		return err
	}
	var dirs []string
	_ = fs.WalkDir(r.root.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, name)
		}
		return nil
	})
	for _, name := range slices.Backward(dirs) {
		_ = r.root.Remove(filepath.FromSlash(name)) // unless somebody put something in it
	}
	return nil
}

// writable makes sure that names in a directory can be changed. No element of its path may be a link.
func (r *restorer) writable(dir string) error {
	if dir == "." {
		return nil
	}
	if _, done := r.opened[dir]; done {
		return nil
	}
	if err := r.writable(path.Dir(dir)); err != nil {
		return err
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

// makeDir makes a directory. It gets its mode at the end.
func (r *restorer) makeDir(a action) error {
	if a.is != nil && a.is.Mode.IsDir() {
		return nil
	}
	if err := r.writable(path.Dir(a.path)); err != nil {
		return err
	}
	err := r.root.Mkdir(filepath.FromSlash(a.path), 0o700)
	if errors.Is(err, fs.ErrExist) {
		if info, failed := r.root.Lstat(filepath.FromSlash(a.path)); failed == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

// write makes a file or a link.
func (r *restorer) write(a action) error {
	dir, name := path.Dir(a.path), filepath.FromSlash(a.path)
	if err := r.writable(dir); err != nil {
		return err
	}
	if sameContent(a.was, a.is) {
		return r.root.Chmod(name, a.was.Perm())
	}
	if a.was.Target() != "" {
		if err := r.root.Symlink(a.was.Target(), staging); err != nil {
			return err
		}
		return r.settle(name)
	}
	data, err := r.contents.Read(a.was)
	if err != nil {
		return err
	}
	f, err := r.root.OpenFile(staging, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(a.was.Perm()), f.Close())
	if err == nil {
		at := time.Unix(0, a.was.Modified)
		err = r.root.Chtimes(staging, at, at)
	}
	if err != nil {
		_ = r.root.Remove(staging)
		return err
	}
	return r.settle(name)
}

// settle gives the staged file its name.
func (r *restorer) settle(name string) error {
	err := r.root.Rename(staging, name)
	if err != nil {
		_ = r.root.Remove(staging)
	}
	return err
}

// finish gives the directories their modes, and those that are as before their times.
func (r *restorer) finish() {
	modes := map[string]fs.FileMode{}
	for dir, mode := range r.opened {
		modes[dir] = mode.Perm() | mode&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)
	}
	for _, a := range r.actions {
		if a.was != nil && a.was.Mode.IsDir() {
			modes[a.path] = a.was.Perm()
		}
	}
	dirs := make([]string, 0, len(modes))
	for dir := range modes {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Backward(dirs) {
		name := filepath.FromSlash(dir)
		info, err := r.root.Lstat(name)
		if err != nil || !info.IsDir() {
			continue
		}
		if was := r.before.Find(dir); was != nil && was.Mode.IsDir() {
			at := time.Unix(0, was.Modified)
			_ = r.root.Chtimes(name, at, at)
		}
		_ = r.root.Chmod(name, modes[dir])
	}
}
