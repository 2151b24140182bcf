package fork

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/snapshot"
)

// Between returns the differences between two forks of one workspace, from a to b, sorted by path.
func Between(ctx context.Context, a, b *Fork) ([]Change, error) {
	if a.Workspace != b.Workspace {
		return nil, fault.New(fault.Conflicting, "%s is a fork of %s, and %s of %s", a.Name, a.Workspace, b.Name,
			b.Workspace)
	}
	one, err := a.lookAt(ctx)
	if err != nil {
		return nil, err
	}
	defer one.close()
	two, err := b.lookAt(ctx)
	if err != nil {
		return nil, err
	}
	defer two.close()
	names := maps.Clone(one.touched)
	maps.Copy(names, two.touched)
	all := []Change{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		from, was, err := one.find(name)
		if err != nil {
			return nil, err
		}
		to, is, err := two.find(name)
		if err != nil {
			return nil, err
		}
		c, differs := Change{}, false
		if is == nil && to.there { // only its base is known, so compare the other way round
			c, differs = change(name, to, was)
			c = c.reversed()
		} else {
			c, differs = change(name, from, is)
		}
		if differs {
			all = append(all, c)
		}
	}
	return all, ctx.Err()
}

// change returns the difference between a base and a side. Directories are listed by their files.
func change(name string, from base, is *side) (c Change, differs bool) {
	equal, err := from.is(is)
	if err == nil && equal || from.there && from.dir && is == nil || !from.there && is.isDir() {
		return c, false
	}
	c = Change{Path: name, Status: statusOf(from, is)}
	c.count(from, is)
	return c, true
}

// reversed returns the change that takes c back.
func (c Change) reversed() Change {
	c.was, c.is, c.Added, c.Removed = c.is, c.was, c.Removed, c.Added
	switch c.Status {
	case snapshot.Added:
		c.Status = snapshot.Deleted
	case snapshot.Deleted:
		c.Status = snapshot.Added
	}
	return c
}

// looked is a fork with the paths that it may have changed.
type looked struct {
	*Fork
	touched map[string]string
	root    *os.Root // of the workspace; nil: the fork has a copy of all files
	was     *bases
}

func (f *Fork) lookAt(ctx context.Context) (l *looked, err error) {
	l = &looked{Fork: f}
	if l.touched, err = f.touched(ctx); err != nil || f.Tier != Overlay {
		return l, err
	}
	if l.root, err = f.openRoot(); err != nil {
		return nil, err
	}
	if l.was, err = f.bases(ctx); err != nil {
		_ = l.root.Close()
		return nil, err
	}
	return l, nil
}

func (l *looked) close() {
	if l.root != nil {
		l.was.close()
		_ = l.root.Close()
	}
}

// find returns a file of the fork. In a layer above the workspace, a file that the fork did not change shows what the
// workspace has now, so its base is returned, and is is nil unless the workspace still has that.
func (l *looked) find(name string) (b base, is *side, err error) {
	if _, own := l.touched[name]; !own && l.root != nil {
		m, err := mine(l.root, name)
		if err != nil {
			return b, nil, unreadable(l.Fork, name, err)
		}
		if b = l.was.of(name, m); b.known {
			return b, b.mine, nil
		}
	}
	if is, err = theirs(l.at(name)); err != nil {
		return b, nil, unreadable(l.Fork, name, err)
	}
	return base{known: true, there: is != nil, mine: is, link: is.isLink(), dir: is.isDir()}, is, nil
}

// at returns the file that programs of the fork see at a path of the workspace, or "". For a path that is set aside it
// returns the earlier version.
func (f *Fork) at(name string) string {
	if v, aside := f.before(name); aside && !v.Lost {
		return v.Kept
	}
	return f.Real(filepath.Join(f.Workspace, filepath.FromSlash(name)))
}

func unreadable(f *Fork, name string, err error) error {
	return fault.New(fault.PermissionDenied, "%s of the fork %s cannot be read: %s", name, f.Name, fault.Bare(err))
}
