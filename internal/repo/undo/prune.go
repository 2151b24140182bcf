package undo

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// Delete forgets the turns of all workspaces that want selects, and what only they needed. It skips turns that are
// under way. It returns the deleted turns, and how many bytes that freed.
func (s Store) Delete(ctx context.Context, want func(Record) bool) (deleted []Record, freed int64, err error) {
	places, err := s.all()
	if err != nil {
		return nil, 0, err
	}
	for _, p := range places {
		some, bytes, failed := p.forget(ctx, want)
		deleted, freed, err = append(deleted, some...), freed+bytes, cmp.Or(err, failed)
	}
	return deleted, freed, err
}

// Surplus returns the turns that are older than an age, and the oldest ones beyond a budget of bytes.
func (s Store) Surplus(age time.Duration, budget int64) ([]Record, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	size := s.Size()
	over := size - budget
	var surplus []Record
	for _, r := range slices.Backward(all) {
		if r.Ended.IsZero() || over <= 0 && time.Since(r.Ended) < age {
			continue
		}
		surplus = append(surplus, r)
		if over > 0 {
			over -= size / int64(len(all)) // an even share: what a turn alone needs is known only when it is gone
		}
	}
	return surplus, nil
}

// Size returns how many bytes the snapshots take. What they share with a repository by hard links is not counted.
func (s Store) Size() int64 { return size(s.Dir) }

func size(dir string) (bytes int64) {
	pins := filepath.FromSlash("/git/")
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		n := int64(max(workspace.Links(info), 1)) //nolint:gosec // the names of a file
		if n == 1 || !strings.Contains(strings.TrimPrefix(path, dir), pins) {
			bytes += info.Size() / n // turns share indexes
		}
		return nil
	})
	return bytes
}

// forget is Delete for one workspace.
func (p *place) forget(ctx context.Context, want func(Record) bool) (deleted []Record, freed int64, err error) {
	if err := p.lock(ctx); err != nil {
		return nil, 0, err
	}
	defer p.unlock()
	records, err := p.list()
	if err != nil {
		return nil, 0, err
	}
	doomed := slices.DeleteFunc(slices.Clone(records), func(r Record) bool {
		return r.Ended.IsZero() && (!underWay(r) || !p.died(r)) || !want(r)
	})
	if len(doomed) == 0 {
		return nil, 0, nil
	}
	if exists(filepath.Join(p.dir, journalFile)) {
		return nil, 0, fault.New(fault.Conflicting, "an undo of %s was interrupted and needs its snapshots",
			strings.Join(doomed[0].Roots, ", ")).Hint("run omniagent undo in that directory to complete it")
	}
	was := size(p.dir)
	for _, r := range doomed {
		if err := os.RemoveAll(p.turn(r.ID)); err != nil {
			return deleted, 0, fault.New(fault.PermissionDenied, "%s cannot be deleted: %s", r.ID, fault.Bare(err)).
				Because(err)
		}
		_ = os.Remove(p.alive(r.ID)) // of a turn whose process died
		deleted = append(deleted, r)
	}
	if len(deleted) == len(records) {
		err = p.removeAll()
	} else {
		err = p.sweep()
	}
	return deleted, was - size(p.dir), err
}

// removeAll deletes everything that was kept for turns. It is called when no turn is left.
func (p *place) removeAll() error {
	names, err := namesOf(p.dir, "")
	for _, name := range names {
		if name != "lock" && name != openDir {
			err = cmp.Or(err, os.RemoveAll(filepath.Join(p.dir, name)))
		}
	}
	return err
}

// sweep deletes what no turn needs any more. The caller holds the lock.
func (p *place) sweep() error {
	names, err := namesOf(p.dir, "")
	if err != nil {
		return err
	}
	var indexes []string
	for _, name := range names {
		if strings.HasPrefix(name, "latest-") {
			indexes = append(indexes, filepath.Join(p.dir, name))
		}
	}
	turns, err := namesOf(filepath.Join(p.dir, "turns"), "")
	for _, id := range turns {
		for _, prefix := range []string{"before-", "after-"} {
			some, failed := namesOf(p.turn(id), prefix)
			for _, name := range some {
				indexes = append(indexes, filepath.Join(p.turn(id), name))
			}
			err = cmp.Or(err, failed)
		}
	}
	if err != nil {
		return err
	}
	wanted, known := map[[32]byte]bool{}, true
	for _, path := range indexes {
		x, err := snapshot.LoadFile(path)
		if err != nil { // a newer program may be able to read it
			known = false
			continue
		}
		x.Sums(func(sum [32]byte) { wanted[sum] = true })
	}
	if known {
		if err := p.contents().Retain(func(sum [32]byte) bool { return wanted[sum] }); err != nil {
			return err
		}
	}
	var repositories []string
	for _, name := range names {
		if repository, is := strings.CutPrefix(name, "objects-"); is {
			if err := p.sweepPins(repository, turns); err != nil {
				return err
			}
			repositories = append(repositories, repository)
		}
	}
	return p.sweepLoose(repositories)
}

// sweepPins deletes the objects that neither a turn nor the last snapshot of the repository lists.
func (p *place) sweepPins(repository string, turns []string) error {
	wanted := map[string]bool{}
	for _, dir := range append([]string{"."}, turns...) {
		if dir != "." {
			dir = filepath.Join("turns", dir)
		}
		for _, name := range namesIn(filepath.Join(p.dir, dir, "objects-"+repository)) {
			wanted[name] = true
		}
	}
	common := filepath.Join(p.dir, "git", repository)
	for _, name := range git.ObjectsIn(common) {
		if !wanted[name] {
			if err := os.Remove(filepath.Join(common, "objects", name)); err != nil {
				return fault.New(fault.PermissionDenied, "%s cannot be deleted: %v", name, err).Because(err)
			}
		}
	}
	return nil
}
