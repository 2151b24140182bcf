package undo

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// journal is the request of a restore that is under way.
type journal struct {
	ID      string `json:"id"` // of the record of the restore
	Of      string `json:"of"`
	TakeOld bool   `json:"take_old"`
	TakeAll bool   `json:"take_all,omitempty"`
	// Overwrite is that of the request.
	Overwrite []string `json:"overwrite,omitempty"`
}

// staging returns the name of the temporary file from which a content is renamed, in the same directory.
func (j journal) staging() string { return ".omniagent-undo-" + j.ID + ".tmp" }

// interrupted returns the journal of a restore whose process died.
func (p *place) interrupted() (j journal, found bool, err error) {
	err = workspace.ReadJSON(filepath.Join(p.dir, journalFile), jsonLimit, &j)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.FileMissing):
		return j, false, nil
	case errors.As(err, &syntax): // after a power failure; the record has most of it
		records, err := p.list()
		for _, r := range records {
			if r.Kind != OfTurn && r.Ended.IsZero() {
				j = journal{ID: r.ID, Of: r.Undoes}
			}
		}
		return j, err == nil, err
	}
	return j, err == nil, err
}

// now returns the options of the request. The restore begins with the given indexes.
func (j journal) now(indexes []*snapshot.Index) now {
	return now{
		restoreOptions: restoreOptions{takeOld: j.TakeOld, takeAll: j.TakeAll, overwrite: j.Overwrite},
		indexes:        indexes,
	}
}

// resume completes a restore whose process has died.
func (p *place) resume(ctx context.Context, j journal) (out Outcome, err error) {
	out.Resumed = true
	t := &Turn{place: p}
	if out.Turn, err = p.read(j.Of); err == nil {
		t.record, err = p.read(j.ID)
	}
	if err == nil && !t.record.Ended.IsZero() { // it died after the restore; its indexes matter only to its own undo
		out.Undo = t.record
		return out, p.conclude(&out)
	}
	var then snapshots
	if err == nil {
		then, err = p.snapshots(out.Turn)
	}
	if err == nil {
		t.before, err = p.load(t.record.ID, "before", len(t.record.Roots))
	}
	if err != nil {
		return out, p.giveUp(ctx, t, j, err)
	}
	if t.alive, err = workspace.Lock(ctx, p.alive(t.record.ID), lockWait); err != nil {
		return out, err
	}
	defer t.release()
	for _, x := range then.before {
		unstage(x, j.staging()) // it may be in a directory that was made
	}
	for _, x := range t.before {
		p.tidy(x, j.staging())
	}
	is := j.now(nil)
	is.resumed, is.starts = true, t.before
	if is.indexes, err = p.take(ctx, out.Turn.Roots, nil); err != nil {
		return out, err
	}
	err = p.restore(ctx, t, &out, then, is, j.staging())
	return out, err
}

// giveUp ends a restore that cannot be completed. What it did remains, and can be undone if its own snapshot is not
// damaged.
func (p *place) giveUp(ctx context.Context, t *Turn, j journal, why error) error {
	t.record.ID = j.ID
	f := fault.New(fault.Unsafe, "an undo that was interrupted cannot be completed: %v", why).Because(why)
	before, err := p.load(j.ID, "before", max(len(t.record.Roots), 1))
	if err == nil && len(t.record.Roots) > 0 {
		t.before = before
		for _, x := range before {
			p.tidy(x, j.staging())
		}
		if _, err := t.end(ctx, nil); err != nil {
			return err // the next Undo tries again: only this snapshot has what was overwritten
		}
		f = f.Hint("omniagent undo %s takes back what it did", j.ID)
	}
	if err != nil || len(t.record.Roots) == 0 {
		t.Drop()
	}
	if err := os.Remove(filepath.Join(p.dir, journalFile)); err != nil {
		return err
	}
	return f
}

// unstage removes the temporary files of a restore that was killed from the directories of an index.
func unstage(x *snapshot.Index, staging string) {
	root, err := os.OpenRoot(x.Root)
	if err != nil {
		return
	}
	defer root.Close()
	_ = root.Remove(staging)
	for _, dir := range x.Repositories() {
		_ = root.Remove(filepath.Join(filepath.FromSlash(dir), stagedAlternates))
	}
	x.EachDir(func(path string, _ *snapshot.File) {
		_ = root.Remove(filepath.Join(filepath.FromSlash(path), staging))
	})
}

// tidy removes the temporary files of a restore that was killed, and resets the modes of the directories that it made
// writable.
func (p *place) tidy(before *snapshot.Index, staging string) {
	unstage(before, staging)
	root, err := os.OpenRoot(before.Root)
	if err != nil {
		return
	}
	defer root.Close()
	tidy := func(path string, f *snapshot.File) {
		if f.Mode.Perm()&0o300 == 0o300 {
			return
		}
		name := filepath.FromSlash(path)
		if info, err := root.Lstat(name); err == nil && info.IsDir() && info.Mode().Perm() == f.Mode.Perm()|0o700 {
			_ = root.Chmod(name, f.Perm())
		}
	}
	before.EachDir(tidy)
	if top := before.Find("."); top != nil {
		tidy(".", top)
	}
}
