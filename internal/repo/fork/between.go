package fork

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/fault"
)

// Between returns the differences between two forks of one workspace, from a to b, sorted by path.
func Between(ctx context.Context, a, b *Fork) ([]Change, error) {
	if a.Workspace != b.Workspace {
		return nil, fault.New(fault.Conflicting, "%s is a fork of %s, and %s of %s", a.Name, a.Workspace, b.Name,
			b.Workspace)
	}
	one, err := a.touched(ctx)
	if err != nil {
		return nil, err
	}
	two, err := b.touched(ctx)
	if err != nil {
		return nil, err
	}
	maps.Copy(one, two)
	all := []Change{}
	for _, name := range slices.Sorted(maps.Keys(one)) {
		was, err := theirs(a.at(name))
		if err != nil {
			return nil, unreadable(a, name, err)
		}
		is, err := theirs(b.at(name))
		if err != nil {
			return nil, unreadable(b, name, err)
		}
		if equal, err := same(was, is); err == nil && equal || was.isDir() && is == nil || was == nil && is.isDir() {
			continue // directories are listed by their files
		}
		from := base{known: true, there: was != nil, mine: was, link: was.isLink(), dir: was.isDir()}
		c := Change{Path: name, Status: statusOf(from, is)}
		c.count(from, is)
		all = append(all, c)
	}
	return all, ctx.Err()
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
