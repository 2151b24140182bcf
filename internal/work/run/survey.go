package run

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// survey makes an index of the workspace before the run, with the content that a diff will need. If that fails, the run
// continues without a list of changes.
func (r *Run) survey(ctx context.Context) error {
	r.look()
	path := filepath.Join(r.Path(), startFile)
	if start, err := snapshot.LoadFile(path); err == nil { // an earlier owner has made it
		return r.goOn(ctx, start)
	}
	for _, dir := range r.store.Ours {
		if !pathname.Within(r.Dir, dir) {
			continue
		}
		// Make it before the index, so that neither it nor a directory above it counts as a change.
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	before, err := r.take(ctx, nil)
	if err != nil {
		return err
	}
	r.sight.base = before
	if all := holdings(before); len(all) > 0 {
		if err := workspace.WriteJSON(filepath.Join(r.Path(), holdingsFile), all, workspace.WriteDerived); err != nil {
			return err
		}
	}
	return before.SaveFile(path)
}

// take makes an index of the workspace, with the content that a diff will need. since is an earlier index, or nil.
func (r *Run) take(ctx context.Context, since *snapshot.Index) (*snapshot.Index, error) {
	o := snapshot.Options{Store: r.store.contents(r.ID), Since: since, Except: snapshot.Except(r.Dir, r.store.Ours)}
	if since != nil {
		o.Private = r.secrets.in
	}
	return snapshot.Take(ctx, r.Dir, o)
}

// contents returns the store of the contents for a run's diff.
func (s Store) contents(id string) *snapshot.Store {
	return snapshot.OpenStore(filepath.Join(s.Path(id), "contents"))
}

// changes compares the workspace with its state before the run, and keeps both indexes for the diff. It leaves out what
// others have changed, and returns as doubts what either may have changed.
func (r *Run) changes(ctx context.Context) (found *snapshot.Changes, doubts []Doubt, err error) {
	before, err := snapshot.LoadFile(filepath.Join(r.Path(), startFile))
	if err != nil {
		return nil, nil, err
	}
	after, err := r.take(ctx, before)
	if err != nil {
		return nil, nil, err
	}
	r.sight.last = after
	before, after, doubts = r.judge(before, after)
	found = snapshot.Diff(before, after)
	if r.Fork != "" { // only the fork has its commits, and the contents in them
		if err := found.Keep(ctx, r.store.contents(r.ID)); err != nil {
			return nil, nil, err
		}
	}
	first, last := snapshot.Trim(before, after)
	if err := first.SaveFile(filepath.Join(r.Path(), firstFile)); err != nil {
		return nil, nil, err
	}
	if err := last.SaveFile(filepath.Join(r.Path(), lastFile)); err != nil {
		return nil, nil, err
	}
	return found, doubts, found.Count(ctx, r.store.contents(r.ID))
}

// changed returns the changes since before the run, or nil if they are unknown.
func (r *Run) changed(ctx context.Context) *Changes {
	found, doubts, err := r.changes(ctx)
	if err != nil {
		return nil
	}
	out := &Changes{Files: []snapshot.Change{}, Ignored: found.Ignored}
	out.Doubtful, out.Perhaps = len(doubts), doubts[:min(len(doubts), mostFiles)]
	for _, f := range found.Files {
		if f.Status == snapshot.Git { // listed apart
			out.Git = append(out.Git, f.Path)
			continue
		}
		if f.Added != nil && f.Removed != nil {
			out.Added, out.Removed = out.Added+*f.Added, out.Removed+*f.Removed
		}
		if out.Count++; len(out.Files) < mostFiles {
			out.Files = append(out.Files, f)
		}
	}
	if out.Gone = r.gone(); len(out.Gone) > 0 {
		for _, g := range out.Gone {
			out.Git = append(out.Git, g.Path)
		}
		slices.Sort(out.Git)
		out.Git = slices.Compact(out.Git)
	}
	for _, g := range found.Gaps {
		out.Partial = append(out.Partial, g.Path+": "+g.Reason)
	}
	for _, dir := range r.Dirs {
		if !pathname.Within(r.Dir, dir) {
			out.Partial = append(out.Partial, dir+": it is of --add-dir; changes there are neither seen nor taken back")
		}
	}
	return out
}

// mostFiles limits the changed files in a record. Changes finds all of them.
const mostFiles = 1000

// differ reports whether any file differs; nil if unknown.
func differ(c *Changes) *bool {
	if c == nil || c.Count == 0 && (len(c.Partial) > 0 || c.Doubtful > 0) {
		return nil
	}
	return new(c.Count > 0)
}

// Changes returns the files that a run has changed in its directory.
func (s Store) Changes(ctx context.Context, id string) (dir string, files []snapshot.Change, err error) {
	r, err := s.Peek(id)
	unknown := r.Result == nil || r.Result.Changed == nil
	switch {
	case err != nil:
		return "", nil, err
	case unknown && r.NeverBegan():
		return r.Dir, nil, nil
	case unknown:
		return "", nil, unknownChanges(r)
	}
	if recorded := r.Result.Changed; recorded.Count <= len(recorded.Files) {
		return r.Dir, recorded.Files, nil
	}
	found, err := s.compared(id)
	if err == nil {
		err = found.Count(ctx, s.contents(id))
	}
	if err != nil {
		return "", nil, err
	}
	return r.Dir, slices.DeleteFunc(found.Files, func(f snapshot.Change) bool { return f.Status == snapshot.Git }), nil
}

// soFar returns what a waiting run had changed when it began to wait, because later changes do not count.
func (r *Run) soFar(ctx context.Context) *Changes {
	if r.Result != nil && r.Result.Changed != nil {
		return r.Result.Changed
	}
	return r.changed(ctx)
}

func unknownChanges(r Record) *fault.Fault {
	f := fault.New(fault.FileMissing, "what %s has changed is not known", r.ID)
	switch {
	case !r.State.Terminal():
		return f.Hint("it is known when the run is over")
	case r.Fork != "":
		return f.Hint("omniagent fork diff %s", r.Fork)
	}
	return f.Hint("omniagent runs show %s", r.ID)
}

// Diff writes the changes of a run as a unified diff.
func (s Store) Diff(ctx context.Context, id string, w io.Writer) error {
	r, err := s.Peek(id)
	if err != nil {
		return err
	}
	found, err := s.compared(id)
	switch {
	case errors.Is(err, fault.FileMissing) && r.NeverBegan():
		return nil
	case errors.Is(err, fault.FileMissing):
		return unknownChanges(r)
	case err != nil:
		return err
	}
	return found.Patch(ctx, s.contents(id), w)
}

// compared returns the differences between the two indexes that a run has kept.
func (s Store) compared(id string) (*snapshot.Changes, error) {
	first, last, err := s.indexes(id)
	if err != nil {
		return nil, err
	}
	return snapshot.Diff(first, last), nil
}

// indexes returns the indexes of what a run has changed, as it was before and as the run left it.
func (s Store) indexes(id string) (first, last *snapshot.Index, err error) {
	if first, err = snapshot.LoadFile(filepath.Join(s.Path(id), firstFile)); err != nil {
		return nil, nil, fault.New(fault.FileMissing, "what %s has changed is not known", id).Because(err)
	}
	last, err = snapshot.LoadFile(filepath.Join(s.Path(id), lastFile))
	return first, last, err
}
