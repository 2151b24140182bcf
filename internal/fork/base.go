package fork

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/git"
	"omniagent/internal/tree"
	"omniagent/internal/workspace"
)

const (
	baseFile    = "base"  // the index of what the workspace was
	copyIndex   = "begin" // that of a copy
	reposFile   = "repositories.json"
	contentsDir = "contents"
	appliedFile = "applied.json"
	baseTime    = time.Minute
	attempts    = 3
	// tick is how far the clock that the system stamps files with may be behind.
	tick = 20 * time.Millisecond
)

// repository is one whose index was kept.
type repository struct {
	Dir string `json:"dir"`
	Top string `json:"top"` // of its working tree, relative to the workspace
}

func gitIndex(i int) string { return fmt.Sprintf("index-%d", i) }

func (f *Fork) contents() *tree.Store { return tree.OpenStore(filepath.Join(f.dir, contentsDir)) }

// remember takes the base, if there is none. What git's index vouches for is not in it, because that index is kept too.
func (f *Fork) remember(ctx context.Context) error {
	to := filepath.Join(f.dir, baseFile)
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, baseTime)
	defer cancel()
	o := tree.Options{Store: f.contents(), FileLimit: 64 << 20, TotalLimit: 1 << 30, CountLimit: 100_000}
	if f.store.Except != nil {
		o.Except = tree.Except(f.Workspace, f.store.Except())
	}
	for try := 1; ; try++ {
		x, err := tree.Take(ctx, f.Workspace, o)
		if err != nil {
			return err
		}
		x.MarkLater(f.Made)
		settled := f.keepIndexes(x)
		if !settled && try < attempts {
			continue
		}
		return x.Without(func(name string) bool {
			file := x.Find(name)
			if file == nil || file.OfGit() || file.Mode.IsDir() {
				return true
			}
			doubtful := file.Changed > f.Made.Add(-tick).UnixNano()
			return !doubtful && (file.Ignored() || settled && file.Clean())
		}).SaveFile(to)
	}
}

// keepIndexes keeps the indexes of the repositories. It reports whether they were the same all the while.
func (f *Fork) keepIndexes(x *tree.Index) (settled bool) {
	var repos []repository
	settled = true
	x.EachRepository(func(dir, top string) {
		from, to := filepath.Join(dir, "index"), filepath.Join(f.dir, gitIndex(len(repos)))
		if len(repos) == 0 && dir != f.GitDir {
			repos = append(repos, repository{f.GitDir, ""})
			to = filepath.Join(f.dir, gitIndex(1))
		}
		repos = append(repos, repository{dir, top})
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
	return writeJSON(filepath.Join(f.dir, reposFile), repos) == nil && settled
}

func sameIndexFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) || a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// bases knows what the files of the workspace were.
type bases struct {
	fork     *Fork
	index    *tree.Index // nil: it was never taken
	contents *tree.Contents
	store    *tree.Store
	repos    []*tracked
	applied  map[string]appliedFileState
}

// tracked is the kept index of a repository.
type tracked struct {
	repository
	file   string
	read   bool
	opened *git.Repository
	files  git.Tracked
}

// appliedFileState is what a file of the fork was when it was brought home.
type appliedFileState struct {
	Perm   fs.FileMode `json:"perm,omitempty"`
	Sum    [32]byte    `json:"sum,omitzero"`
	Size   int64       `json:"size,omitempty"`
	Target string      `json:"target,omitempty"`
	Dir    bool        `json:"dir,omitempty"`
	Gone   bool        `json:"gone,omitempty"`
	Kept   bool        `json:"kept,omitempty"` // the store has the content
}

func (f *Fork) bases() (*bases, error) {
	b := &bases{fork: f, store: f.contents(), applied: map[string]appliedFileState{}}
	b.contents = tree.OpenContents(b.store, func(dir string) string { return dir })
	var err error
	b.index, err = tree.LoadFile(filepath.Join(f.dir, baseFile))
	if err != nil {
		b.index = nil // then less can be merged
	}
	var repos []repository
	_ = readJSON(filepath.Join(f.dir, reposFile), &repos)
	for i, r := range repos {
		b.repos = append(b.repos, &tracked{repository: r, file: filepath.Join(f.dir, gitIndex(i))})
	}
	err = readJSON(filepath.Join(f.dir, appliedFile), &b.applied)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.FileMissing) {
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

// base is what a file was.
type base struct {
	known bool
	there bool
	mine  *side // it is still that
	perm  fs.FileMode
	sum   [32]byte // with read
	link  bool
	dir   bool
	read  func() ([]byte, error) // nil: the content is not known
}

// of returns what a path was. mine is what it is in the workspace.
func (b *bases) of(name string, mine *side) base {
	if a, ok := b.applied[name]; ok {
		return b.ofApplied(a)
	}
	still := base{known: true, there: true, mine: mine, dir: mine.isDir(), link: mine.isLink()}
	if mine != nil {
		still.perm = mine.status.Mode.Perm()
		// a directory changes with everything in it; a file that a user made there is looked at by itself
		if mine.isDir() || mine.status.Changed < b.fork.Made.Add(-tick).UnixNano() {
			return still
		}
	}
	if b.index == nil {
		return base{}
	}
	if file := b.index.Find(name); file != nil {
		if !file.Later() && mine != nil && mine.status == file.Status {
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
	return b.ofTracked(name)
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

// ofTracked returns what git's index of the beginning says.
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
			return base{known: true, there: true, read: func() ([]byte, error) {
				return r.opened.Blob(e.Blob, int64(e.Size))
			}}
		}
	}
	return base{known: true}
}

// side is a file as it is now, in the workspace or in the fork.
type side struct {
	status workspace.Status
	target string
	open   func() (*os.File, error)
	sum    *[32]byte
}

func (s *side) isDir() bool  { return s != nil && s.status.Mode.IsDir() }
func (s *side) isLink() bool { return s != nil && s.status.Mode&fs.ModeSymlink != 0 }
func (s *side) isFile() bool { return s != nil && s.status.Mode.IsRegular() }
