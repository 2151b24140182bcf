package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// aside describes a path that the check of a run has changed in the run's fork, and what the run had left there.
type aside struct {
	Path string `json:"path"`
	fork.Version
}

const (
	asideFile = "aside.json"
	checkFile = "checking" // exists while the check runs, and remains if its end was not observed
	asideDir  = "aside"
	asideSize = 1 << 30 // of the file
)

// checked runs the task's check. In a fork, the check's own changes are set aside, so that they are not applied with
// those of the run.
func (o *Owner) checked(ctx context.Context, v Verdict) Verdict {
	if o.Run.sight.fork == nil || o.Run.sight.last == nil {
		return o.check(ctx, v)
	}
	wrote, at := o.Run.sight.fork(), filepath.Join(o.Run.Path(), checkFile)
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		o.Log("nothing says that a check is under way: %v", err)
	}
	defer os.Remove(at) //nolint:errcheck // if it remains, only fork apply applies the run
	v = o.check(ctx, v)
	moved, err := o.Run.setAside(context.WithoutCancel(ctx), wrote)
	if err != nil {
		o.Log("what the check has changed comes home too: %v", err)
	}
	if len(moved) > 0 {
		o.Log("the check committed to %s, or moved it: that comes home too", strings.Join(moved, ", "))
	}
	return v
}

// setAside records what the check has changed in the fork of the run, and keeps a copy of what the run had left there.
// wrote reports whether the fork has written a path, before the check or since. It returns the branches that the check
// moved, which are not set aside.
func (r *Run) setAside(ctx context.Context, wrote func(path string) bool) (moved []string, err error) {
	start, err := snapshot.LoadFile(filepath.Join(r.Path(), startFile))
	if err != nil {
		return nil, err
	}
	o := snapshot.Options{Since: r.sight.last, Except: snapshot.Except(r.Dir, r.store.Ours)}
	is, err := snapshot.Take(ctx, r.Dir, o)
	if err != nil {
		return nil, err
	}
	contents := snapshot.OpenContents(r.store.contents(r.ID), func(dir string) string { return dir })
	defer contents.Close()
	dir := filepath.Join(r.Path(), asideDir)
	if err := workspace.MkdirAll(dir); err != nil {
		return nil, err
	}
	all := []aside{}
	snapshot.Each(r.sight.last, is, func(name string, was, now *snapshot.File) {
		if !wrote(filepath.Join(r.Dir, filepath.FromSlash(name))) {
			return
		}
		if was != nil && was.OfGit() || now != nil && now.OfGit() {
			if branch, ok := git.BranchOf(name); ok && !cmp.Or(now, was).Mode.IsDir() {
				moved = append(moved, branch)
			}
			return
		}
		a := aside{Path: name, Version: fork.Version{Left: fork.Left{Gone: now == nil}}}
		if now != nil {
			a.Left = fork.Left{Target: now.Target(), Size: now.Size, Modified: now.Modified, Sum: now.Sum()}
		}
		if was != nil {
			a.Kept = filepath.Join(dir, fmt.Sprint(len(all)))
			if keep(was, contents, a.Kept) != nil {
				if !was.Ignored() && !snapshot.SameFile(start.Find(name), was) {
					return // apply the check's version rather than none
				}
				a.Kept, a.Lost = "", true
			}
		}
		all = append(all, a)
	})
	return moved, workspace.WriteJSON(filepath.Join(r.Path(), asideFile), all, workspace.WriteDerived)
}

// keep copies a file of an index.
func keep(f *snapshot.File, contents *snapshot.Contents, to string) error {
	switch {
	case f.Mode.IsDir():
		return os.Mkdir(to, 0o700)
	case f.Mode&fs.ModeSymlink != 0:
		return os.Symlink(f.Target(), to)
	}
	data, err := contents.Read(f)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err == nil {
		err = os.Chmod(to, f.Mode.Perm())
	}
	return err
}

// Aside returns the paths that the checks of runs in one fork have changed, except those that a later of these runs has
// changed again. It fails if a check has not ended, or what a run had left is missing.
func (s Store) Aside(runs []Record) (map[string]fork.Version, error) {
	all := map[string]fork.Version{}
	for _, r := range runs {
		before, errBefore := snapshot.LoadFile(filepath.Join(s.Path(r.ID), firstFile))
		after, errAfter := snapshot.LoadFile(filepath.Join(s.Path(r.ID), lastFile))
		if errBefore == nil && errAfter == nil {
			snapshot.Each(before, after, func(name string, _, _ *snapshot.File) { delete(all, name) })
		}
		if _, err := os.Lstat(filepath.Join(s.Path(r.ID), checkFile)); err == nil {
			return nil, fault.New(fault.Conflicting, "the check of %s has not ended, or was killed: nobody can tell "+
				"what in %s the run left, and what its check made", r.ID, r.Fork).With("run_id", r.ID).
				Hint("omniagent fork apply %s", r.Fork)
		}
		var list []aside
		err := workspace.ReadJSON(filepath.Join(s.Path(r.ID), asideFile), asideSize, &list)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // without the list, the check's changes would be applied
			return nil, err
		}
		for _, a := range list {
			if _, errKept := os.Lstat(a.Kept); a.Kept != "" && errKept != nil { // otherwise it would count as removed
				return nil, fault.New(fault.Conflicting, "%s lacks %s as the run left it", r.ID, a.Path).
					With("run_id", r.ID).Because(errKept).Hint("omniagent fork apply %s", r.Fork)
			}
			if first, again := all[a.Path]; again { // this run found there what an earlier check had left
				a.Kept, a.Lost = first.Kept, first.Lost
			}
			all[a.Path] = a.Version
		}
	}
	return all, nil
}
