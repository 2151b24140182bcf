package undo

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
)

// take makes the indexes of the roots, and of the repositories outside to which the first one belongs, and keeps the
// contents that they need. since is an earlier snapshot of them; nil: the latest is read.
func (p *place) take(ctx context.Context, roots []string, since []*snapshot.Index) ([]*snapshot.Index, error) {
	return p.survey(ctx, roots, since, p.contents())
}

// survey is take without keeping anything if contents is nil.
func (p *place) survey(ctx context.Context, roots []string, since []*snapshot.Index, contents *snapshot.Store) (
	all []*snapshot.Index, err error,
) {
	ctx, cancel := context.WithTimeout(ctx, walkTime)
	defer cancel()
	for i := 0; i < len(roots); i++ {
		root := roots[i]
		latest := p.latest(root)
		o := snapshot.Options{
			Store: contents, Whole: true, GitDir: i > 0, CountLimit: countLimit, Private: p.store.Private,
			FileLimit:    cmp.Or(p.store.FileLimit, fileLimit),
			TotalLimit:   cmp.Or(p.store.TotalLimit, totalLimit),
			IgnoredLimit: cmp.Or(p.store.IgnoredLimit, ignoredLimit),
		}
		if i == 0 {
			o.Except = p.except()
		}
		if i < len(since) {
			o.Since = since[i]
		} else {
			o.Since, _ = snapshot.LoadFile(latest) // without it more is read
		}
		x, err := snapshot.Take(ctx, root, o)
		if err != nil && !exists(root) {
			x, err = snapshot.Nothing(root), nil // a turn removed the workspace, or a repository outside of it
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			x.Gaps = append(x.Gaps, unreached(x)...)
		}
		if contents != nil && (o.Since == nil || !exists(latest) || worthKeeping(o.Since, x)) {
			if err := x.SaveFile(latest); err != nil {
				return nil, err
			}
		}
		if all = append(all, x); i == 0 && len(roots) == 1 {
			roots = append(roots, outside(x)...)
		}
	}
	return all, nil
}

// worthKeeping reports whether a new index should replace the old one on disk.
func worthKeeping(old, is *snapshot.Index) bool {
	if same, vague := snapshot.Same(old, is); same {
		return vague > 0 // less has to be read with the new one
	}
	return true
}

// outside returns the repositories that are not below the root of an index.
func outside(x *snapshot.Index) (dirs []string) {
	x.EachRepository(func(dir, top string) {
		if pathname.Within(x.Root, dir) || slices.Contains(dirs, dir) {
			return
		}
		if opened, err := git.At(dir); err == nil && opened.Common() == dir && belongs(x.Root, top, opened) {
			dirs = append(dirs, dir)
		}
	})
	return dirs
}

// belongs reports whether a repository outside of the root is that of a working tree. The file or link below the root
// that says so may have been made by anybody who works there, and may name a repository where nobody but a person
// works: so the repository has to name the working tree itself.
func belongs(root, top string, r *git.Repository) bool {
	return top == "" || r.WorkTree() == pathname.Real(filepath.Join(root, filepath.FromSlash(top)))
}

// unreached returns the gaps of working trees whose repository is outside of the root, and either has other working
// trees too or does not name them.
func unreached(x *snapshot.Index) (gaps []snapshot.Gap) {
	x.EachRepository(func(dir, top string) {
		opened, err := git.At(dir)
		switch {
		case err != nil || pathname.Within(x.Root, opened.Common()):
		case opened.Common() != dir:
			gaps = append(gaps, snapshot.Gap{Path: dir, Reason: "it is the state of git of a linked worktree"})
		case !belongs(x.Root, top, opened):
			why := "it is outside of the workspace, and its core.worktree is not " + top
			gaps = append(gaps, snapshot.Gap{Path: dir, Reason: why})
		}
	})
	return gaps
}

// except returns a func that reports whether a name in the workspace is left out: the store itself, or the temporary
// file of a restore that was killed.
func (p *place) except() func(dir, name string) bool {
	ours := snapshot.Except(p.root, []string{p.store.Dir})
	if j, interrupted, _ := p.interrupted(); interrupted {
		return func(dir, name string) bool { return name == j.staging() || ours(dir, name) }
	}
	return ours
}

// latest is the file with the last index of a root.
func (p *place) latest(root string) string { return filepath.Join(p.dir, "latest-"+key(root)) }

// keepLatest keeps a snapshot that was just taken as the one before a turn. take has saved its indexes, or found them
// unchanged.
func (p *place) keepLatest(id string, indexes []*snapshot.Index) error {
	for i, x := range indexes {
		to := p.index(id, "before", i)
		if os.Link(p.latest(x.Root), to) == nil {
			continue
		}
		if err := x.SaveFile(to); err != nil {
			return err
		}
	}
	return nil
}

// save keeps the indexes of a snapshot.
func (p *place) save(id, which string, indexes []*snapshot.Index) error {
	for i, x := range indexes {
		if err := x.SaveFile(p.index(id, which, i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) load(id, which string, n int) ([]*snapshot.Index, error) {
	var all []*snapshot.Index
	for i := range n {
		x, err := snapshot.LoadFile(p.index(id, which, i))
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// Sentence returns what a person should know of the gaps before a turn, or "" if undo covers everything.
func Sentence(gaps []snapshot.Gap) string {
	if len(gaps) == 0 {
		return ""
	}
	var some []string
	for _, g := range gaps[:min(len(gaps), 3)] {
		some = append(some, fmt.Sprintf("%s (%s)", g.Path, g.Reason))
	}
	more := ""
	if n := len(gaps) - len(some); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "undo does not cover " + strings.Join(some, ", ") + more
}
