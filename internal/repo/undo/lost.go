package undo

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniagent/internal/repo/git"
	"omniagent/internal/sys/workspace"
)

// An index leaves out git's objects. What happens to them is found by their names and, if a file may have been written
// since, by its checksum.

// clockTick is by how much the recorded time of a write may be too early.
const clockTick = 20 * time.Millisecond

// touched reports whether a file may have been written during a turn.
type touched func(name string, info fs.FileInfo) bool

func writtenSince(at time.Time) touched {
	from := at.Add(-clockTick).UnixNano()
	return func(_ string, info fs.FileInfo) bool {
		s := workspace.StatusOf(info)
		return max(s.Changed, s.Modified) >= from
	}
}

// damagedIn returns the damaged ones of the objects in a directory that may have been written.
func damagedIn(dir string, names []string, written touched) (damaged []string) {
	var mu sync.Mutex
	var next atomic.Int64
	var group sync.WaitGroup
	for range workspace.Workers() {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
				info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(names[i])))
				if err == nil && !written(names[i], info) || git.CheckObject(dir, names[i]) == nil {
					continue
				}
				mu.Lock()
				damaged = append(damaged, names[i])
				mu.Unlock()
			}
		})
	}
	group.Wait()
	slices.Sort(damaged)
	return damaged
}

// harmed returns the objects in a turn's list that a repository no longer has, and those that it has damaged.
func (p *place) harmed(common, id string, written touched) (missing, damaged []string) {
	present, still := git.ObjectsIn(common), []string(nil)
	for _, name := range namesIn(filepath.Join(p.turn(id), "objects-"+key(common))) {
		if _, has := slices.BinarySearch(present, name); has {
			still = append(still, name)
		} else {
			missing = append(missing, name)
		}
	}
	return missing, damagedIn(filepath.Join(common, "objects"), still, written)
}

// lost reports whether a repository has lost an object in a turn's list, or a line of its alternates. What git has
// packed is not lost.
func (p *place) lost(common, id string, written touched) bool {
	missing, damaged := p.harmed(common, id, written)
	if len(damaged) > 0 {
		return true
	}
	borrows := len(lacksLines(p.alternates(common, id), readAlternates(common))) > 0
	if len(missing) == 0 && !borrows {
		return false
	}
	opened, err := git.At(common)
	if err != nil {
		return false // the repository is gone, which the index has noticed
	}
	defer opened.Close()
	if borrows {
		return true
	}
	for _, name := range missing {
		folder, base, _ := strings.Cut(name, "/")
		switch pack, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name); {
		case folder != "pack":
			if !opened.Has(folder + base) {
				return true
			}
		case ext == ".pack" || ext == ".idx":
			if !opened.HasPack(filepath.Join(p.pinned(common), "objects"), pack) {
				return true
			}
		}
	}
	return false
}
