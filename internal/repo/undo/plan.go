package undo

import (
	"cmp"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// action restores one path.
type action struct {
	path    string
	was, is *snapshot.File // before the turn, and now; nil: nothing
	hidden  bool           // what the turn left there could not be read
}

// plan says what a restore of one root does.
type plan struct {
	root      string
	actions   []action        // sorted by path
	kept      []NotRestored   // left as they are
	states    []string        // the directories .git that are restored, relative to the root
	removed   []string        // the directories .git that the restore removes
	keptState []string        // the directories .git that are left as they are
	objects   []objects       // what the repositories need
	moved     []Moved         // branches, if they are restored
	keptPaths map[string]bool // the paths in kept
}

// keepsStateOf reports whether a path is in a directory .git that is not restored.
func (p *plan) keepsStateOf(path string) bool {
	return slices.ContainsFunc(p.keptState, func(dir string) bool {
		return dir == "" || path == dir || strings.HasPrefix(path, dir+"/")
	})
}

// restoreOptions say what may be restored.
type restoreOptions struct {
	gitDir  bool // the root is itself a directory .git
	takeOld bool // also what was changed after the turn
	takeAll bool // also what the turn has perhaps not changed (see doubt)
	// doubt returns why it is not certain that the turn changed a path, and whether another turn changed it.
	doubt func(path string) (why string, foreign bool)
	// overwrite are the paths, as returned by name, that are restored although they were changed after the turn.
	overwrite []string
	name      func(path string) string
	workspace string // the first root of the turn
	dryRun    bool   // the snapshot of now has no contents
	resumed   bool   // an earlier process has done a part of it
	// start is what was there when the earlier process began; nil: there was none.
	start *snapshot.Index
	// lacking returns the objects that a repository had and has to be given back.
	lacking func(gitDir string, actions []action) (objects, error)
	// lost reports whether a repository has lost objects.
	lost  func(gitDir string) bool
	limit int64 // bytes of a file that a snapshot keeps
}

// comparison makes the plan for a root.
type comparison struct {
	before, after, now *snapshot.Index
	contents           *snapshot.Contents
	restoreOptions
	*plan
	others map[string][]*elsewhere // by directory .git, once they are known
	unread func(path string) bool  // now
}

// compare makes the plan for a root. before and after are the snapshots of the turn; now is the present one.
func compare(before, after, now *snapshot.Index, o restoreOptions, contents *snapshot.Contents) *plan {
	p := &plan{root: now.Root, keptPaths: map[string]bool{}}
	c := &comparison{before, after, now, contents, o, p, map[string][]*elsewhere{}, now.Unread()}
	states := map[string][]action{}
	visit := func(path string, was, left *snapshot.File, hidden bool) {
		is := now.Find(path)
		a := action{path, was, is, hidden}
		if dir, ok := c.stateOf(path); ok {
			if was != nil && was.Mode.IsRegular() && git.Momentary(path) {
				return
			}
			if e := c.elsewhereAt(dir, path); e != nil {
				c.keepElsewhere(e)
			} else if !c.sameState(a.was, is, dir, path) ||
				is != nil && is.Mode.IsRegular() && is.Mode != a.was.Mode { // an index, for which that is not the same
				states[dir] = append(states[dir], a)
			}
			return
		}
		c.consider(a, left)
	}
	snapshot.Each(before, after, func(path string, was, left *snapshot.File) { visit(path, was, left, false) })
	snapshot.EachHidden(before, after, func(path string, was *snapshot.File) { visit(path, was, nil, true) })
	for dir, actions := range states {
		c.considerState(dir, actions)
	}
	for _, dir := range before.Repositories() {
		c.considerObjects(dir)
	}
	c.considerDirs()
	slices.SortFunc(c.actions, func(a, b action) int { return strings.Compare(a.path, b.path) })
	slices.SortFunc(c.kept, func(a, b NotRestored) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(c.states)
	return c.plan
}

// consider plans for one path outside of .git. left is what the turn left there.
func (c *comparison) consider(a action, left *snapshot.File) {
	why := reason{}
	doubt, foreign := c.doubted(a.path)
	switch {
	case foreign:
		return
	case c.unread(a.path):
		why = unreadable
	case snapshot.SameFile(a.is, a.was):
		return
	case doubt.text != "":
		why = doubt
	case a.was != nil && !restorable(a.was):
		why = special
	case a.was != nil && !a.was.Held() && !sameContent(a.was, a.is):
		why = notHeld
	case c.unfinished(a):
	case a.hidden && !c.overwrites(a.path):
		why = leftHidden
	case c.changed(a, left):
		why = changedSince
	case !c.saved(a):
		why = c.notSaved(a.path)
	}
	if why.text != "" {
		c.keep(a.path, why)
		c.kept[len(c.kept)-1].Removes = a.was == nil
		return
	}
	c.actions = append(c.actions, a)
}

// doubted returns the reason for a path that the turn has perhaps not changed, if that decides.
func (c *comparison) doubted(path string) (doubt reason, foreign bool) {
	why, foreign := c.doubt(path)
	if why == "" || c.takeAll || slices.Contains(c.overwrite, c.name(path)) {
		return reason{}, foreign
	}
	return uncertain.at(why), foreign
}

// unfinished reports whether a path is as a restore that was killed may have left it: a file was removed to make room
// for a directory, or a directory was made and has not got its mode yet.
func (c *comparison) unfinished(a action) bool {
	return c.resumed && (a.is == nil || a.was != nil && a.was.Mode.IsDir() && a.is.Mode.IsDir())
}

// changed reports whether a path was changed after the turn. For a path that is overwritten it reports whether it was
// changed after the beginning of a restore that was killed.
func (c *comparison) changed(a action, left *snapshot.File) bool {
	if c.overwrites(a.path) {
		return c.start != nil && !snapshot.SameFile(a.is, c.start.Find(a.path))
	}
	return !snapshot.SameFile(a.is, left) || left != nil && left.Later()
}

// overwrites reports whether a path is restored although it was changed after the turn.
func (c *comparison) overwrites(path string) bool {
	return c.takeOld || slices.Contains(c.overwrite, c.name(path))
}

// saved reports whether what is there now can be restored after it was overwritten.
func (c *comparison) saved(a action) bool {
	if a.is == nil || !a.is.Mode.IsRegular() || a.is.Held() || sameContent(a.was, a.is) {
		return true
	}
	return c.dryRun && a.is.Size <= c.limit && c.now.Gap(a.path) == ""
}

// notSaved returns the reason for a path that is not saved.
func (c *comparison) notSaved(path string) reason {
	return notSaved.at(cmp.Or(c.now.Gap(path), "it is too large for a snapshot"))
}

func restorable(f *snapshot.File) bool {
	return f.Mode.IsDir() || f.Mode.IsRegular() || f.Target() != ""
}

// sameContent reports whether only the mode of a regular file differs.
func sameContent(was, is *snapshot.File) bool {
	if was == nil || is == nil || !is.Mode.IsRegular() || !was.Mode.IsRegular() {
		return false
	}
	like := *is
	like.Mode = was.Mode
	return snapshot.SameFile(was, &like)
}

// stateOf returns the directory .git that contains a path or is it, relative to the root; with gitDir that is the root,
// "". A file .git, which names a directory, is an ordinary file.
func (c *comparison) stateOf(name string) (dir string, ok bool) {
	if c.gitDir {
		return "", true
	}
	for at := 0; at < len(name); {
		end := strings.IndexByte(name[at:], '/')
		if end < 0 {
			end = len(name) - at
		}
		if name[at:at+end] == ".git" {
			dir = name[:at+end]
			return dir, dir != name || isDir(c.before, name) || isDir(c.after, name)
		}
		at += end + 1
	}
	return "", false
}

func isDir(x *snapshot.Index, name string) bool {
	f := x.Find(name)
	return f != nil && f.Mode.IsDir()
}

// considerState plans for a directory .git, which is restored as a whole or not at all.
func (c *comparison) considerState(dir string, actions []action) {
	restored := c.gitDir || isDir(c.before, dir)
	var found []objects
	why := cmp.Or(c.obstacle(dir, actions), c.mixed(dir, actions))
	if why == nil && restored {
		for _, repository := range repositoriesIn(dir, actions) {
			lacking, err := c.lacking(repository, actions)
			if err != nil {
				why = err
			}
			found = append(found, lacking)
		}
	}
	if why != nil {
		c.keep(dir, why)
		c.keptState = append(c.keptState, dir)
		return
	}
	c.actions, c.objects = append(c.actions, actions...), append(c.objects, found...)
	c.moved = append(c.moved, c.goBack(dir, actions)...)
	if restored {
		c.states = append(c.states, dir)
	} else {
		c.removed = append(c.removed, dir)
	}
}

// considerDirs keeps the directories that the turn made if something in them is not removed.
func (c *comparison) considerDirs() {
	made := map[string]bool{}
	for _, a := range c.actions {
		if a.was == nil && a.is != nil && a.is.Mode.IsDir() {
			made[a.path] = true
		}
	}
	if len(made) == 0 {
		return
	}
	snapshot.Each(c.after, c.now, func(name string, left, is *snapshot.File) {
		if _, state := c.stateOf(name); state || left != nil || is == nil {
			return
		}
		dir := path.Dir(name)
		for dir != "." && !made[dir] {
			dir = path.Dir(dir)
		}
		if made[dir] && !c.keptPaths[dir] {
			c.keep(dir, notEmpty)
		}
	})
	c.actions = slices.DeleteFunc(c.actions, func(a action) bool {
		return made[a.path] && (c.keptPaths[a.path] || c.holdsKept(a.path))
	})
}

// holdsKept reports whether a path below a directory is kept.
func (p *plan) holdsKept(dir string) bool {
	for name := range p.keptPaths {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// considerObjects plans for the objects of a repository that is not restored otherwise. Giving them back overwrites
// nothing.
func (c *comparison) considerObjects(dir string) {
	planned := slices.ContainsFunc(c.objects, func(o objects) bool { return o.gitDir == dir })
	if planned || c.keptPaths[dir] || !c.lost(dir) {
		return
	}
	lacking, err := c.lacking(dir, nil)
	if err != nil {
		c.keep(dir, err)
		return
	}
	lacking.alone = true
	c.objects = append(c.objects, lacking)
}

// obstacle returns why the state of a repository is kept, or nil.
func (c *comparison) obstacle(dir string, actions []action) error {
	if why := c.otherCommit(dir, actions); why.text != "" {
		return why
	}
	for _, a := range actions {
		doubt, foreign := c.doubted(a.path)
		switch {
		case foreign && c.takeAll:
			doubt = changedMeanwhile
		case foreign:
			doubt = uncertain.at(touch.ReasonBoth)
		}
		switch {
		case doubt.text != "" && !slices.Contains(c.overwrite, c.name(dir)):
			return doubt.at(a.path)
		case c.unread(a.path):
			return unreadable.at(a.path)
		case a.was != nil && (!a.was.Held() || !restorable(a.was)):
			return notHeld.at(a.path)
		case !c.saved(a):
			return c.notSaved(a.path).at(a.path)
		case a.hidden && !c.overwrites(dir):
			return leftHidden.at(a.path)
		}
		if path.Base(a.path) == "index" && c.locked(a.path) {
			return gitAtWork.at(a.path + ".lock")
		}
	}
	if index := path.Join(dir, "index"); c.locked(index) {
		return gitAtWork.at(index + ".lock")
	}
	left := c.after
	if c.overwrites(dir) {
		left = c.start
	}
	if left != nil {
		switch name := c.touched(dir, left); {
		case name == "":
		case snapshot.SameFile(c.before.Find(name), c.after.Find(name)): // then, or during the turn
			return changedByOthers.at(name)
		default:
			return changedSince.at(name)
		}
	}
	return nil
}

// locked reports whether git has locked an index, unless it is a lock that the turn left behind.
func (c *comparison) locked(index string) bool {
	lock := c.now.Find(index + ".lock")
	left := c.after.Find(index + ".lock")
	return lock != nil && (c.before.Find(index+".lock") != nil || left == nil || !snapshot.SameFile(lock, left))
}

// repositoriesIn returns a directory .git, and the directories of restored submodules in it.
func repositoriesIn(dir string, actions []action) []string {
	all := []string{dir}
	for _, a := range actions {
		if at := path.Dir(a.path); a.was != nil && path.Base(a.path) == "HEAD" && at != dir && at != "." {
			all = append(all, at)
		}
	}
	return all
}

// touched returns a file of .git that is neither as it was left nor as it was before the turn, if it belongs to the
// state of the repository or would be overwritten.
func (c *comparison) touched(dir string, left *snapshot.Index) (name string) {
	snapshot.Each(left, c.now, func(path string, old, is *snapshot.File) {
		at, ok := c.stateOf(path)
		if name != "" || !ok || at != dir || old != nil && old.Mode.IsDir() || is != nil && is.Mode.IsDir() ||
			c.resumed && is == nil {
			return
		}
		rel, was := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/"), c.before.Find(path)
		if c.elsewhereAt(dir, path) != nil {
			return
		}
		if !git.IsState(rel) && (git.Transient(rel) || snapshot.SameFile(was, c.after.Find(path))) {
			return
		}
		if !c.sameState(old, is, dir, path) && !c.sameState(was, is, dir, path) {
			name = path
		}
	})
	return name
}

// sameState compares two files of .git, the second as it is now. Two versions of an index are the same if they list the
// same files: git status rewrites it with the times that it saw, and with the mode that the umask of its caller gives.
func (c *comparison) sameState(a, b *snapshot.File, dir, name string) bool {
	if snapshot.SameFile(a, b) {
		return true
	}
	if path.Base(name) != "index" || a == nil || b == nil || !a.Mode.IsRegular() || !b.Mode.IsRegular() {
		return false
	}
	one, err := c.contents.Read(a)
	if err != nil {
		return false
	}
	other, err := c.read(b, name)
	return err == nil && git.SameIndex(one, other, c.hashSize(dir))
}

// read returns the current content of a file. After a dry run it is not in the store.
func (c *comparison) read(is *snapshot.File, name string) ([]byte, error) {
	if is.Held() {
		return c.contents.Read(is)
	}
	return workspace.ReadFile(filepath.Join(c.root, filepath.FromSlash(name)), is.Size)
}

func (c *comparison) hashSize(dir string) int {
	opened, err := git.At(filepath.Join(c.root, filepath.FromSlash(dir)))
	if err != nil {
		return 20
	}
	return opened.HashSize()
}
