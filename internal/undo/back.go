package undo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/tree"
	"omniagent/internal/workspace"
)

// Wish says what is to be taken back.
type Wish struct {
	Dir     string // in the workspace
	ID      string // of the record, or how it begins; empty: the last turn that is not taken back
	Session string // only a turn of this session
	Run     string // only a turn of this run
	Redo    bool   // take back the last undo instead
	TakeOld bool   // also overwrite what was changed after the turn
	Dry     bool   // only say what would be done
}

// Outcome is what came of it.
type Outcome struct {
	Of       Record   // what was taken back
	By       Record   // the record of the restore; empty with Wish.Dry
	Restored []string // paths
	Kept     []Kept   // paths that are not as they were before the turn
	Resumed  bool     // an earlier restore, whose process had died, was completed; nothing else was done
}

// journal says of a restore that is under way what was asked for.
type journal struct {
	ID      string `json:"id"` // of the record of the restore
	Of      string `json:"of"`
	TakeOld bool   `json:"take_old"`
}

// Back takes a turn back.
func (s Store) Back(ctx context.Context, w Wish) (out Outcome, err error) {
	p, err := s.place(w.Dir)
	if err != nil {
		return out, err
	}
	if records, err := p.list(); err == nil && len(records) == 0 {
		out.Of, err = choose(nil, w, p.root)
		return out, err
	}
	if w.Dry {
		return p.rehearse(ctx, w)
	}
	p.settle(ctx)
	if err := p.lock(ctx); err != nil {
		return out, err
	}
	defer p.unlock()
	p.close(ctx)
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
		if underWay(r) {
			return out, p.busy(r)
		}
	}
	if out.Of, err = choose(records, w, p.root); err != nil {
		return out, err
	}
	kind := OfUndo
	if out.Of.Kind == OfUndo {
		kind = OfRedo
	}
	origin := Origin{Dir: w.Dir, Session: out.Of.Session, Turn: out.Of.Turn, Agent: out.Of.Agent, Run: out.Of.Run}
	t, err := p.begin(ctx, origin, kind)
	if err != nil {
		return out, err
	}
	t.record.Of = out.Of.ID
	if err = p.write(t.record); err == nil {
		err = writeJSON(filepath.Join(p.dir, journalFile), journal{t.record.ID, out.Of.ID, w.TakeOld})
	}
	if err != nil {
		t.Drop()
		return out, err
	}
	err = p.restore(ctx, t, &out, how{takeOld: w.TakeOld}, t.before)
	return out, err
}

func underWay(r Record) bool { return r.Ended.IsZero() && r.Kind == OfTurn }

func (p *place) busy(r Record) error {
	return fault.New(fault.Conflicting, "an agent is at work in %s", p.root).
		With("session_id", r.Session).Hint("wait for the end of its turn, or interrupt it")
}

// interrupted returns what a restore was asked for whose process has died.
func (p *place) interrupted() (j journal, there bool, err error) {
	err = readJSON(filepath.Join(p.dir, journalFile), &j)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.FileMissing) {
		return j, false, nil
	}
	return j, err == nil, err
}

// rehearse says what Back would do. It writes nothing, not even a lock.
func (p *place) rehearse(ctx context.Context, w Wish) (out Outcome, err error) {
	records, err := p.list()
	if err != nil {
		return out, err
	}
	abandoned := map[string]bool{} // their second snapshot is the state of now
	for i, r := range records {
		if !underWay(r) {
			continue
		}
		if _, held := workspace.HolderOf(p.alive(r.ID)); held {
			return out, p.busy(r)
		}
		records[i].Ended, records[i].Abandoned, abandoned[r.ID] = time.Now().UTC(), true, true
	}
	j, interrupted, err := p.interrupted()
	switch {
	case err != nil:
		return out, err
	case interrupted:
		out.Resumed, w.TakeOld = true, j.TakeOld
		out.Of, err = p.read(j.Of)
	default:
		out.Of, err = choose(records, w, p.root)
	}
	if err != nil {
		return out, err
	}
	now, err := p.survey(ctx, out.Of.Roots, nil, nil)
	if err != nil {
		return out, err
	}
	var after []*tree.Index
	if abandoned[out.Of.ID] {
		after = now
	} else if after, err = p.load(out.Of.ID, "after", len(out.Of.Roots)); err != nil {
		return out, err
	}
	o := how{takeOld: w.TakeOld, resumed: out.Resumed}
	err = p.each(&out, o, after, now, func(c *plan, _ *tree.Index, _ *tree.Contents) (names []string, _ error) {
		for _, a := range c.actions {
			names = append(names, a.path)
		}
		return names, nil
	})
	return out, err
}

// settleTime is how long an undo waits for a turn that is about to end.
const settleTime = 2 * time.Second

// settle waits a moment for the second snapshot of a turn: an agent's last words come before it.
func (p *place) settle(ctx context.Context) {
	for _, id := range p.open() {
		if alive, err := workspace.Lock(ctx, p.alive(id), settleTime); err == nil {
			_ = alive.Unlock()
		}
	}
}

// resume completes a restore whose process has died.
func (p *place) resume(ctx context.Context, j journal) (out Outcome, err error) {
	out.Resumed = true
	if out.Of, err = p.read(j.Of); err != nil {
		return out, err
	}
	r, err := p.read(j.ID)
	if err != nil {
		return out, err
	}
	if !r.Ended.IsZero() { // it died after the restore, and what is left of its indexes is for Back only
		out.By = r
		return out, p.conclude(&out)
	}
	t := &Turn{place: p, record: r}
	if t.before, err = p.load(r.ID, "before", len(r.Roots)); err != nil {
		return out, err
	}
	if t.alive, err = workspace.Lock(ctx, p.alive(r.ID), lockWait); err != nil {
		return out, err
	}
	now, err := p.take(ctx, out.Of.Roots, nil)
	if err != nil {
		return out, err
	}
	for i := range min(len(now), len(t.before)) { // directories that were opened for writing
		tree.Each(t.before[i], now[i], func(path string, old, is *tree.File) {
			if old != nil && is != nil && old.Mode.IsDir() && is.Mode.IsDir() {
				_ = os.Chmod(filepath.Join(now[i].Root, filepath.FromSlash(path)), old.Perm())
			}
		})
	}
	err = p.restore(ctx, t, &out, how{takeOld: j.TakeOld, resumed: true}, now)
	return out, err
}

// restore makes the workspace what it was before out.Of, and records that.
func (p *place) restore(ctx context.Context, t *Turn, out *Outcome, o how, now []*tree.Index) error {
	after, err := p.load(out.Of.ID, "after", len(out.Of.Roots))
	if err != nil {
		return err
	}
	err = p.each(out, o, after, now, func(c *plan, before *tree.Index, contents *tree.Contents) ([]string, error) {
		return p.carryOut(c, before, contents, out.Of.ID)
	})
	if err != nil {
		return err
	}
	if out.By, err = t.end(ctx, time.Time{}); err != nil {
		return err
	}
	return p.conclude(out)
}

// conclude records that out.Of is taken back.
func (p *place) conclude(out *Outcome) error {
	out.Of.Back = out.By.ID
	if err := p.write(out.Of); err != nil {
		return err
	}
	if out.Of.Kind == OfUndo { // what it had taken back counts again
		if first, err := p.read(out.Of.Of); err == nil {
			first.Back = ""
			if err := p.write(first); err != nil {
				return err
			}
		}
	}
	return os.Remove(filepath.Join(p.dir, journalFile))
}

// each plans for every root of out.Of, and has the plans carried out.
func (p *place) each(out *Outcome, o how, after, now []*tree.Index,
	do func(*plan, *tree.Index, *tree.Contents) ([]string, error),
) error {
	before, err := p.load(out.Of.ID, "before", len(out.Of.Roots))
	if err != nil {
		return err
	}
	contents := tree.OpenContents(p.contents(), p.objectsOf)
	defer contents.Close()
	for i, root := range out.Of.Roots {
		at := slices.IndexFunc(now, func(x *tree.Index) bool { return x.Root == root })
		if at < 0 {
			out.Kept = append(out.Kept, Kept{root, "the repository is not there any more"})
			continue
		}
		o.gitDir = i > 0
		c := compare(before[i], after[i], now[at], o, contents)
		restored, err := do(c, before[i], contents)
		if err != nil {
			return err
		}
		for _, name := range restored {
			out.Restored = append(out.Restored, nameIn(i, out.Of.Roots, name))
		}
		for _, k := range c.kept {
			out.Kept = append(out.Kept, Kept{nameIn(i, out.Of.Roots, k.Path), k.Reason})
		}
	}
	return nil
}

// objectsOf returns where the objects of a repository are pinned. The repository may be a working tree of it.
func (p *place) objectsOf(dir string) string {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if pinned := p.pinned(at); exists(pinned) {
			return pinned
		}
	}
	return dir
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// choose finds the record that is meant.
func choose(records []Record, w Wish, root string) (Record, error) {
	for _, r := range records {
		fits := w.ID == "" || strings.HasPrefix(r.ID, w.ID)
		fits = fits && (w.Session == "" || r.Session == w.Session) && (w.Run == "" || r.Run == w.Run)
		if !fits || r.Ended.IsZero() {
			continue
		}
		switch {
		case w.ID != "" && r.Back != "":
			return r, fault.New(fault.Conflicting, "%s is taken back already", r.ID).
				With("by", r.Back).Hint("omniagent redo takes that back")
		case w.ID != "":
			return r, nil
		case r.Back != "":
		case w.Redo && r.Kind == OfUndo, !w.Redo && r.Kind != OfUndo && r.Kind != OfRedo:
			return r, nil
		}
	}
	if w.Redo {
		return Record{}, fault.New(fault.NotFoundCode, "nothing was taken back in %s that could be done again", root).
			Hint("omniagent undo --list")
	}
	return Record{}, fault.New(fault.NotFoundCode, "there is no turn to take back in %s", root).
		Hint("omniagent undo --list")
}
