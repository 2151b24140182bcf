package run

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/touch"
)

// Doubt is a path that differs, perhaps because of the run.
type Doubt struct {
	Path   string          `json:"path"`
	Status snapshot.Status `json:"status"`
	Why    string          `json:"why"`
}

// whileWaiting is the reason for a path of the run that differs from what the run had left when it began to wait.
const whileWaiting = "somebody else changed it while the run waited for an answer"

const (
	restFile  = "rested" // the index of the workspace when the run began to wait
	firstFile = "before" // what the run has changed, before and after
	lastFile  = "after"
)

// sight records what is known about who changes the workspace while the run works.
type sight struct {
	fork func() func(path string) bool // see Owner.Fork; nil: it works in no fork
	log  *touch.Log
	seen *touch.Window
	base *snapshot.Index // when the run began to work, or continued
	own  map[string]bool // what it had changed before it waited
	last *snapshot.Index // at the last look
}

// look begins to watch what the agent writes. In a fork, it counts only what the fork itself has written, because
// changes of others in the workspace may show there.
func (r *Run) look() {
	if r.sight.log == nil {
		r.sight.log = touch.New()
	}
	if r.sight.seen != nil {
		r.sight.seen.Close()
	}
	r.sight.seen = r.sight.log.Open()
	if r.Fork != "" {
		wrote := func(string) bool { return true }
		if r.sight.fork != nil {
			wrote = r.sight.fork()
		}
		r.sight.seen = touch.Only(wrote)
	}
}

// goOn takes a new index of the workspace for a run that waited, so that changes of others meanwhile do not count.
func (r *Run) goOn(ctx context.Context, start *snapshot.Index) error {
	path := filepath.Join(r.Path(), restFile)
	rested, err := snapshot.LoadFile(path)
	if err != nil { // an earlier owner died while it worked, so what it saw is lost
		r.sight.base = start
		r.sight.log.Unseen(touch.ReasonUnwatched)
		return nil
	}
	now, err := r.take(ctx, rested)
	if err != nil {
		return err
	}
	first, last, err := r.store.indexes(r.ID)
	if err != nil {
		return err
	}
	found := snapshot.Diff(first, last)
	r.sight.base, r.sight.own = now, map[string]bool{}
	for _, c := range found.Files {
		r.sight.own[c.Path] = true
	}
	snapshot.Each(first, last, func(name string, was, is *snapshot.File) {
		if cmp.Or(is, was).Ignored() { // Diff only counts them
			r.sight.own[name] = true
		}
	})
	snapshot.Each(rested, now, func(name string, _, is *snapshot.File) {
		if !r.sight.own[name] {
			return
		}
		delete(r.sight.own, name)
		if !snapshot.SameFile(start.Find(name), is) {
			r.doubt(found, name)
		}
	})
	mine := func(name string) bool { return r.sight.own[name] }
	start = now.Without(mine).Union(start.Only(mine))
	if err := start.SaveFile(filepath.Join(r.Path(), startFile)); err != nil {
		return err
	}
	return os.Remove(path)
}

// doubt records a path that the run had changed and somebody else changed while it waited.
func (r *Run) doubt(found *snapshot.Changes, name string) {
	i := slices.IndexFunc(found.Files, func(c snapshot.Change) bool { return c.Path == name })
	if i >= 0 && found.Files[i].Status != snapshot.Git {
		r.Doubts = append(r.Doubts, Doubt{name, found.Files[i].Status, whileWaiting})
	}
}

// pause keeps the index of a run that begins to wait.
func (r *Run) pause() error {
	if r.sight.last == nil {
		return nil
	}
	return r.sight.last.SaveFile(filepath.Join(r.Path(), restFile))
}

// judge returns both indexes reduced to what the run has changed, and the paths that it may have changed.
func (r *Run) judge(before, after *snapshot.Index) (first, last *snapshot.Index, doubts []Doubt) {
	others, unsure := map[string]bool{}, map[string]string{}
	base := r.sight.base
	if base == nil {
		base = before
	}
	if r.sight.seen != nil {
		r.sight.seen.CatchUp()
	}
	contents := snapshot.OpenContents(r.store.contents(r.ID), func(dir string) string { return dir })
	defer contents.Close()
	whose := snapshot.ChangedBy(r.sight.seen, base, after, contents, false)
	snapshot.Each(before, after, func(name string, _, is *snapshot.File) {
		if r.sight.own[name] && snapshot.SameFile(base.Find(name), is) {
			return
		}
		v := whose(name)
		if r.sight.own[name] && v.By == touch.Other {
			v = touch.Verdict{By: touch.Unknown, Why: touch.ReasonBoth}
		}
		if v.By != touch.Agent {
			others[name] = true
		}
		if v.By == touch.Unknown {
			unsure[name] = v.Why
		}
	})
	doubts = slices.Clone(r.Doubts)
	for _, c := range snapshot.Diff(before, after).Files {
		if why := unsure[c.Path]; why != "" {
			doubts = append(doubts, Doubt{c.Path, c.Status, why})
		}
	}
	slices.SortFunc(doubts, func(a, b Doubt) int { return strings.Compare(a.Path, b.Path) })
	if len(others) == 0 {
		return before, after, doubts
	}
	drop := func(name string) bool { return others[name] }
	return before.Without(drop), after.Without(drop), doubts
}
