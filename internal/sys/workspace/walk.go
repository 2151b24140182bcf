package workspace

import (
	"context"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	batch      = 2048 // entries of one directory in memory at a time
	together   = 64   // files that a goroutine takes at a time
	mostAtOnce = 8    // goroutines; more would only wait for the same disk
	// open directories; beyond this, waiting ones are closed, and reopened by name
	keptOpen = 256
)

// Survey is a concurrent walk through a directory and everything below it. It opens each directory by its name in the
// parent, never through a link, so that it cannot be led elsewhere by renames or links. However large the tree is, it
// needs memory for some thousand names, and a few hundred descriptors. The order of the calls is not defined.
type Survey struct {
	// Enter is called for every directory with its entries, for a large one several times in sequence. It selects
	// entries with Descend and Take. The slice is valid during the call.
	Enter func(f *Folder, entries []Entry)
	// Known, unless nil, may return all entries of a directory, without their types. The directory is then not read. It
	// returns nil if they are not known.
	Known func(f *Folder) []Entry
	// File is called for every selected file. worker is less than Workers, and each worker makes one call at a time.
	File func(worker int, f *Folder, name string)
	// Missed, unless nil, is called for every directory that could not be read completely.
	Missed func(path string, err error)
}

// Workers returns the number of goroutines of a survey.
func Workers() int { return min(max(runtime.GOMAXPROCS(0), 2), mostAtOnce) }

// Entry is a name in a directory.
type Entry struct {
	Name string
	Type EntryType
}

// EntryType is the type of an entry, not of the target of a link.
type EntryType int8

// The types.
const (
	OtherEntry EntryType = iota // a link, a FIFO, a device
	FileEntry
	DirectoryEntry
)

// Folder is a directory in a survey.
type Folder struct {
	Path  string // relative to the start, with slashes; "" for the start itself
	State any    // from the parent directory; Enter may change it

	tour     *surveyRun
	opened   bool
	batches  int
	entries  []Entry // for Enter
	whole    bool    // entries has all entries
	place    openDir
	holders  atomic.Int32 // number of items that need the open directory
	descends []item
	files    []string
}

// Descend selects a directory, so that Enter is called for it, with the state.
func (f *Folder) Descend(name string, state any) {
	if f.isRestricted(name) {
		return
	}
	f.descends = append(f.descends, item{folder: f, name: name, state: state})
}

// Take selects a file, so that File is called for it.
func (f *Folder) Take(name string) {
	if !f.isRestricted(name) {
		f.files = append(f.files, name)
	}
}

// isRestricted reports whether the name may not be read.
func (f *Folder) isRestricted(name string) bool {
	t := f.tour
	return t.beneath && t.dir.restrictions.skips(t.at, path.Join(t.at, f.Join(name)))
}

// Join returns the path of a name in the folder.
func (f *Folder) Join(name string) string {
	if f.Path == "" {
		return name
	}
	return f.Path + "/" + name
}

// First reports whether this is the first call of Enter for the folder.
func (f *Folder) First() bool { return f.batches == 1 }

// Whole reports whether this is the only call of Enter for the folder, with all of its entries.
func (f *Folder) Whole() bool { return f.whole }

// KeepsTime reports whether the file system is known to change the status of a directory whenever a name in it appears,
// disappears or is replaced.
func (f *Folder) KeepsTime() (keeps bool) {
	_ = f.with(func(p openDir) error { keeps = p.keepsTime(); return nil })
	return keeps
}

// Has reports whether the directory has an entry with that name. It is cheap. Only Enter may call it.
func (f *Folder) Has(name string) bool {
	if f.whole {
		return slices.ContainsFunc(f.entries, func(e Entry) bool { return e.Name == name })
	}
	var found bool
	_ = f.with(func(p openDir) error { found = p.has(name); return nil })
	return found
}

// Open opens a regular file in the directory, not through a link.
func (f *Folder) Open(name string) (file io.ReadCloser, err error) {
	err = f.with(func(p openDir) error { file, err = p.file(name); return err })
	return file, err
}

// ReadFile reads a regular file of up to limit bytes in or below the directory. No element of its name may be a link.
func (f *Folder) ReadFile(name string, limit int64) (data []byte, err error) {
	err = f.with(func(p openDir) error { data, err = p.readFile(name, limit); return err })
	return data, err
}

// readFile reads a regular file, not through a link.
func (p openDir) readFile(name string, limit int64) (data []byte, err error) {
	dir, base := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i], name[i+1:]
	}
	err = p.down(dir, func(p openDir) error {
		file, err := p.file(base)
		if err != nil {
			return err
		}
		defer file.Close()
		data, err = io.ReadAll(io.LimitReader(file, limit+1))
		if err == nil && int64(len(data)) > limit {
			data, err = nil, tooLarge(name, int64(len(data)), limit)
		}
		return err
	})
	return data, err
}

// Modified returns when a regular file was last written. ok is false for anything else.
func (f *Folder) Modified(name string) (at time.Time, ok bool) {
	_ = f.with(func(p openDir) error { at, ok = p.modified(name); return nil })
	return at, ok
}

// down opens the directory path, one name after the other, and calls do with it.
func (p openDir) down(path string, do func(openDir) error) error {
	at := p
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		next, err := at.enter(name)
		if at != p {
			at.close()
		}
		if err != nil {
			return err
		}
		at = next
	}
	if at != p {
		defer at.close()
	}
	return do(at)
}

// with calls do with the open directory. It reopens the directory if necessary.
func (f *Folder) with(do func(openDir) error) error {
	if f.opened {
		return do(f.place)
	}
	return f.tour.start.down(f.Path, do)
}

// surveyRun is a running survey.
type surveyRun struct {
	Survey
	ctx     context.Context
	start   openDir
	dir     *Dir
	at      string // the start, relative to the root of dir
	beneath bool   // the start is below the root
	mu      sync.Mutex
	more    sync.Cond
	todo    []item
	busy    int
	open    int
	missed  atomic.Int64
}

// item is a unit of work: a directory to enter, the rest of a directory, or files.
type item struct {
	folder *Folder
	name   string // a directory to enter in folder; "" to read folder itself
	state  any
	files  []string
}

// Survey walks through the directory name and everything below it. state is the State of the first folder. missed is
// the number of directories that could not be read. Soon after ctx ends, Survey returns its error, and makes no more
// calls.
func (d *Dir) Survey(ctx context.Context, name string, state any, s Survey) (missed int, err error) {
	if own, rel := d.owner(name); own != d {
		return own.Survey(ctx, rel, state, s)
	}
	start, err := startAt(d, name)
	if err != nil {
		return 0, d.toFault("search", name, err)
	}
	defer start.close()
	own, err := start.enter(".")
	if err != nil {
		return 0, d.toFault("search", name, err)
	}
	t := &surveyRun{Survey: s, ctx: ctx, start: start, open: 1, dir: d}
	if t.at, t.beneath = d.located(start.actual, name); t.beneath {
		if err := d.restrictions.checkRead(t.at, name); err != nil {
			own.close()
			return 0, err
		}
	}
	t.more.L = &t.mu
	first := &Folder{State: state, tour: t, opened: true, place: own}
	first.holders.Store(1)
	t.todo = []item{{folder: first}}
	stop := context.AfterFunc(ctx, func() {
		t.mu.Lock() // otherwise a worker that has just checked would wait forever
		defer t.mu.Unlock()
		t.more.Broadcast()
	})
	var group sync.WaitGroup
	for worker := range Workers() {
		group.Go(func() { t.work(worker) })
	}
	group.Wait()
	stop()
	for _, left := range t.todo { // after an early end
		t.release(left.folder)
	}
	return int(t.missed.Load()), ctx.Err()
}

func (t *surveyRun) ended() bool { return t.ctx.Err() != nil }

// work does all items, the latest first, which bounds the memory.
func (t *surveyRun) work(worker int) {
	list := newLister()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(t.todo) == 0 && t.busy > 0 && !t.ended() {
			t.more.Wait()
		}
		if len(t.todo) == 0 || t.ended() {
			t.more.Broadcast()
			return
		}
		next := t.todo[len(t.todo)-1]
		t.todo[len(t.todo)-1] = item{}
		t.todo = t.todo[:len(t.todo)-1]
		t.busy++
		t.mu.Unlock()
		made := t.do(worker, list, next)
		t.mu.Lock()
		t.busy--
		t.todo = append(t.todo, made...)
		switch {
		case len(made) > 1 || t.busy == 0:
			t.more.Broadcast()
		case len(made) == 1:
			t.more.Signal()
		}
	}
}

// do does one item, and returns the resulting items in reverse order.
func (t *surveyRun) do(worker int, list *lister, next item) []item {
	defer t.release(next.folder)
	switch {
	case next.files != nil:
		for _, name := range next.files {
			if t.ended() {
				break
			}
			t.File(worker, next.folder, name)
		}
		return nil
	case next.name != "":
		folder, err := t.enter(next)
		if err != nil {
			t.miss(next.folder.Join(next.name), err)
			return nil
		}
		defer t.release(folder)
		return t.read(folder, list)
	}
	return t.read(next.folder, list)
}

func (t *surveyRun) miss(path string, err error) {
	t.missed.Add(1)
	if t.Survey.Missed != nil {
		t.Survey.Missed(path, err)
	}
}

func (t *surveyRun) enter(next item) (*Folder, error) {
	folder := &Folder{Path: next.folder.Join(next.name), State: next.state, tour: t, opened: true}
	err := next.folder.with(func(p openDir) (err error) { folder.place, err = p.enter(next.name); return err })
	if err != nil {
		return nil, err
	}
	folder.holders.Store(1)
	t.mu.Lock()
	t.open++
	t.mu.Unlock()
	return folder, nil
}

// read reads a batch of entries, or all if too many directories are open to keep this one open.
func (t *surveyRun) read(f *Folder, list *lister) []item {
	t.mu.Lock()
	crowded := t.open > keptOpen
	t.mu.Unlock()
	most := batch
	if crowded {
		most = int(^uint(0) >> 1)
	}
	var entries []Entry
	var err error
	done := false
	if t.Known != nil && f.batches == 0 {
		entries = t.Known(f)
		done = entries != nil
	}
	if !done {
		entries, done, err = list.read(&f.place, most)
	}
	if err != nil {
		t.miss(f.Path, err)
		done = true
	}
	f.batches++
	f.entries, f.whole = entries, f.batches == 1 && done && err == nil
	t.Enter(f, entries)
	f.entries, f.whole = nil, false
	made := f.follow(done)
	f.holders.Add(int32(len(made)))
	if crowded && done && f.holders.Load() == int32(1+len(made)) { // not in use: the new items have not begun
		t.shut(f)
	}
	return made
}

// follow returns the selected entries as items. The files come last, so that they are done first.
func (f *Folder) follow(done bool) []item {
	var made []item
	if !done {
		made = append(made, item{folder: f})
	}
	slices.Reverse(f.descends)
	made = append(made, f.descends...)
	for files := range slices.Chunk(f.files, together) {
		made = append(made, item{folder: f, files: files})
	}
	f.descends, f.files = nil, nil
	return made
}

// shut closes a directory that is not in use.
func (t *surveyRun) shut(f *Folder) {
	f.place.close()
	f.opened = false
	t.mu.Lock()
	t.open--
	t.mu.Unlock()
}

func (t *surveyRun) release(f *Folder) {
	if f.holders.Add(-1) == 0 && f.opened {
		t.shut(f)
	}
}
