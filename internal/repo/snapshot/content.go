package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/sys/workspace"
)

// The reasons of gaps.
const (
	tooLarge  = "the file is larger than the limit"
	tooMuch   = "the limit of all files together is reached"
	tooMany   = "the limit of the number of files is reached"
	unsettled = "the file was written while it was read"
	replaced  = "the file was replaced while it was read"
)

// readings limits how many bytes Take reads to this many times the total limit, since it also reads what it need not
// keep.
const readings = 4

// attempts is how often a file that is being written is read.
const attempts = 3

// waiting is how many tasks the queue of the readers holds.
const waiting = 256

// task is a file whose content is not known.
type task struct {
	entry   *fileEntry
	folder  *folder
	known   *tracked        // what git's index says; nil without a repository
	listed  *listed         // what that says of the folder
	tracked git.Entry       // after lookUp, as opened
	opened  *git.Repository // to compute the name of a blob; nil without one
	claimed bool            // git's index claims to know the content, which has to be checked
	// onlyKept means that Diff can compare the file without its content.
	onlyKept bool
}

func (t *task) path() string { return t.folder.join(t.entry.name) }

// reading is the part of Take that reads contents.
type reading struct {
	*walk
	tasks chan task
	spare spare

	mu       sync.Mutex
	bytes    int64 // kept by this call
	files    int
	consumed int64           // bytes read by this call
	full     error           // the error after which the store takes nothing more
	skipped  map[string]bool // ignored files and directories that are not kept
}

// readContents finds the contents of the files: from Since, from git, or by reading them.
func (w *walk) readContents(ctx context.Context) error {
	r := &reading{walk: w, tasks: make(chan task, waiting)}
	if w.options.Whole {
		r.skipped = w.largeIgnored()
	}
	known := w.tracked()
	defer func() {
		for _, k := range known {
			k.close()
		}
	}()
	var group sync.WaitGroup
	for range workspace.Workers() {
		group.Go(func() {
			var buffer []byte
			for t := range r.tasks {
				if ctx.Err() == nil {
					buffer = r.read(&t, buffer)
				}
			}
		})
	}
	// The largest file is often git's index. It comes first, so that a worker reads it while it is parsed here.
	for _, ofGit := range []bool{true, false} {
		for _, f := range w.index.folders {
			if f.ofGit == ofGit {
				r.classifyAll(f, w.since[f.path], known[f.repository])
			}
		}
	}
	close(r.tasks)
	group.Wait()
	if w.options.Absent {
		w.findAbsent(known)
	}
	if w.options.Store != nil {
		w.options.Store.Close()
	}
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

// all returns the entries. A nil folder has none.
func (f *folder) all() []fileEntry {
	if f == nil {
		return nil
	}
	return f.entries
}

func (f *folder) find(name string) *fileEntry {
	if f == nil {
		return nil
	}
	i := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].name >= name }) // it copies no entry
	if i < len(f.entries) && f.entries[i].name == name {
		return &f.entries[i]
	}
	return nil
}

// classifyAll gives the files of a folder their known contents, and queues the others. old is the folder in Since.
func (r *reading) classifyAll(f, old *folder, known *tracked) {
	before, now := old.all(), listed{known: known}
	for i := range f.entries {
		e := &f.entries[i]
		for len(before) > 0 && before[0].name < e.name {
			before = before[1:]
		}
		if !e.Mode.IsRegular() || e.about&stateOfGit != 0 && !r.options.Whole {
			continue
		}
		t := task{folder: f, listed: &now, entry: e}
		if e.about&stateOfGit == 0 {
			t.known = known
		}
		var was *fileEntry
		if len(before) > 0 && before[0].name == e.name {
			was = &before[0]
		}
		if r.mustRead(&t, was) {
			r.tasks <- t
		}
	}
}

// mustRead gives a file its known content, or reports that it has to be read. old is the file in Since, or nil.
func (r *reading) mustRead(t *task, old *fileEntry) bool {
	e := t.entry
	same := old != nil && old.Status == e.Status && old.about&recent == 0
	asBefore := same && t.known.asBefore() && e.about&ignored <= old.about&ignored
	if !asBefore {
		t.lookUp()
	}
	if e.about&ignored != 0 && (!r.options.Whole || within(r.skipped, t.path())) {
		return false
	}
	if same && old.content != nil && (r.options.Store == nil || old.content.kept ||
		old.content.inGit && (asBefore || old.content.blob == t.tracked.Blob)) {
		e.content = old.content
		return false
	}
	if asBefore {
		t.lookUp()
	}
	if t.matches(e) && t.exact() {
		e.content = r.clean(t)
		// An agent may have written git's index since then, so its claim is checked.
		t.claimed = r.options.Whole && r.options.Since != nil
		if e.about&recent == 0 && !t.claimed {
			return false
		}
	}
	t.onlyKept = e.about&recent == 0 && (r.options.Since == nil || same)
	return r.options.Store != nil || !t.onlyKept
}

// clean returns the content of a file that git has.
func (r *reading) clean(t *task) *content {
	c := r.spare.take()
	*c = content{blob: t.tracked.Blob, repository: t.folder.repository, inGit: true}
	return c
}

// spare allocates contents, many at a time.
type spare []content

func (s *spare) take() *content {
	if len(*s) == 0 {
		*s = make([]content, 512)
	}
	c := &(*s)[0]
	*s = (*s)[1:]
	return c
}

// matches reports whether the status of a file is the one in git's index.
func (t *task) matches(e *fileEntry) bool {
	g := t.tracked
	return g.Blob != git.ID{} && g.Size == uint32(e.Size) && //nolint:gosec // as git records them
		g.Modified.Is(git.TimeOf(e.Modified)) &&
		(g.Changed == git.Time{} || e.Inode == 0 || g.Changed.Is(git.TimeOf(e.Changed))) &&
		(g.Inode == 0 || e.Inode == 0 || g.Inode == uint32(e.Inode)) //nolint:gosec // as git records them
}

// read reads a file and, with a store, keeps what git does not have. It returns the buffer for the next one.
func (r *reading) read(t *task, buffer []byte) []byte {
	if t.claimed {
		t.entry.content = nil
	}
	if why := r.refusal(t); why != "" {
		r.gap(t.path(), why, false)
		return buffer
	}
	data, err := r.stable(t, buffer)
	var changed *fault.Fault
	switch {
	case errors.As(err, &changed) && changed.Code == fault.ConcurrentModification:
		r.gap(t.path(), changed.Message, false)
		t.entry.content = nil
		return buffer
	case err != nil:
		r.gap(t.path(), fault.Bare(err).Error(), false)
		return buffer
	}
	c := &content{sum: sha256.Sum256(data), repository: t.folder.repository}
	if t.opened != nil {
		c.blob = t.opened.Sum(data)
		c.inGit = t.tracked.Blob == c.blob
	}
	switch {
	case r.options.Store == nil || c.inGit:
	case r.options.Private != nil && r.options.Private(data):
		r.gap(t.path(), "it has a secret that was given as an answer, so it is not kept", false)
	default:
		c.kept = r.keep(t.path(), c.sum, data)
	}
	t.entry.content = c
	return data
}

// refusal returns why a file is not read, or "".
func (r *reading) refusal(t *task) (why string) {
	size := t.entry.Size
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case size > r.options.FileLimit:
		return tooLarge
	case r.consumed+size > readings*r.options.TotalLimit:
		return tooMuch
	case t.onlyKept:
		why = r.exhausted(size)
	}
	if why == "" {
		r.consumed += size
	}
	return why
}

// exhausted returns why the store does not take size more bytes, or "".
func (r *reading) exhausted(size int64) string {
	switch {
	case r.full != nil:
		return "it could not be saved: " + fault.Bare(r.full).Error()
	case r.bytes+size > r.options.TotalLimit:
		return tooMuch
	case r.files >= r.options.CountLimit:
		return tooMany
	}
	return ""
}

// stable reads a file, into the buffer if it has room. If the file changes meanwhile, stable tries again, and in the
// end fails. The entry then has the status of these bytes.
func (r *reading) stable(t *task, buffer []byte) ([]byte, error) {
	for range attempts {
		file, info, err := r.dir.Open(t.path())
		if err != nil {
			return nil, err
		}
		before := workspace.StatusOf(info)
		if before.Inode != t.entry.Inode {
			_ = file.Close()
			return nil, fault.New(fault.ConcurrentModification, replaced)
		}
		if before.Size > r.options.FileLimit {
			_ = file.Close()
			break
		}
		data := slices.Grow(buffer[:0], int(before.Size))[:before.Size]
		_, err = io.ReadFull(file, data)
		shrinks := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err == nil || shrinks {
			info, err = file.Stat()
		}
		_ = file.Close()
		if err != nil {
			return nil, err
		}
		if after := workspace.StatusOf(info); after == before && !shrinks {
			if t.entry.Status = after; r.isRecent(after.Changed) {
				t.entry.about |= recent
			}
			return data, nil
		}
	}
	return nil, fault.New(fault.ConcurrentModification, unsettled)
}

// keep adds a content to the store, within the limits, and reports whether the store has it.
func (r *reading) keep(path string, sum [sha256.Size]byte, data []byte) bool {
	size := int64(len(data))
	r.mu.Lock()
	why := r.exhausted(size)
	if why == "" {
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
		r.gap(path, "it could not be saved: "+fault.Bare(err).Error(), false)
	}
	return err == nil
}

// tracked is what the index of a repository says.
type tracked struct {
	walk      *walk
	at        *repository
	unchanged bool // the index file is the one in Since, so what it says of unchanged files is known
	read      bool
	opened    *git.Repository // nil: it cannot be opened
	files     git.Tracked
}

// tracked prepares to read the indexes of all repositories.
func (w *walk) tracked() map[*repository]*tracked {
	all := map[*repository]*tracked{}
	if w.options.Store == nil && w.options.Since == nil {
		return all
	}
	for _, r := range w.repos {
		all[r] = &tracked{walk: w, at: r, unchanged: w.sameIndex(r)}
	}
	return all
}

// sameIndex reports whether the file of a repository's index is the one that Since has.
func (w *walk) sameIndex(r *repository) bool {
	rel, within := pathname.In(w.index.Root, filepath.Join(r.dir, "index"))
	if !within || !w.options.Whole || w.options.Since == nil {
		return false
	}
	old, is := w.options.Since.Find(filepath.ToSlash(rel)), w.index.Find(filepath.ToSlash(rel))
	return old != nil && is != nil && old.Status == is.Status && old.about&recent == 0
}

// asBefore reports whether git says the same of an unchanged file as in Since. Without a repository it says nothing.
func (k *tracked) asBefore() bool { return k == nil || k.unchanged }

// load reads the index, once. If it cannot be read, its files count as ordinary files.
func (k *tracked) load() {
	if k.read {
		return
	}
	k.read = true
	opened, err := git.At(k.at.dir)
	if err != nil {
		return
	}
	k.opened = opened
	if k.files, err = opened.Index(); err != nil {
		k.walk.gap(k.at.top+".git", "git's index cannot be used: "+err.Error(), false)
	}
}

// findAbsent finds the files that git tracks and that do not exist.
func (w *walk) findAbsent(known map[*repository]*tracked) {
	folders, unread := w.index.files(), w.index.Unread()
	for r, k := range known {
		k.load()
		for dir, entries := range k.files {
			at, beneath := r.folder(dir)
			for _, e := range entries {
				if beneath && folders[at].find(e.Name) == nil && !unread(path.Join(at, e.Name)) {
					w.index.Absent = append(w.index.Absent, path.Join(at, e.Name))
				}
			}
		}
	}
	slices.Sort(w.index.Absent)
}

func (k *tracked) close() {
	if k.opened != nil {
		k.opened.Close()
	}
}

// lookUp finds what git says of the file. A file that git tracks is not an ignored one.
func (t *task) lookUp() {
	if t.known == nil {
		return
	}
	t.known.load()
	t.opened = t.known.opened
	if e := t.listed.find(t.folder, t.entry.name); e != nil {
		t.tracked = *e
		t.entry.about &^= ignored
	}
}

// listed is what a repository tracks in a folder, whose files are looked up in the order of their names.
type listed struct {
	known *tracked
	begun bool
	rest  []git.Entry // no entry in it comes before the last one that was looked up
}

func (l *listed) find(f *folder, name string) *git.Entry {
	if !l.begun {
		l.begun, l.rest = true, l.known.files[f.repository.path(f.path)]
	}
	for len(l.rest) > 0 && l.rest[0].Name < name {
		l.rest = l.rest[1:]
	}
	if len(l.rest) == 0 || l.rest[0].Name != name {
		return nil
	}
	return &l.rest[0]
}

// exact reports whether the blob certainly has the bytes of the file. If git may have converted it, the sizes decide,
// unless a conversion may keep the size.
func (t *task) exact() bool {
	c := t.folder.repository.conversions
	switch {
	case !c.Possible():
		return true
	case c.KeepSize(t.entry.name):
		return false
	}
	n, err := t.opened.Size(t.tracked.Blob)
	return err == nil && n == t.entry.Size
}
