package undo

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// Request says which turn to take back, and how.
type Request struct {
	Dir     string // in the workspace
	ID      string // of the record, or its beginning; empty: the last turn that was not undone
	Session string // only a turn of this session
	Turn    int64  // only the turn of the session with this number; 0: any
	Run     string // only a turn of this run
	Fork    string // with Run: also a turn that brought the changes of this fork home
	Redo    bool   // take back the last undo instead
	TakeOld bool   // also overwrite what was changed after the turn; with ID, also of a turn that was undone before
	// TakeAll also restores what the turn has perhaps not changed.
	TakeAll bool
	// Overwrite are paths, as in Kept, that are restored although they were changed after the turn, or perhaps not by
	// it.
	Overwrite []string
	DryRun    bool // only say what would be done
}

// Fits reports whether a request names a record. A request without ID, session and run names all.
func (q Request) Fits(r Record) bool {
	return strings.HasPrefix(r.ID, q.ID) && (q.Session == "" || r.Session == q.Session) &&
		(q.Turn == 0 || r.Turn == q.Turn) && (q.Run == "" || r.Run == q.Run || q.Fork != "" && r.Fork == q.Fork)
}

// Outcome is the result of a Request.
type Outcome struct {
	Turn        Record        // what was taken back
	Undo        Record        // the record of the restore; empty with Request.DryRun
	Restored    []string      // paths that are as they were before the turn
	Removed     []string      // those of them that did not exist then
	NotRestored []NotRestored // paths that were not restored
	Moved       []Moved       // branches that the restore moved from where the turn had not left them
	Resumed     bool          // an earlier restore, whose process had died, was completed; nothing else was done
}

// Moved is a branch that a restore moved from where the turn had not left it.
type Moved struct {
	Branch   string
	From, To string // hashes; To is empty where there was no such branch
	path     string // relative to the root
}

// Undo undoes a turn, or an undo. If an earlier restore was interrupted, it completes that instead.
func (s Store) Undo(ctx context.Context, q Request) (Outcome, error) {
	places, err := s.places(q.Dir)
	if err != nil {
		return Outcome{}, err
	}
	// The turn is chosen before waiting for the lock, so that it is not the one that another call leaves as the last.
	meant, err := find(places, q)
	switch {
	case q.DryRun:
		if err != nil {
			return Outcome{}, err
		}
		return meant.place.rehearse(ctx, q, meant)
	case err != nil && meant.busy == nil:
		return Outcome{}, err
	case err != nil:
		meant.busy.settle(ctx)
		if meant, err = find(places, q); err != nil {
			return Outcome{}, err
		}
	}
	return meant.place.undo(ctx, q, meant.turn)
}

// undo is Undo in one workspace. meant is the turn that was chosen before the lock was taken.
func (p *place) undo(ctx context.Context, q Request, meant Record) (out Outcome, err error) {
	if err := p.lock(ctx); err != nil {
		return out, err
	}
	defer p.unlock()
	unended := p.close(ctx)
	if r, err := p.read(meant.ID); err == nil && meant.UndoneBy == "" && r.UndoneBy != "" {
		return out, fault.New(fault.Conflicting, "%s was taken back by another undo just now", r.ID).
			With("by", r.UndoneBy).Hint("omniagent undo --list")
	}
	j, interrupted, err := p.interrupted()
	if err != nil {
		return out, err
	}
	if interrupted {
		return p.resume(ctx, j)
	}
	records, err := p.list()
	if err != nil {
		return out, err
	}
	for _, r := range records {
		switch {
		case !underWay(r):
		case unended != nil && p.died(r):
			return out, fault.New(fault.Conflicting,
				"the process of the turn %s died, and the turn cannot be ended: %v", r.ID, unended).Because(unended).
				Hint("omniagent snapshots delete %s --confirm-destructive forgets it", r.ID)
		default:
			return out, p.busy(r)
		}
	}
	if other, r := p.neighbour(); other != nil {
		return out, other.busy(r)
	}
	if out.Turn, err = choose(records, q, p.root); err != nil {
		return out, err
	}
	then, err := p.snapshots(out.Turn)
	if err != nil {
		return out, err
	}
	kind := OfUndo
	if out.Turn.Kind == OfUndo {
		kind = OfRedo
	}
	origin := out.Turn.Origin
	origin.Dir = q.Dir
	t, err := p.begin(ctx, origin, kind, out.Turn.Roots)
	if err != nil {
		return out, err
	}
	defer t.release()
	t.record.Undoes = out.Turn.ID
	j = journal{t.record.ID, out.Turn.ID, q.TakeOld, q.TakeAll, q.Overwrite}
	if err = p.write(t.record); err == nil {
		err = writeJSON(filepath.Join(p.dir, journalFile), j)
	}
	if err != nil {
		t.Drop()
		return out, err
	}
	err = p.restore(ctx, t, &out, then, j.now(t.before), j.staging())
	return out, err
}

func underWay(r Record) bool { return r.Ended.IsZero() && r.Kind == OfTurn }

// died reports whether the process of a turn that is under way has ended.
func (p *place) died(r Record) bool {
	_, held := workspace.HolderOf(p.alive(r.ID))
	return !held
}

// neighbour returns a workspace inside or around this one in which a turn is under way, or nil.
func (p *place) neighbour() (*place, Record) {
	all, _ := p.store.all() // it was listed before
	for _, other := range all {
		for _, id := range other.open() {
			r, err := other.read(id)
			if other.dir == p.dir || err != nil || len(r.Roots) == 0 || !underWay(r) || other.died(r) {
				continue
			}
			if other.root = r.Roots[0]; pathname.Within(p.root, other.root) || pathname.Within(other.root, p.root) {
				return other, r
			}
		}
	}
	return nil, Record{}
}

// busy returns the error for a turn that is not over. An agent's own screen is one turn until it is closed.
func (p *place) busy(r Record) error {
	f := fault.New(fault.Conflicting, "the turn %s in %s is not over", r.ID, p.root).With("session_id", r.Session)
	if by, held := workspace.HolderOf(p.alive(r.ID)); held && by.PID > 0 {
		f.Message += fmt.Sprintf(": its agent still runs, under process %d", by.PID)
		f.With("pid", by.PID)
	}
	if r.Run != "" {
		return f.Hint("wait for its end, or: omniagent runs cancel %s", r.Run)
	}
	return f.Hint("wait for its end, interrupt it, or close the agent's own screen, which is one turn until then")
}

// found is the turn that a request names, and its workspace.
type found struct {
	place   *place
	turn    Record
	journal *journal // of a restore that has to be completed first
	died    bool     // the turn has no second snapshot
	busy    *place   // where a turn is under way
}

// rehearse returns what Undo would do. It writes nothing.
func (p *place) rehearse(ctx context.Context, q Request, f found) (out Outcome, err error) {
	out.Turn = f.turn
	o := restoreOptions{
		takeOld: q.TakeOld, takeAll: q.TakeAll, overwrite: q.Overwrite, dryRun: true,
		limit: cmp.Or(p.store.FileLimit, fileLimit),
	}
	is := now{restoreOptions: o}
	if f.journal != nil {
		is = f.journal.now(nil)
		out.Resumed, is.dryRun, is.limit, is.resumed = true, o.dryRun, o.limit, true
		if r, err := p.read(f.journal.ID); err == nil {
			is.starts, _ = p.load(r.ID, "before", len(r.Roots))
		}
	}
	if is.indexes, err = p.survey(ctx, out.Turn.Roots, nil, nil); err != nil {
		return out, err
	}
	var then snapshots
	if !f.died {
		then, err = p.snapshots(out.Turn)
	} else if then.before, err = p.load(out.Turn.ID, "before", len(out.Turn.Roots)); err == nil {
		then = p.foresee(ctx, &out.Turn, then.before, is.indexes)
	}
	if err != nil {
		return out, err
	}
	p.each(&out, then, is, func(c *plan, _ *snapshot.Index, _ *snapshot.Contents) (names []string) {
		for _, a := range c.actions {
			names = append(names, a.path)
		}
		return names
	})
	return out, nil
}

// snapshots are the indexes before and after a turn.
type snapshots struct {
	before, after []*snapshot.Index
	doubts        doubts // nil: the record of the turn has them
}

func (p *place) snapshots(r Record) (s snapshots, err error) {
	if s.before, err = p.load(r.ID, "before", len(r.Roots)); err == nil {
		s.after, err = p.load(r.ID, "after", len(r.Roots))
	}
	if err != nil {
		err = damagedTurn(r.ID, err)
	}
	return s, err
}

func damagedTurn(id string, err error) error {
	return fault.New(fault.Unsafe, "%s cannot be taken back: its snapshot is damaged: %v", id, err).
		Hint("omniagent snapshots delete %s --confirm-destructive", id).Because(err)
}

// settleTime is how long an undo waits for a turn that is about to end.
const settleTime = 2 * time.Second

// settle waits a moment for the second snapshot of a turn: people may read an agent's last words before it is complete.
func (p *place) settle(ctx context.Context) {
	for _, id := range p.open() {
		if alive, err := workspace.Lock(ctx, p.alive(id), settleTime); err == nil {
			_ = alive.Unlock()
		}
	}
}

// now is the state of the workspace when a restore begins.
type now struct {
	restoreOptions
	indexes []*snapshot.Index
	starts  []*snapshot.Index // when a restore began whose process has died
}

// restore makes the workspace what it was before out.Turn, and records that.
func (p *place) restore(ctx context.Context, t *Turn, out *Outcome, then snapshots, is now, staging string) error {
	if err := p.repair(out.Turn.ID); err != nil {
		return err
	}
	plans := p.each(out, then, is, func(c *plan, before *snapshot.Index, contents *snapshot.Contents) []string {
		return p.carryOut(c, before, contents, staging)
	})
	if len(out.Restored) == 0 && len(out.NotRestored) > 0 && !out.Resumed { // the turn is not undone
		t.Drop()
		return os.Remove(filepath.Join(p.dir, journalFile))
	}
	var err error
	out.Undo, err = t.end(ctx, func(before, after []*snapshot.Index) {
		for i, x := range after[:min(len(before), len(after))] {
			drop := foreignChanges(before[i], x, then, plans[x.Root])
			before[i], after[i] = before[i].Without(drop), x.Without(drop)
		}
	})
	if err != nil {
		return err
	}
	return p.conclude(out)
}

// foreignChanges returns a func that reports whether a path changed during a restore, but not because of it. The record
// of the restore leaves such paths out. c is the plan of the restore.
func foreignChanges(start, end *snapshot.Index, then snapshots, c *plan) func(path string) bool {
	all := map[string]bool{}
	at := slices.IndexFunc(then.before, func(x *snapshot.Index) bool { return x.Root == end.Root })
	snapshot.Each(start, end, func(path string, _, is *snapshot.File) {
		if c == nil || at < 0 || c.keepsStateOf(path) {
			all[path] = true
			return
		}
		was := then.before[at].Find(path)
		all[path] = was == nil && then.after[at].Find(path) == nil || !snapshot.SameFile(was, is)
	})
	acted := map[string]bool{}
	if c != nil {
		for _, a := range c.actions {
			acted[a.path] = true
		}
	}
	snapshot.EachHidden(start, end, func(path string, _ *snapshot.File) { all[path] = !acted[path] })
	return func(path string) bool { return all[path] }
}

// conclude records that out.Turn is undone.
func (p *place) conclude(out *Outcome) error {
	out.Turn.UndoneBy = out.Undo.ID
	if err := p.write(out.Turn); err != nil {
		return err
	}
	for r := out.Turn; r.Undoes != ""; { // what it had undone may count again, and so on
		first, err := p.read(r.Undoes)
		if err != nil {
			break // it was deleted
		}
		if first.UndoneBy, err = p.takenBackBy(first.ID); err == nil {
			err = p.write(first)
		}
		if err != nil {
			return err
		}
		r = first
	}
	return os.Remove(filepath.Join(p.dir, journalFile))
}

// takenBackBy returns the newest record that undid another one and is not undone itself, or "".
func (p *place) takenBackBy(id string) (string, error) {
	records, err := p.list()
	for _, r := range records {
		if r.Undoes == id && r.UndoneBy == "" {
			return r.ID, err
		}
	}
	return "", err
}

// each makes a plan for every root of out.Turn, calls do with it, and adds the result to out. It returns the plans by
// root.
func (p *place) each(out *Outcome, then snapshots, is now,
	do func(*plan, *snapshot.Index, *snapshot.Contents) (restored []string),
) map[string]*plan {
	contents := snapshot.OpenContents(p.contents(), p.objectsOf)
	defer contents.Close()
	plans := map[string]*plan{}
	unsure, err := then.doubts, error(nil)
	if unsure == nil {
		unsure, err = p.doubtsOf(out.Turn.ID)
	}
	var others neighbours
	if len(unsure) > 0 || out.Turn.FromCalls {
		others = p.besides(out.Turn)
	}
	for i, root := range out.Turn.Roots {
		atRoot := func(x *snapshot.Index) bool { return x.Root == root }
		at := slices.IndexFunc(is.indexes, atRoot)
		if at < 0 {
			gone := NotRestored{Path: root, Reason: "the repository is not there any more"}
			out.NotRestored = append(out.NotRestored, gone)
			continue
		}
		o := is.restoreOptions
		o.workspace = out.Turn.Roots[0]
		o.doubt = func(path string) (why string, foreign bool) {
			if err != nil {
				return fault.Bare(err).Error(), false
			}
			name := nameIn(i, out.Turn.Roots, path)
			return others.shared(unsure[name], name)
		}
		o.gitDir, o.name = i > 0, func(path string) string { return nameIn(i, out.Turn.Roots, path) }
		if start := slices.IndexFunc(is.starts, atRoot); start >= 0 {
			o.start = is.starts[start]
		}
		o.lacking = func(gitDir string, actions []action) (objects, error) {
			return p.lacking(root, gitDir, out.Turn.ID, actions)
		}
		o.lost = func(gitDir string) bool {
			common := filepath.Join(root, filepath.FromSlash(gitDir))
			return p.lost(common, out.Turn.ID, writtenSince(out.Turn.Began))
		}
		c := compare(then.before[i], then.after[i], is.indexes[at], o, contents)
		plans[root] = c
		restored := do(c, then.before[i], contents)
		for _, m := range c.moved {
			if slices.Contains(restored, m.path) {
				out.Moved = append(out.Moved, m)
			}
		}
		for _, name := range restored {
			shown := nameIn(i, out.Turn.Roots, name)
			out.Restored = append(out.Restored, shown)
			if then.before[i].Find(name) == nil {
				out.Removed = append(out.Removed, shown)
			}
		}
		for _, o := range c.objects {
			if o.alone && !c.keptPaths[o.gitDir] {
				out.Restored = append(out.Restored, nameIn(i, out.Turn.Roots, path.Join(o.gitDir, "objects")))
			}
		}
		for _, k := range c.kept {
			k.Path = nameIn(i, out.Turn.Roots, k.Path)
			out.NotRestored = append(out.NotRestored, k)
		}
	}
	return plans
}

// objectsOf returns the directory in which the objects of a repository are pinned. dir may be that of a linked working
// tree.
func (p *place) objectsOf(dir string) string {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if pinned := p.pinned(at); exists(pinned) {
			return pinned
		}
	}
	return dir
}
