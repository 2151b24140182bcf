package undo

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/snapshot"
)

// elsewhere is what a directory .git has of a working tree outside of the workspace in which somebody worked since the
// turn began. It is not restored: that work is not the turn's.
type elsewhere struct {
	dir  string   // below worktrees
	top  string   // the top of the working tree
	refs []string // the files of the branches that it has checked out, and their logs
	// packed is a branch that is not in a file of its own now, or "".
	packed string
}

// has reports whether a path belongs to the working tree.
func (e *elsewhere) has(name string) bool {
	return name == e.dir || strings.HasPrefix(name, e.dir+"/") || slices.Contains(e.refs, name)
}

// elsewhereAt returns the other working tree that owns a path of a directory .git, or nil.
func (c *comparison) elsewhereAt(dir, name string) *elsewhere {
	for _, e := range c.elsewhereOf(dir) {
		if e.has(name) {
			return e
		}
	}
	return nil
}

// elsewhereOf returns the other working trees of a directory .git in which somebody worked.
func (c *comparison) elsewhereOf(dir string) []*elsewhere {
	if all, known := c.others[dir]; known {
		return all
	}
	var all []*elsewhere
	trees := path.Join(dir, "worktrees")
	if (c.gitDir || isDir(c.before, dir)) && isDir(c.now, trees) {
		c.now.EachDir(func(name string, _ *snapshot.File) {
			if path.Dir(name) != trees {
				return
			}
			if e, is := c.workedIn(dir, name); is {
				all = append(all, e)
			}
		})
	}
	c.others[dir] = all
	return all
}

// workedIn reports whether the working tree with this directory below worktrees is outside of the workspace and was
// made since the turn began, or has another HEAD, index or branch since then. One that no longer exists is restored.
func (c *comparison) workedIn(dir, own string) (e *elsewhere, is bool) {
	link := strings.TrimRight(c.text(c.now, own+"/gitdir"), "\r\n")
	if link != "" && !filepath.IsAbs(link) {
		link = filepath.Join(c.root, filepath.FromSlash(own), link)
	}
	e = &elsewhere{dir: own, top: pathname.Real(filepath.Dir(link))}
	if link == "" || pathname.Within(c.workspace, e.top) || !exists(link) {
		return e, false
	}
	for _, name := range []string{"HEAD", "index", "gitdir", "reftable/tables.list"} {
		name = own + "/" + name
		was, now := c.before.Find(name), c.now.Find(name)
		is = is || now != nil && (was == nil || !c.sameState(was, now, dir, name))
	}
	mine := []string{c.branch(c.before, path.Join(dir, "HEAD")), c.branch(c.now, path.Join(dir, "HEAD"))}
	for _, x := range []*snapshot.Index{c.before, c.now} {
		ref := c.branch(x, own+"/HEAD")
		if ref == "" || slices.Contains(mine, ref) {
			continue
		}
		e.refs = append(e.refs, path.Join(dir, ref), path.Join(dir, "logs", ref))
		value := c.value(c.now, dir, ref)
		is = is || value != "" && value != c.value(c.before, dir, ref)
		if value != "" && c.now.Find(path.Join(dir, ref)) == nil {
			e.packed = ref
		}
	}
	return e, is
}

// branch returns the name of the branch that a file HEAD names, or "".
func (c *comparison) branch(x *snapshot.Index, head string) string {
	ref, ok := strings.CutPrefix(c.text(x, head), "ref: ")
	if ref = strings.TrimSpace(ref); !ok || !strings.HasPrefix(ref, "refs/") {
		return ""
	}
	return ref
}

// value returns what a ref names, or "".
func (c *comparison) value(x *snapshot.Index, dir, ref string) string {
	if own := strings.TrimSpace(c.text(x, path.Join(dir, ref))); own != "" {
		return own
	}
	for line := range strings.Lines(c.text(x, path.Join(dir, "packed-refs"))) {
		if value, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
			return value
		}
	}
	return ""
}

// text returns the content of a file of .git, or "".
func (c *comparison) text(x *snapshot.Index, name string) string {
	f := x.Find(name)
	if f == nil || !f.Mode.IsRegular() {
		return ""
	}
	read := c.contents.Read
	if x == c.now {
		read = func(f *snapshot.File) ([]byte, error) { return c.read(f, name) }
	}
	data, err := read(f)
	if err != nil {
		return ""
	}
	return string(data)
}

// keepElsewhere adds to what is kept the state of another working tree that changed during the turn.
func (c *comparison) keepElsewhere(e *elsewhere) {
	if c.keptPaths[e.dir] {
		return
	}
	c.keep(e.dir, foreign.at(e.top))
	for _, name := range e.refs {
		c.keptPaths[name] = true
	}
}

// mixed returns an error if the state of other working trees is in one file with what is to be restored.
func (c *comparison) mixed(dir string, actions []action) error {
	for _, e := range c.elsewhereOf(dir) {
		for _, a := range actions {
			rel := strings.TrimPrefix(strings.TrimPrefix(a.path, dir), "/")
			if e.packed != "" && rel == "packed-refs" || strings.HasPrefix(rel, "reftable/") {
				return shared.at(e.top)
			}
		}
	}
	return nil
}
