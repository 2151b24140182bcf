package undo

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
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
	text, err := c.text(c.now, own+"/gitdir", git.SmallFile)
	link := git.Named(filepath.Join(c.root, filepath.FromSlash(own)), string(text))
	e = &elsewhere{dir: own, top: pathname.Real(filepath.Dir(link))}
	if err != nil || pathname.Within(c.workspace, e.top) || !exists(link) {
		return e, false
	}
	for _, name := range []string{"HEAD", "index", "gitdir", "reftable/tables.list"} {
		name = own + "/" + name
		was, now := c.before.Find(name), c.now.Find(name)
		is = is || now != nil && (was == nil || !c.sameState(was, now, dir, name))
	}
	mine := []string{"", c.head(c.before, dir).Ref, c.head(c.now, dir).Ref}
	for _, x := range []*snapshot.Index{c.before, c.now} {
		ref := c.head(x, own).Ref
		if slices.Contains(mine, ref) {
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

// refs reads the refs of a directory .git, and the HEAD there.
func (c *comparison) refs(x *snapshot.Index, dir string) git.Refs {
	return git.Refs{Dir: dir, Common: dir, Read: func(name string, limit int64) ([]byte, error) {
		return c.text(x, filepath.ToSlash(name), limit)
	}, Link: func(name string) string {
		if f := x.Find(filepath.ToSlash(name)); f != nil {
			return f.Target()
		}
		return ""
	}}
}

// head returns what a HEAD names, or nothing.
func (c *comparison) head(x *snapshot.Index, dir string) git.Head {
	h, _ := c.refs(x, dir).Target()
	return h
}

// value returns what a ref names, or "".
func (c *comparison) value(x *snapshot.Index, dir, ref string) string {
	value, _ := c.refs(x, dir).Commit(ref)
	return value
}

// text returns the content of a file of .git. One that cannot be read, or is empty, is missing.
func (c *comparison) text(x *snapshot.Index, name string, limit int64) (data []byte, err error) {
	f := x.Find(name)
	switch {
	case f == nil || !f.Mode.IsRegular() || f.Size > limit:
	case x == c.now:
		data, _ = c.read(f, name)
	default:
		data, _ = c.contents.Read(f)
	}
	if len(data) == 0 {
		err = fs.ErrNotExist
	}
	return data, err
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
			if e.packed != "" && rel == git.PackedRefs || strings.HasPrefix(rel, "reftable/") {
				return shared.at(e.top)
			}
		}
	}
	return nil
}
