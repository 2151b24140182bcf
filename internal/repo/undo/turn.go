package undo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// Turn is a turn that is under way.
type Turn struct {
	place  *place
	record Record
	before []*snapshot.Index
	packs  map[string]workspace.Status // git's packs by path, after they were pinned
	common []string                    // the common directories of the repositories
	leases *leases                     // nil: none
	bare   []string                    // directories with packs that are shared with the store and not guarded
	began  time.Time                   // when the first snapshot was complete; zero: not known
	alive  *workspace.FileLock         // locked while this process runs the turn
	seen   *touch.Window               // what the agent writes; nil: not known
	live   bool                        // the second index is that of now, without contents
	judged bool                        // doubts are complete
	doubts doubts
}

// Begin takes the snapshot before a turn. The turn has to be ended by End, Drop or Leave.
func (s Store) Begin(ctx context.Context, o Origin) (*Turn, error) {
	p, err := s.place(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := p.lock(ctx); err != nil {
		return nil, err
	}
	defer p.unlock()
	_ = p.close(ctx) // if that fails, an undo reports it
	t, err := p.begin(ctx, o, OfTurn, []string{p.root})
	if err == nil {
		t.leases, t.bare = p.guardPacks(t.common)
	}
	return t, err
}

// Resume returns a turn without an end, whose process has died, so that this process ends it.
func (s Store) Resume(ctx context.Context, dir, id string) (*Turn, error) {
	p, err := s.place(dir)
	if err != nil {
		return nil, err
	}
	if err := p.lock(ctx); err != nil {
		return nil, err
	}
	defer p.unlock()
	t := &Turn{place: p}
	if t.record, err = p.read(id); err == nil && !t.record.Ended.IsZero() {
		err = fault.New(fault.Conflicting, "the turn %s is over", id)
	}
	if err == nil {
		t.before, err = p.load(id, "before", len(t.record.Roots))
	}
	if err == nil {
		t.alive, err = workspace.Lock(ctx, p.alive(id), 0)
	}
	return t, err
}

// begin takes the first snapshot. The caller holds the lock. roots are what an earlier turn covered, or the workspace
// alone.
func (p *place) begin(ctx context.Context, o Origin, kind Kind, roots []string) (*Turn, error) {
	t := &Turn{place: p, record: Record{
		ID: ident.Ordered(), Origin: o, Kind: kind, Began: time.Now().UTC(), Roots: []string{},
	}}
	indexes, err := p.take(ctx, roots, nil)
	if err != nil {
		return nil, err
	}
	t.before, t.common = indexes, commons(indexes)
	for _, x := range indexes {
		t.record.Roots = append(t.record.Roots, x.Root)
	}
	if err := workspace.MkdirAll(p.turn(t.record.ID)); err != nil {
		return nil, err
	}
	if t.alive, err = workspace.Lock(ctx, p.alive(t.record.ID), 0); err == nil {
		if err = p.pin(t.common, t.record.ID); err == nil {
			err = p.keepLatest(t.record.ID, indexes)
		}
		p.noteShared(t.common, indexes[0])
		t.record.Gaps = gaps(indexes)
		if err == nil {
			err = p.write(t.record)
		}
	}
	if err != nil {
		t.Drop()
		return nil, err
	}
	t.lookAtPacks()
	return t, nil
}

// lookAtPacks records the status of git's packs before the agent acts.
func (t *Turn) lookAtPacks() {
	t.packs, t.began = map[string]workspace.Status{}, time.Now()
	for _, common := range t.common {
		dir := filepath.Join(common, "objects", "pack")
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				t.packs[filepath.Join(dir, e.Name())] = workspace.StatusOf(info)
			}
		}
	}
}

// written returns a func that reports whether an object of a repository may have been written since the turn began.
func (t *Turn) written(common string) touched {
	if t.began.IsZero() {
		return writtenSince(t.record.Began)
	}
	since := writtenSince(t.began)
	return func(name string, info fs.FileInfo) bool {
		if was, known := t.packs[filepath.Join(common, "objects", filepath.FromSlash(name))]; known {
			return was != workspace.StatusOf(info)
		}
		return since(name, info)
	}
}

// lostObjects returns the directories, as nameIn names them, in which the turn destroyed git objects.
func (t *Turn) lostObjects() (names []string) {
	for i, x := range t.before {
		for _, dir := range x.Repositories() {
			if common := filepath.Join(x.Root, filepath.FromSlash(dir)); t.wroteObjects(common) &&
				t.place.lost(common, t.record.ID, t.written(common)) {
				names = append(names, nameIn(i, t.record.Roots, path.Join(dir, "objects")))
			}
		}
	}
	return names
}

// ID returns the ID of the turn's record.
func (t *Turn) ID() string { return t.record.ID }

// Gaps returns what the snapshot before the turn does not have.
func (t *Turn) Gaps() []snapshot.Gap { return t.record.Gaps }

// Holds reports whether the snapshot before the turn can restore a file of the workspace.
func (t *Turn) Holds(name string) bool {
	f := t.before[0].Find(name)
	return f != nil && restorable(f) && f.Held()
}

// Cover returns what the snapshot before the turn can restore: nothing if more is missing than the record lists.
func (t *Turn) Cover() event.Cover {
	if len(t.record.Gaps) == mostListed {
		return event.Cover{}
	}
	c := event.Cover{Roots: t.record.Roots}
	top := t.record.Roots[0]
	if r, err := git.Open(top); err == nil && r.Common() != r.Dir() && !pathname.Within(top, r.Common()) {
		// Commands can write there. It is not restored, because it also has what other working trees did meanwhile.
		c.Gaps = append(c.Gaps, event.Gap{Path: top, Why: "it is a linked worktree, so commands can change its " +
			"repository, " + r.Common()})
	}
	for _, dir := range t.bare {
		c.Gaps = append(c.Gaps, event.Gap{Path: top, Why: "git's packs in " + dir +
			" are shared with the snapshot, and this file system does not tell when they are written"})
	}
	for i, x := range t.before {
		for j, g := range append(slices.Clone(x.Gaps), x.Unrepresented...) {
			path, f := filepath.FromSlash(g.Path), x.Find(g.Path)
			if !filepath.IsAbs(path) {
				path = filepath.Join(t.record.Roots[i], path)
			}
			c.Gaps = append(c.Gaps, event.Gap{Path: path, Why: g.Reason, Loose: j < len(x.Gaps) &&
				(f == nil || !f.Ignored())})
		}
	}
	return c
}

// Late records that the agent may have changed something before the first snapshot was complete.
func (t *Turn) Late() { t.record.Late = true }

// SetSession records the session of the agent to which the turn belongs, if it was not known at the beginning.
func (t *Turn) SetSession(session string) {
	if session != "" {
		t.record.Session = session
	}
}

// Drop deletes the record of the turn.
func (t *Turn) Drop() {
	_ = os.RemoveAll(t.place.turn(t.record.ID))
	t.over()
}

// over marks the turn as no longer under way.
func (t *Turn) over() {
	_ = os.Remove(t.place.alive(t.record.ID))
	t.release()
}

// Leave gives the turn up, as if its process had died.
func (t *Turn) Leave() { t.release() }

// release lets another process end the turn, if it has no end yet.
func (t *Turn) release() {
	if t.leases != nil {
		t.leases.close()
		t.leases = nil
	}
	if t.alive != nil {
		_ = t.alive.Unlock()
	}
}

// End takes the snapshot after the turn, which ended at the given time: a file that changed later is not restored by
// Undo unless it is asked to. A turn that changed nothing is not kept. If End fails, the turn counts as one whose
// process has died.
func (t *Turn) End(ctx context.Context, at time.Time) (Record, error) {
	defer t.release()
	if err := t.place.lock(ctx); err != nil {
		return t.record, err
	}
	defer t.place.unlock()
	return t.end(ctx, func(before, after []*snapshot.Index) {
		for _, x := range after {
			x.MarkLater(at)
		}
		t.judge(before, after)
	})
}

// end takes the second snapshot. The caller holds the lock. adjust may change the indexes before they are recorded;
// nil: it does not.
func (t *Turn) end(ctx context.Context, adjust func(before, after []*snapshot.Index)) (Record, error) {
	p, r := t.place, &t.record
	after, err := p.take(ctx, r.Roots, t.before)
	if err != nil {
		return *r, err
	}
	before := slices.Clone(t.before)
	if adjust != nil {
		adjust(before, after)
	}
	r.Ended, r.Files, r.Changed, r.Doubtful, r.Possible = time.Now().UTC(), 0, nil, 0, nil
	r.OwnOnly = t.judged
	for i := range r.Roots {
		if same, _ := snapshot.Same(before[i], after[i]); same {
			continue
		}
		count := func(path string) {
			name := nameIn(i, r.Roots, path)
			number, list := &r.Files, &r.Changed
			if _, doubted := t.doubts[name]; doubted {
				number, list = &r.Doubtful, &r.Possible
			}
			if *number++; len(*list) < mostListed {
				*list = append(*list, name)
			}
		}
		snapshot.Each(before[i], after[i], func(path string, _, _ *snapshot.File) { count(path) })
		// What is hidden may have changed.
		snapshot.EachHidden(before[i], after[i], func(path string, _ *snapshot.File) { count(path) })
	}
	if r.Kind == OfTurn {
		lost := t.lostObjects()
		r.Files, r.Changed = r.Files+len(lost), append(lost, r.Changed...)
	}
	if r.Files == 0 && r.Doubtful == 0 && r.Kind == OfTurn {
		t.Drop()
		return *r, nil
	}
	for i := range r.Roots {
		before[i], after[i] = snapshot.Trim(before[i], after[i])
	}
	if err := p.save(r.ID, "after", after); err != nil {
		return *r, err
	}
	for _, g := range gaps(after) {
		if len(r.Gaps) < mostListed && !slices.Contains(r.Gaps, g) {
			r.Gaps = append(r.Gaps, g)
		}
	}
	err = p.keepDoubts(r.ID, t.doubts)
	if err == nil {
		err = p.write(*r)
	}
	if err != nil {
		return *r, err
	}
	// Not earlier: until the record says that the turn has ended, it is compared with the whole index.
	if err := p.save(r.ID, "before", before); err != nil {
		return *r, err
	}
	t.over()
	return *r, nil
}

// nameIn returns the name by which people know a path of a root.
func nameIn(i int, roots []string, path string) string {
	if i == 0 || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(roots[i], filepath.FromSlash(path))
}

func gaps(indexes []*snapshot.Index) (all []snapshot.Gap) {
	for i, x := range indexes {
		for _, g := range append(slices.Clone(x.Gaps), x.Unrepresented...) {
			if len(all) == mostListed {
				return all
			}
			if i > 0 {
				g.Path = filepath.Join(x.Root, g.Path)
			}
			all = append(all, g)
		}
	}
	return all
}

// close ends the turns whose process has died, with a second snapshot taken now, and returns why one of them cannot be
// ended. The caller holds the lock.
func (p *place) close(ctx context.Context) (failed error) {
	for _, id := range p.open() {
		alive, err := workspace.Lock(ctx, p.alive(id), 0)
		if err != nil {
			continue
		}
		t := &Turn{place: p, alive: alive}
		t.record, err = p.read(id)
		t.record.ID = id
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.FileMissing):
			t.Drop() // it died before the first snapshot was complete
			continue
		case err != nil, !t.record.Ended.IsZero():
			t.over()
			continue
		case t.record.Kind != OfTurn && exists(filepath.Join(p.dir, journalFile)): // the next Undo completes it
			t.release()
			continue
		case t.record.Kind != OfTurn: // it died before it restored anything
			t.Drop()
			continue
		}
		t.record.Abandoned = true
		if t.before, err = p.load(id, "before", len(t.record.Roots)); err == nil {
			t.seen = p.calls(ctx, t.record)
			_, err = t.end(ctx, t.judge)
		} else { // it cannot be undone, which Undo reports
			t.record.Ended = time.Now().UTC()
			if err = p.write(t.record); err == nil {
				t.over()
			}
		}
		if err != nil {
			t.release()
			failed = err
		}
	}
	return failed
}
