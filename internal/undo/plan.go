package undo

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/git"
	"omniagent/internal/tree"
	"omniagent/internal/workspace"
)

// Kept is a path that was not restored.
type Kept struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// The reasons.
const (
	changedSince = "it was changed after the turn"
	notHeld      = "its content was not kept"
	special      = "it is neither a file, a directory nor a link"
)

// action is what makes one path what it was.
type action struct {
	path    string
	was, is *tree.File // before the turn, and now; nil: nothing
}

// plan is what a restore of one root does.
type plan struct {
	root    string
	gitDir  bool            // the root is itself a directory .git
	actions []action        // sorted by path
	kept    []Kept          // left as they are
	states  []string        // the directories .git that are restored, relative to the root
	gone    []string        // those that are to vanish
	mine    map[string]bool // paths that are left as they are
}

// comparison finds out what is to be done in a root.
type comparison struct {
	before, after, now *tree.Index
	contents           *tree.Contents
	takeOld, resumed   bool
	*plan
}

// how says how a root is compared.
type how struct {
	gitDir  bool // the root is itself a directory .git
	takeOld bool // also what was changed after the turn
	resumed bool // directories that were made have not got their modes yet
}

// compare plans the restore of a root. Before and after are the snapshots of the turn, now is that of now.
func compare(before, after, now *tree.Index, o how, contents *tree.Contents) *plan {
	p := &plan{root: now.Root, gitDir: o.gitDir, mine: map[string]bool{}}
	c := &comparison{before, after, now, contents, o.takeOld, o.resumed, p}
	states := map[string][]action{}
	tree.Each(before, after, func(path string, was, left *tree.File) {
		is := now.Find(path)
		a := action{path, was, is}
		if dir, ok := c.stateOf(path); ok {
			if !c.sameState(a.was, is, dir, path) {
				states[dir] = append(states[dir], a)
			}
			return
		}
		c.consider(a, left)
	})
	for dir, actions := range states {
		c.considerState(dir, actions)
	}
	slices.SortFunc(c.actions, func(a, b action) int { return strings.Compare(a.path, b.path) })
	slices.SortFunc(c.kept, func(a, b Kept) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(c.states)
	return c.plan
}

// consider plans for one path outside of .git. left is what the turn left there.
func (c *comparison) consider(a action, left *tree.File) {
	reason := ""
	switch {
	case c.now.Unread(a.path):
		reason = "it cannot be read"
	case tree.SameFile(a.is, a.was):
		return
	case a.was != nil && !restorable(a.was):
		reason = special
	case a.was != nil && !a.was.Held() && !sameContent(a.was, a.is):
		reason = notHeld
	case c.takeOld || c.unfinished(a):
	case !tree.SameFile(a.is, left) || left != nil && left.Later():
		reason = changedSince
	}
	if reason != "" {
		c.mine[a.path] = true
		c.kept = append(c.kept, Kept{a.path, reason})
		return
	}
	c.actions = append(c.actions, a)
}

// unfinished reports whether a directory was made by a restore that was killed.
func (c *comparison) unfinished(a action) bool {
	return c.resumed && a.was != nil && a.is != nil && a.was.Mode.IsDir() && a.is.Mode.IsDir()
}

func restorable(f *tree.File) bool {
	return f.Mode.IsDir() || f.Mode.IsRegular() || f.Target() != ""
}

// sameContent reports whether only the mode of a regular file differs.
func sameContent(was, is *tree.File) bool {
	if is == nil || !is.Mode.IsRegular() || !was.Mode.IsRegular() {
		return false
	}
	like := *is
	like.Mode = was.Mode
	return tree.SameFile(was, &like)
}

// stateOf returns the directory .git that a path is in, relative to the root; "" with GitDir: the root.
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
			return name[:at+end], true
		}
		at += end + 1
	}
	return "", false
}

// considerState plans for a directory .git: all of it is restored, or nothing.
func (c *comparison) considerState(dir string, actions []action) {
	reason := ""
	for _, a := range actions {
		if a.was != nil && (!a.was.Held() || !restorable(a.was)) {
			reason = notHeld + ": " + a.path
		}
	}
	if reason == "" && !c.takeOld {
		if name := c.touched(dir); name != "" {
			reason = changedSince + ": " + name
		}
	}
	if reason != "" {
		name := dir
		if c.gitDir {
			name = c.root
		}
		c.kept = append(c.kept, Kept{name, reason})
		return
	}
	c.actions = append(c.actions, actions...)
	if c.gitDir || c.before.Find(dir) != nil {
		c.states = append(c.states, dir)
	} else {
		c.gone = append(c.gone, dir)
	}
}

// touched returns a file of .git that says what state the repository is in, and that is neither as the turn left it nor
// as it was before.
func (c *comparison) touched(dir string) (name string) {
	look := func(path string, left, is *tree.File) {
		at, ok := c.stateOf(path)
		if name != "" || !ok || at != dir || left != nil && left.Mode.IsDir() || is != nil && is.Mode.IsDir() {
			return
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(path, dir), "/")
		if decides(rel) && !c.sameState(left, is, dir, path) && !c.sameState(c.before.Find(path), is, dir, path) {
			name = path
		}
	}
	tree.Each(c.after, c.now, look)
	return name
}

// decides reports whether a file of .git belongs to its state. What a fetch or a mere look leaves does not.
func decides(rel string) bool {
	first, _, _ := strings.Cut(rel, "/")
	switch first {
	case "refs":
		return !strings.HasPrefix(rel, "refs/remotes/")
	case "HEAD", "index", "packed-refs", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge",
		"rebase-apply",
		"reftable", "modules":
		return !strings.HasSuffix(rel, "/FETCH_HEAD") && !strings.Contains(rel, "/logs/")
	}
	return false
}

// sameState compares two files of .git, the second one as it is now. An index is the same if it lists the same: git
// writes it anew to note what it saw of files.
func (c *comparison) sameState(a, b *tree.File, dir, name string) bool {
	if tree.SameFile(a, b) {
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

// read returns the content of a file as it is now. A dry run has not kept it.
func (c *comparison) read(is *tree.File, name string) ([]byte, error) {
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
