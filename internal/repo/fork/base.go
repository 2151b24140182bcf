package fork

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/repo/git"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

const (
	baseFile    = "base"  // the index of the workspace at the beginning
	copyIndex   = "begin" // the index of a copy at the beginning
	reposFile   = "repositories.json"
	absentFile  = "absent.json" // tracked files that were not in the workspace at the beginning
	contentsDir = "contents"
	appliedFile = "applied.json"
	baseTime    = time.Minute
	attempts    = 3
	// tick is how far the clock for file times may be behind.
	tick = 20 * time.Millisecond
)

// repository is a repository whose index was kept.
type repository struct {
	Dir string `json:"dir"`
	Top string `json:"top"` // top of its working tree, relative to the workspace
}

func gitIndex(i int) string { return fmt.Sprintf("index-%d", i) }

func (f *Fork) contents() *snapshot.Store {
	return snapshot.OpenStore(filepath.Join(f.dir, contentsDir))
}

// remember takes the base unless the fork has one. If several forks are made at once, one of them takes it for all.
func (f *Fork) remember(ctx context.Context) error {
	to := filepath.Join(f.dir, baseFile)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, baseTime)
	defer cancel()
	at := filepath.Join(f.store.Dir, ".base-"+f.key())
	held, err := workspace.Lock(ctx, at, baseTime)
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	var last walked
	if workspace.ReadJSON(at+".json", jsonLimit, &last) == nil && !last.Began.Before(f.Made) &&
		f.borrow(last.Fork) == nil {
		return nil
	}
	last = walked{f.Name, time.Now()}
	if err := f.takeBase(ctx, to); err != nil {
		return err
	}
	return writeSoon(at+".json", last)
}

// walked records the last walk through a workspace.
type walked struct {
	Fork  string    `json:"fork"`
	Began time.Time `json:"began"`
}

// borrow links the files of another fork's base into this one.
func (f *Fork) borrow(name string) error {
	from := f.store.at(name)
	files := []string{reposFile, absentFile}
	for _, pattern := range []string{"index-?", "index-??", "index-???", contentsDir + "/*"} {
		found, _ := filepath.Glob(filepath.Join(from, filepath.FromSlash(pattern)))
		for _, path := range found {
			rel, _ := filepath.Rel(from, path)
			files = append(files, rel)
		}
	}
	for _, rel := range append(files, baseFile) { // the last file marks the base as complete
		to := filepath.Join(f.dir, rel)
		_ = os.Remove(to)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.Link(filepath.Join(from, rel), to); err != nil {
			return err
		}
	}
	return nil
}

// takeBase walks through the workspace. The base has all directories, so that one that was moved in later is noticed.
// It leaves out files that git's index covers, because that index is kept too.
func (f *Fork) takeBase(ctx context.Context, to string) error {
	o := snapshot.Options{
		Store: f.contents(), FileLimit: 64 << 20, TotalLimit: 1 << 30, CountLimit: 100_000, Absent: true,
	}
	for try := 1; ; try++ {
		x, err := snapshot.Take(ctx, f.Workspace, o)
		if err != nil {
			return err
		}
		x.MarkLater(f.Made)
		settledDir := f.olderDirs(x)
		settled := f.keepIndexes(x)
		if !settled && try < attempts {
			continue
		}
		if err := writeSoon(filepath.Join(f.dir, absentFile), absentBefore(x, settledDir)); err != nil {
			return err
		}
		return x.Without(func(name string) bool {
			file := x.Find(name)
			if file == nil || file.OfGit() || file.Mode.IsDir() {
				return file == nil || file.OfGit()
			}
			needless := settled && file.Clean() || file.Ignored() && settledDir(path.Dir(name))
			return needless && f.older(file.Status)
		}).SaveFile(to)
	}
}

// older reports whether a file has not changed since the fork was made.
func (f *Fork) older(s workspace.Status) bool { return s.Changed < f.Made.Add(-tick).UnixNano() }

// olderDirs returns a function that reports whether a directory, and those above it, have not changed since the fork
// was made. One that was moved in has changed, unlike its content.
func (f *Fork) olderDirs(x *snapshot.Index) func(dir string) bool {
	known := map[string]bool{".": true}
	var older func(dir string) bool
	older = func(dir string) bool {
		is, ok := known[dir]
		if !ok {
			file := x.Find(dir)
			is = file != nil && f.older(file.Status) && older(path.Dir(dir))
			known[dir] = is
		}
		return is
	}
	return older
}

// key returns a short name for the workspace.
func (f *Fork) key() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(f.Workspace)))[:16] }

// keepIndexes keeps the indexes of the repositories. It reports whether they did not change meanwhile.
func (f *Fork) keepIndexes(x *snapshot.Index) (settled bool) {
	var repos []repository
	settled = true
	x.EachRepository(func(dir, top string) {
		from, to := filepath.Join(dir, "index"), filepath.Join(f.dir, gitIndex(len(repos)))
		if len(repos) == 0 && dir != f.GitDir {
			repos = append(repos, repository{Dir: f.GitDir})
			to = filepath.Join(f.dir, gitIndex(1))
		}
		repos = append(repos, repository{Dir: dir, Top: top})
		was, errWas := os.Stat(to)
		is, errIs := os.Stat(from)
		switch {
		case errIs != nil && errWas != nil: // nothing is tracked
		case errIs == nil && errWas == nil && sameIndexFile(was, is):
		default:
			settled = false
			_ = os.Remove(to)
			_ = keepFile(from, to)
		}
	})
	return writeSoon(filepath.Join(f.dir, reposFile), repos) == nil && settled
}

// absentBefore returns the tracked files that the workspace certainly did not have when the fork was made. settledDir
// reports whether a directory is as it was then.
func absentBefore(x *snapshot.Index, settledDir func(dir string) bool) []string {
	absent := []string{}
	for _, name := range x.Absent {
		from := path.Dir(name)
		for from != "." && x.Find(from) == nil {
			from = path.Dir(from)
		}
		if settledDir(from) {
			absent = append(absent, name)
		}
	}
	return absent
}

func sameIndexFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) || a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// bases returns the base of each file in the workspace.
type bases struct {
	fork     *Fork
	index    *snapshot.Index // nil if it was never taken
	contents *snapshot.Contents
	store    *snapshot.Store
	repos    []*tracked
	absent   []string // tracked files that did not exist at the beginning; sorted
	applied  map[string][]appliedFileState
	placed   map[string]bool // what inPlace found
}

// tracked is the kept index of a repository.
type tracked struct {
	repository
	file   string
	read   bool
	opened *git.Repository
	files  git.Tracked
}

// appliedFileState is the state of a file of the fork when it was applied.
type appliedFileState struct {
	Perm   fs.FileMode `json:"perm,omitempty"`
	Sum    [32]byte    `json:"sum,omitzero"`
	Size   int64       `json:"size,omitempty"`
	Target string      `json:"target,omitempty"`
	Dir    bool        `json:"dir,omitempty"`
	Gone   bool        `json:"gone,omitempty"`
	Kept   bool        `json:"kept,omitempty"` // the store has the content
	Turn   string      `json:"turn,omitempty"` // the turn that applied it; ignored if that was undone
}

func (f *Fork) bases(ctx context.Context) (*bases, error) {
	f.turns = nil
	missing := f.remember(ctx) // the process that had started this may have died
	if ctx.Err() != nil {
		return nil, missing
	}
	b := &bases{fork: f, store: f.contents(), applied: map[string][]appliedFileState{}, placed: map[string]bool{}}
	b.contents = snapshot.OpenContents(b.store, func(dir string) string { return dir })
	var err error
	b.index, err = snapshot.LoadFile(filepath.Join(f.dir, baseFile))
	if err != nil {
		b.index = nil // without an index, less can be merged
	}
	var repos []repository
	_ = workspace.ReadJSON(filepath.Join(f.dir, reposFile), jsonLimit, &repos)
	_ = workspace.ReadJSON(filepath.Join(f.dir, absentFile), filesLimit, &b.absent) // without it, git's index counts
	for i, r := range repos {
		b.repos = append(b.repos, &tracked{repository: r, file: filepath.Join(f.dir, gitIndex(i))})
	}
	err = workspace.ReadJSON(filepath.Join(f.dir, appliedFile), filesLimit, &b.applied)
	if workspace.Absent(err) {
		err = nil
	}
	return b, err
}

func (b *bases) close() {
	b.contents.Close()
	for _, r := range b.repos {
		if r.opened != nil {
			r.opened.Close()
		}
	}
}

// base is the state of a file at the beginning, or after the last Apply.
type base struct {
	known bool
	there bool
	mine  *side       // if not nil, the workspace's file is still the base
	perm  fs.FileMode // 0: unknown
	exec  *bool       // whether it is executable, if perm is unknown; nil: unknown too
	sum   [32]byte    // set if read is
	link  bool
	dir   bool
	read  func() ([]byte, error) // nil if the content is unknown
}

// of returns the base of a path. mine is its current file in the workspace.
func (b *bases) of(name string, mine *side) base {
	if a, ok := b.lastApplied(name); ok {
		return b.ofApplied(a)
	}
	still := base{known: true, there: true, mine: mine, dir: mine.isDir(), link: mine.isLink()}
	inPlace := mine != nil && b.inPlace(path.Dir(name))
	if mine != nil {
		still.perm = mine.status.Mode.Perm()
	}
	if inPlace && !mine.isDir() && b.fork.older(mine.status) {
		return still
	}
	if b.index == nil {
		return base{}
	}
	if file := b.index.Find(name); file != nil {
		switch {
		case file.Mode.IsDir(): // it changes with its content, which is checked separately
			return base{known: true, there: true, perm: file.Perm().Perm(), dir: true}
		case inPlace && !file.Later() && mine.status == file.Status:
			return still
		}
		if file.Later() || !file.Held() {
			return base{there: true}
		}
		return base{
			known: true, there: true, perm: file.Perm().Perm(), link: file.Target() != "",
			read: func() ([]byte, error) {
				if file.Target() != "" {
					return []byte(file.Target()), nil
				}
				return b.contents.Read(file)
			},
		}
	}
	if _, missing := slices.BinarySearch(b.absent, name); missing {
		return base{known: true}
	}
	return b.ofTracked(name)
}

// inPlace reports whether a directory of the workspace, and each one above it, is certainly the same as at the
// beginning. In a directory that was moved there, files may be older than the fork.
func (b *bases) inPlace(dir string) bool {
	is, known := b.placed[dir]
	if !known {
		info, err := os.Lstat(filepath.Join(b.fork.Workspace, filepath.FromSlash(dir)))
		is = err == nil && info.IsDir() && b.wasAt(dir, workspace.StatusOf(info))
		b.placed[dir] = is
	}
	return is
}

func (b *bases) wasAt(dir string, now workspace.Status) bool {
	if dir == "." {
		return b.fork.Inode == 0 || b.fork.Inode == now.Inode && b.fork.Device == now.Device
	}
	if b.index == nil {
		return false
	}
	was := b.index.Find(dir)
	return was != nil && was.Mode.IsDir() && was.Inode == now.Inode && was.Device == now.Device &&
		b.fork.older(was.Status) && b.inPlace(path.Dir(dir))
}

// lastApplied returns the state of a file that was last applied and not undone.
func (b *bases) lastApplied(name string) (a appliedFileState, ok bool) {
	for _, a := range slices.Backward(b.applied[name]) {
		if !b.fork.undone(a.Turn) {
			return a, true
		}
	}
	return a, false
}

func (b *bases) ofApplied(a appliedFileState) base {
	out := base{known: true, there: !a.Gone, perm: a.Perm, sum: a.Sum, link: a.Target != "", dir: a.Dir}
	switch {
	case out.link:
		out.read = func() ([]byte, error) { return []byte(a.Target), nil }
	case a.Kept:
		out.read = func() ([]byte, error) { return b.store.Get(a.Sum, a.Size) }
	}
	return out
}

// ofTracked returns the base of a file from git's kept index.
func (b *bases) ofTracked(name string) base {
	for i := len(b.repos) - 1; i >= 0; i-- {
		r := b.repos[i]
		rel := name
		if r.Top != "" {
			var ok bool
			if rel, ok = strings.CutPrefix(name, r.Top+"/"); !ok {
				continue
			}
		}
		if !r.read {
			r.read = true
			if opened, err := git.At(r.Dir); err == nil {
				r.opened = opened
				r.files, _ = opened.IndexAt(r.file)
			}
		}
		dir := strings.TrimSuffix(path.Dir(rel), ".")
		if e, ok := r.files.Find(dir, path.Base(rel)); ok {
			was := base{known: true, there: true, link: e.Link, read: func() ([]byte, error) {
				return r.opened.Blob(e.Blob, int64(e.Size))
			}}
			if r.opened.Modes() {
				was.exec = &e.Exec
			}
			return was
		}
	}
	return base{known: true}
}

// side is a current file, in the workspace or in the fork.
type side struct {
	status workspace.Status
	target string
	open   func() (*os.File, error)
	sum    *[32]byte
}

func (s *side) isDir() bool  { return s != nil && s.status.Mode.IsDir() }
func (s *side) isLink() bool { return s != nil && s.status.Mode&fs.ModeSymlink != 0 }
func (s *side) isFile() bool { return s != nil && s.status.Mode.IsRegular() }

// conclude makes the applied files the base of the next Apply.
func (a *applying) conclude() error {
	for name, s := range a.took {
		if last, ok := a.was.lastApplied(name); ok && last.same(s) {
			continue
		}
		s.Turn = a.journal.Turn
		if before := a.before[name]; before != nil && len(a.was.applied[name]) == 0 {
			a.was.applied[name] = append(a.was.applied[name], *before) // an undo restores this base
		}
		a.was.applied[name] = append(a.was.applied[name], s)
	}
	a.was.store.Close()
	if err := writeJSON(filepath.Join(a.dir, appliedFile), a.was.applied); err != nil {
		return err
	}
	if a.journal.Turn != "" || a.old.Turn != "" {
		a.Record.Applied = time.Now().UTC()
		if err := a.write(); err != nil {
			return err
		}
	}
	slices.Sort(a.out.Applied)
	slices.Sort(a.out.Merged)
	slices.Sort(a.out.Later)
	slices.SortFunc(a.out.Conflicts, func(x, y Conflict) int { return cmp.Compare(x.Path, y.Path) })
	return workspace.SyncDir(a.dir)
}
