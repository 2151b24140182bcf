package fork

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/walls/sandbox"
)

// Own is an object of git that only the fork has, and that is lost with it.
type Own struct {
	Repository string // the top of its working tree, relative to the workspace; "." for that of the workspace
	Ref        string // such as refs/heads/topic, refs/stash, or HEAD
	Commit     string // or another object
}

// Owns returns what the repositories of the fork have, nested ones too, and the workspace does not: commits that no ref
// of the workspace reaches, and tags.
func (f *Fork) Owns(ctx context.Context) ([]Own, error) {
	all := []Own{}
	if f.GitDir != "" {
		all = append(all, f.owns(ctx, ".", f.home(), f.inside())...)
	}
	for _, l := range f.places() {
		err := filepath.WalkDir(l.Upper, func(at string, e fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil || !e.IsDir() {
				return ctx.Err() // what cannot be read is left out
			}
			rel, _ := filepath.Rel(l.Upper, at)
			dir := filepath.Join(l.Lower, rel)
			top, in := repositoryAt(f.rel(dir))
			if !in || dir == f.GitDir || dir == f.Common {
				return nil
			}
			here, there := git.RefsOf(dir, dir, pathname.Real), f.refs(dir, dir, f.Real)
			if _, err := there.Head(); err == nil {
				all = append(all, f.owns(ctx, top, here, there)...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// places returns the directories of the workspace (Lower), each with the one that has the fork's files of it (Upper).
func (f *Fork) places() []sandbox.Layer {
	if f.Tier != Overlay {
		return []sandbox.Layer{{Lower: f.Workspace, Upper: f.tree()}}
	}
	return slices.DeleteFunc(slices.Clone(f.Layers), func(l sandbox.Layer) bool {
		return !pathname.Within(f.Workspace, l.Lower)
	})
}

// repositoryAt reports whether a directory can be that of a repository: one called .git, or a submodule's. top is the
// directory of its working tree.
func repositoryAt(dir string) (top string, is bool) {
	if above, is := strings.CutSuffix("/"+dir, "/.git"); is {
		return path.Clean(strings.TrimPrefix(above, "/") + "/."), true
	}
	above, name, is := strings.Cut("/"+dir, "/.git/modules/")
	return path.Clean(strings.TrimPrefix(above+"/"+name, "/")), is
}

// owns returns what a repository has in the fork, and not in the workspace.
func (f *Fork) owns(ctx context.Context, top string, here, there git.Refs) (all []Own) {
	known, refs := here.Commits(), there.Commits()
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		at := refs[ref]
		if !strings.HasPrefix(ref, "refs/remotes/") && known[ref] != at && !f.has(ctx, here, ref, at) {
			all = append(all, Own{top, ref, at})
		}
	}
	if h, err := there.Head(); err == nil && h.Ref == "" && !f.has(ctx, here, "HEAD", h.Commit) {
		all = append(all, Own{top, "HEAD", h.Commit})
	}
	return all
}

// has reports whether the workspace has an object that its ref of this name does not have. Tags have to have the same
// name, and commits can be in the history of any ref.
func (f *Fork) has(ctx context.Context, here git.Refs, ref, object string) bool {
	if strings.HasPrefix(ref, "refs/tags/") {
		return false
	}
	left, err := f.git(ctx, "--git-dir="+here.Dir, "rev-list", "--max-count=1", object, "--not", "--all")
	return err == nil && left == ""
}
