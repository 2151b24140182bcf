package tree

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"omniagent/internal/fault"
	"omniagent/internal/git"
	"omniagent/internal/workspace"
)

// The reasons of gaps.
const (
	tooLarge  = "the file is larger than the limit"
	tooMuch   = "the limit of all files together is reached"
	tooMany   = "the limit of the number of files is reached"
	unsettled = "the file was written while it was read"
	replaced  = "the file was replaced while it was read"
)

// attempts is how often a file is read that is being written.
const attempts = 3

// task is a file whose content is not known.
type task struct {
	path    string
	entry   *entry
	tracked git.Entry
	opened  *git.Repository // to compute the name of a blob; nil without one
	folder  *folder
}

// reading is the part of Take that reads contents.
type reading struct {
	*walk
	tasks []task
	next  atomic.Int64

	mu    sync.Mutex
	bytes int64 // kept by this call
	files int
	full  error // why the store takes nothing any more
}

// readContents finds out what the files contain: from Since, from git, and by reading the others.
func (w *walk) readContents(ctx context.Context) error {
	r := &reading{walk: w}
	since := w.options.Since.files()
	known := w.tracked()
	defer known.close()
	for _, f := range w.index.folders {
		for i := range f.entries {
			e := &f.entries[i]
			if !isRegular(e.Mode) || e.about&stateOfGit != 0 {
				continue
			}
			if t := r.classify(f, e, since, known); t != nil {
				r.tasks = append(r.tasks, *t)
			}
		}
	}
	var group sync.WaitGroup
	for range min(workspace.Workers(), len(r.tasks)) {
		group.Go(func() {
			for i := r.next.Add(1) - 1; i < int64(len(r.tasks)) && ctx.Err() == nil; i = r.next.Add(1) - 1 {
				r.read(&r.tasks[i])
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "reading files in %s was interrupted", w.index.Root).Because(ctx.Err())
	}
	return nil
}

// files returns the folders by path. A nil index has none.
func (x *Index) files() map[string]*folder {
	if x == nil {
		return nil
	}
	all := make(map[string]*folder, len(x.folders))
	for _, f := range x.folders {
		all[f.path] = f
	}
	return all
}

func (f *folder) find(name string) *entry {
	if f == nil {
		return nil
	}
	low, high := 0, len(f.entries)
	for low < high {
		if middle := (low + high) / 2; f.entries[middle].name < name {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(f.entries) && f.entries[low].name == name {
		return &f.entries[low]
	}
	return nil
}

// classify gives a file the content that it is known to have, or returns the task to read it.
func (r *reading) classify(f *folder, e *entry, since map[string]*folder, known tracked) *task {
	path := f.join(e.name)
	t := &task{path: path, entry: e, folder: f}
	if repository := f.repository; repository != nil {
		if files := known[repository]; files != nil {
			var there bool
			t.opened = files.opened
			if t.tracked, there = files.entries[repository.path(path)]; there {
				e.about &^= ignored
			}
		}
	}
	if e.about&ignored != 0 {
		return nil
	}
	old := since[f.path].find(e.name)
	if old != nil && old.Status == e.Status && old.about&recent == 0 && old.content != nil &&
		(r.options.Store == nil || old.content.kept || old.content.inGit) {
		e.content = old.content
		return nil
	}
	if t.matches(e) && known.exact(f.repository, t.tracked.Blob, e.Size) {
		e.content = &content{blob: t.tracked.Blob, repository: f.repository, inGit: true}
		if e.about&recent == 0 {
			return nil
		}
	}
	same := old != nil && old.Status == e.Status && old.about&recent == 0
	if r.options.Store != nil || e.about&recent != 0 || r.options.Since != nil && !same {
		return t
	}
	return nil
}

// matches reports whether the status is the one that git vouches for.
func (t *task) matches(e *entry) bool {
	g := t.tracked
	return g.Blob != git.ID{} && g.Size == uint32(e.Size) && //nolint:gosec // as git records them
		g.Modified.Is(git.TimeOf(e.Modified)) &&
		(g.Changed == git.Time{} || e.Inode == 0 || g.Changed.Is(git.TimeOf(e.Changed))) &&
		(g.Inode == 0 || e.Inode == 0 || g.Inode == uint32(e.Inode)) //nolint:gosec // as git records them
}

// read reads a file and, with a store, keeps what git does not have.
func (r *reading) read(t *task) {
	if t.entry.Size > r.options.FileLimit {
		r.gap(t.path, tooLarge, false)
		return
	}
	data, err := r.stable(t)
	var changed *fault.Fault
	switch {
	case errors.As(err, &changed) && changed.Code == fault.ConcurrentModification:
		r.gap(t.path, changed.Message, false)
		t.entry.content = nil
		return
	case err != nil:
		r.gap(t.path, reason(err), false)
		return
	}
	c := &content{sum: sha256.Sum256(data), repository: t.folder.repository}
	if t.opened != nil {
		c.blob = t.opened.Sum(data)
		c.inGit = t.tracked.Blob == c.blob
	}
	if r.options.Store != nil && !c.inGit {
		c.kept = r.keep(t.path, c.sum, data)
	}
	t.entry.content = c
}

// stable reads a file that nobody writes meanwhile. The index then has the status of these bytes.
func (r *reading) stable(t *task) ([]byte, error) {
	for range attempts {
		file, info, err := r.dir.Open(t.path)
		if err != nil {
			return nil, err
		}
		before := workspace.StatusOf(info)
		if before.Inode != t.entry.Inode {
			_ = file.Close()
			return nil, fault.New(fault.ConcurrentModification, replaced)
		}
		data, err := io.ReadAll(io.LimitReader(file, r.options.FileLimit+1))
		if err == nil {
			info, err = file.Stat()
		}
		_ = file.Close()
		if err != nil {
			return nil, err
		}
		if int64(len(data)) > r.options.FileLimit {
			break
		}
		if after := workspace.StatusOf(info); after == before {
			if t.entry.Status = after; r.isRecent(after.Changed) {
				t.entry.about |= recent
			}
			return data, nil
		}
	}
	return nil, fault.New(fault.ConcurrentModification, unsettled)
}

// keep gives a content to the store, within the limits.
func (r *reading) keep(path string, sum [sha256.Size]byte, data []byte) bool {
	size := int64(len(data))
	r.mu.Lock()
	why := ""
	switch {
	case r.full != nil:
		why = reason(r.full)
	case r.bytes+size > r.options.TotalLimit:
		why = tooMuch
	case r.files == r.options.CountLimit:
		why = tooMany
	default:
		r.bytes += size
		r.files++
	}
	r.mu.Unlock()
	if why != "" {
		r.gap(path, why, false)
		return false
	}
	added, err := r.options.Store.put(sum, data)
	if !added {
		r.mu.Lock()
		r.bytes -= size
		r.files--
		if err != nil {
			r.full = err
		}
		r.mu.Unlock()
	}
	if err != nil {
		r.gap(path, "the store cannot take it: "+reason(err), false)
	}
	return err == nil
}

// tracked is what the indexes of the repositories say.
type tracked map[*repository]*trackedFiles

type trackedFiles struct {
	opened  *git.Repository
	entries map[string]git.Entry
}

// tracked reads the indexes of all repositories. Files of one that cannot be read are ordinary files.
func (w *walk) tracked() tracked {
	all := tracked{}
	if w.options.Store == nil && w.options.Since == nil {
		return all
	}
	for _, r := range w.repos {
		opened, err := git.At(r.dir)
		if err != nil {
			continue
		}
		entries, err := opened.Index()
		if err != nil {
			name := strings.TrimPrefix(r.top+".git/index", "/")
			w.gap(name, "git's index cannot be used: "+err.Error(), false)
		}
		all[r] = &trackedFiles{opened, entries}
	}
	return all
}

func (t tracked) close() {
	for _, files := range t {
		files.opened.Close()
	}
}

// exact reports whether the blob has the bytes of the file. Where git converts files, the size decides.
func (t tracked) exact(r *repository, blob git.ID, size int64) bool {
	if !r.converts {
		return true
	}
	n, err := t[r].opened.Size(blob)
	return err == nil && n == size
}
