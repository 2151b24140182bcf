package undo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// doubtsFile lists the paths that the agent has perhaps not changed in a turn, by their quoted names, with the reasons.
const doubtsFile = "doubts.json"

// doubts are those paths, as nameIn names them, with the reasons.
type doubts map[string]string

// Watch sets what knows which paths the agent writes. Without it, every change is perhaps not the agent's.
func (t *Turn) Watch(w *touch.Window) { t.seen = w }

// calls returns what the recorded calls of a turn whose process died say that they changed, or nil. What they do not
// explain may have been changed by others since, because nothing says when the turn ended.
func (p *place) calls(ctx context.Context, r Record) *touch.Window {
	if p.store.Calls == nil {
		return nil
	}
	return p.store.Calls(ctx, r)
}

// foresee returns the snapshots of a turn whose process died, as close would record them now. after are indexes without
// contents.
func (p *place) foresee(ctx context.Context, r *Record, before, after []*snapshot.Index) snapshots {
	t := &Turn{place: p, record: *r, seen: p.calls(ctx, *r), live: true}
	before, after = slices.Clone(before), slices.Clone(after)
	t.judge(before, after)
	*r = t.record
	return snapshots{before, after, t.doubts}
}

// judge removes from the indexes what the agent has not changed, and records what it has perhaps not changed.
func (t *Turn) judge(before, after []*snapshot.Index) {
	t.judged, t.doubts = true, doubts{}
	t.record.FromCalls, t.record.WithinTurn = t.seen != nil && !t.seen.Exact(), t.seen != nil && t.seen.Under()
	contents := snapshot.OpenContents(t.place.contents(), t.place.objectsOf)
	defer contents.Close()
	for i := range before {
		dropped := map[string]bool{}
		whose := snapshot.ChangedBy(t.seen, before[i], after[i], contents, t.live)
		snapshot.Each(before[i], after[i], func(path string, _, _ *snapshot.File) {
			v := whose(path)
			switch v.By {
			case touch.Other:
				dropped[path] = true
			case touch.Unknown:
				t.doubts[nameIn(i, t.record.Roots, path)] = v.Why
			}
		})
		if len(dropped) > 0 {
			drop := func(path string) bool { return dropped[path] }
			before[i], after[i] = before[i].Without(drop), after[i].Without(drop)
		}
	}
}

// wroteObjects reports whether the agent may have changed the objects of a repository.
func (t *Turn) wroteObjects(common string) bool {
	if t.seen == nil {
		return true
	}
	return !t.seen.Exact() || t.seen.WroteBeneath(filepath.Join(common, "objects"))
}

// keepDoubts writes the doubts of a turn.
func (p *place) keepDoubts(id string, d doubts) error {
	if len(d) == 0 {
		return nil
	}
	quoted := make(map[string]string, len(d))
	for name, why := range d {
		quoted[strconv.Quote(name)] = why
	}
	return writeJSON(filepath.Join(p.turn(id), doubtsFile), quoted)
}

// doubtsOf reads the doubts of a turn.
func (p *place) doubtsOf(id string) (doubts, error) {
	path := filepath.Join(p.turn(id), doubtsFile)
	if _, err := os.Lstat(path); workspace.Absent(err) {
		return nil, nil
	}
	var quoted map[string]string
	if err := workspace.ReadJSON(path, 1<<30, &quoted); err != nil {
		return nil, err
	}
	d := make(doubts, len(quoted))
	for name, why := range quoted {
		if plain, err := strconv.Unquote(name); err == nil {
			d[plain] = why
		}
	}
	return d, nil
}

// neighbours are the turns that ran at the same time, by the paths that they changed, as people know them.
type neighbours struct {
	certain map[string]string
	// said are those that certainly changed a path too, or whose calls are about it, if only calls say that this turn
	// did. Turns of agents of which one works for the other are left out: both records have the changes.
	said map[string]string
}

// besides returns the neighbours of a turn.
func (p *place) besides(r Record) neighbours {
	records, _ := p.list() // it was listed before
	n := neighbours{map[string]string{}, map[string]string{}}
	for _, other := range records {
		if other.ID == r.ID || other.Kind != OfTurn || other.Damaged || !other.OwnOnly || !overlap(r, other) {
			continue
		}
		unsure, err := p.doubtsOf(other.ID)
		then, errThen := p.snapshots(other)
		if err != nil || errThen != nil {
			continue
		}
		named := "the turn " + other.ID
		if other.Run != "" {
			named = "the run " + other.Run
		}
		one := r.WithinTurn && within(r, other) || other.WithinTurn && within(other, r)
		for i := range other.Roots {
			snapshot.Each(then.before[i], then.after[i], func(path string, _, _ *snapshot.File) {
				name := nameIn(i, other.Roots, path)
				why, doubted := unsure[name]
				if !doubted {
					n.certain[name] = named
				}
				said := !doubted ||
					why == touch.ReasonBoth || why == touch.ReasonUnexplained || why == touch.ReasonAmbiguous
				if r.FromCalls && !one && said {
					n.said[name] = named
				}
			})
		}
	}
	return n
}

// shared returns why it is not certain that the turn changed a path. foreign means that only another turn changed it:
// that one certainly did, and nothing saw this one write it.
func (n neighbours) shared(why, name string) (reason string, foreign bool) {
	certain, said := n.certain[name], n.said[name]
	switch {
	case why == "" && said != "":
		return touch.ReasonBoth + ", in " + said, false
	case why == "" || certain == "":
		return why, false
	case why == touch.ReasonBoth:
		return why + ", in " + certain, false
	}
	return why, true
}

// within reports whether a turn ran while another one did.
func within(a, b Record) bool { return !a.Began.Before(b.Began) && !a.Ended.After(b.Ended) }

func overlap(a, b Record) bool {
	return !a.Ended.IsZero() && !b.Ended.IsZero() && a.Began.Before(b.Ended) && b.Began.Before(a.Ended)
}
