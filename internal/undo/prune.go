package undo

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/fault"
)

// Delete forgets the turns that want names, of all workspaces, and what only they needed. It leaves a turn that is
// under way. It returns the turns, and how many bytes that freed.
func (s Store) Delete(ctx context.Context, want func(Record) bool) (gone []Record, freed int64, err error) {
	dirs, err := filepath.Glob(filepath.Join(s.Dir, "*", "turns"))
	if err != nil {
		return nil, 0, err
	}
	for _, dir := range dirs {
		p := &place{store: s, dir: filepath.Dir(dir)}
		some, bytes, err := p.forget(ctx, want)
		gone, freed = append(gone, some...), freed+bytes
		if err != nil {
			return gone, freed, err
		}
	}
	return gone, freed, nil
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
			over -= size / int64(len(all)) // a fair share: what a turn alone needs is known when it is gone
		}
	}
	return surplus, nil
}

// Size is how many bytes the snapshots take. What a repository also has is not counted.
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
		n := int64(max(links(info), 1)) //nolint:gosec // the names of a file
		if n == 1 || !strings.Contains(strings.TrimPrefix(path, dir), pins) {
			bytes += info.Size() / n // turns share indexes
		}
		return nil
	})
	return bytes
}

// forget is Delete for one workspace.
func (p *place) forget(ctx context.Context, want func(Record) bool) (gone []Record, freed int64, err error) {
	if err := p.lock(ctx); err != nil {
		return nil, 0, err
	}
	defer p.unlock()
	records, err := p.list()
	if err != nil {
		return nil, 0, err
	}
	if exists(filepath.Join(p.dir, journalFile)) {
		return nil, 0, nil // a restore has to be completed
	}
	left := len(records)
	was := size(p.dir)
	for _, r := range records {
		if r.Ended.IsZero() || !want(r) {
			continue
		}
		if err := os.RemoveAll(p.turn(r.ID)); err != nil {
			return gone, 0, fault.New(fault.PermissionDenied, "%s cannot be deleted: %v", r.ID, err).Because(err)
		}
		gone, left = append(gone, r), left-1
	}
	switch {
	case len(gone) == 0:
		return nil, 0, nil
	case left == 0:
		for _, name := range []string{"contents", "git", "turns"} {
			err = orError(err, os.RemoveAll(filepath.Join(p.dir, name)))
		}
		for _, pattern := range []string{"latest-*", "objects-*"} {
			files, _ := filepath.Glob(filepath.Join(p.dir, pattern))
			for _, file := range files {
				err = orError(err, os.Remove(file))
			}
		}
	default:
		err = p.sweep()
	}
	return gone, was - size(p.dir), err
}

func orError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// sweep deletes what no turn needs any more. It needs the lock.
func (p *place) sweep() error {
	wanted := map[[32]byte]bool{}
	indexes, _ := filepath.Glob(filepath.Join(p.dir, "turns", "*", "*-[0-9]"))
	latest, _ := filepath.Glob(filepath.Join(p.dir, "latest-*"))
	for _, path := range append(indexes, latest...) {
		x, err := load(path)
		if err != nil {
			return err
		}
		x.Sums(func(sum [32]byte) { wanted[sum] = true })
	}
	if _, err := p.contents().Retain(func(sum [32]byte) bool { return wanted[sum] }); err != nil {
		return err
	}
	listed, _ := filepath.Glob(filepath.Join(p.dir, "objects-*"))
	for _, path := range listed {
		if err := p.sweepPins(strings.TrimPrefix(filepath.Base(path), "objects-")); err != nil {
			return err
		}
	}
	return nil
}

// sweepPins deletes the objects that no turn lists, and that the repository did not have at the last snapshot.
func (p *place) sweepPins(repository string) error {
	wanted := map[string]bool{}
	lists, _ := filepath.Glob(filepath.Join(p.dir, "turns", "*", "objects-"+repository))
	for _, list := range append(lists, filepath.Join(p.dir, "objects-"+repository)) {
		for _, name := range namesIn(list) {
			wanted[name] = true
		}
	}
	common := filepath.Join(p.dir, "git", repository)
	for _, name := range objectsIn(common) {
		if !wanted[name] {
			if err := os.Remove(filepath.Join(common, "objects", name)); err != nil {
				return fault.New(fault.PermissionDenied, "%s cannot be deleted: %v", name, err).Because(err)
			}
		}
	}
	return nil
}
