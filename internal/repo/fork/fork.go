// Package fork makes private copies of a workspace for programs to work in, and merges their changes back.
//
//	f, err := store.Make(ctx, fork.Wanted{Dir: dir, Name: "try"}) // or store.Open("try")
//	work, err := f.Start(ctx, plan, fork.Net{})                  // a program, in the fork
//	ending := work.Wait()
//	changes, err := f.Changes(ctx)                                // what differs from the beginning
//	out, err := f.Apply(ctx, snapshots, fork.Request{})           // three-way, into the workspace
//	freed, err := f.Delete(ctx)
//
// A fork begins with everything that the workspace has, including untracked and ignored files. There are three ways to
// make one, called tiers:
//
//   - Overlay: the programs of the fork see, at the path of the workspace, a layer over it. The layer only has the
//     differences, so a fork costs nothing until something is written. Each fork has its own network. This needs Linux
//     with namespaces for users. Later changes of the workspace are visible in the fork, in files that it has not
//     changed.
//   - Reflink: a copy of each file that shares its blocks with the original, where the file system can.
//   - Copy: a copy of each file.
//
// A fork protects the workspace from mistakes. It is not a sandbox: its programs can still change everything else.
//
// Everything that belongs to a fork is in one directory of the Store, with the name of the fork: the record, the layers
// or the copy, and the base, which is the state of the workspace at the beginning. Delete removes only that directory.
// The base consists of a copy of git's index, and of an index with the contents of files that git's does not cover. It
// is taken while the first program is already running, which cannot change the workspace.
//
// Apply makes a three-way merge of each file: base, workspace, fork. Changes in different places of a text are
// combined; conflicting ones get git's conflict markers. Files that cannot be merged stay unchanged in the workspace.
// Commits are added to the workspace's branch if neither the branch nor the index has changed, and otherwise to a new
// branch. All results are computed before the first file is written, so that the next Apply can complete one that was
// killed. Applied files become the new base.
package fork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/sandbox"
)

// Tier is a way to make a fork.
type Tier string

// The tiers, the best first.
const (
	Overlay Tier = "overlay"
	Reflink Tier = "reflink"
	Copy    Tier = "copy"
)

// Tiers returns all tiers, the best first.
func Tiers() []Tier { return []Tier{Overlay, Reflink, Copy} }

// Store is the directory of a user's forks. Several processes may use it at once.
type Store struct {
	Dir      string           // absolute
	Programs process.Programs // starts git
	// Root returns the workspace of a directory, or an error if it cannot be forked.
	Root func(dir string) (string, error)
	// Undone reports whether a turn of a workspace was undone, if there still is a record of it. It may be nil.
	Undone func(workspace, turn string) (undone, known bool)
}

// Wanted describes a fork to make.
type Wanted struct {
	Dir  string // a directory in the workspace
	Name string // empty to choose one
	Tier Tier   // empty for the best that works
}

// Record is the stored description of a fork.
type Record struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Workspace string    `json:"workspace"`        // its top directory
	Inode     uint64    `json:"inode,omitempty"`  // of that directory
	Device    uint64    `json:"device,omitempty"` // of that directory
	Tier      Tier      `json:"tier"`
	Made      time.Time `json:"made"`
	Applied   time.Time `json:"applied,omitzero"` // when it was last applied
	// of the workspace's repository: at the beginning, and after each Apply
	Heads  []head          `json:"heads,omitempty"`
	GitDir string          `json:"git_dir,omitempty"`
	Common string          `json:"common,omitempty"`
	Layers []sandbox.Layer `json:"layers,omitempty"`
}

// Fork is a fork.
type Fork struct {
	Record
	store Store
	dir   string
	data  data            // of the workspace's repositories, while the fork is made
	turns map[string]bool // whether turns were undone, if known
	aside map[string]Version
}

const (
	recordFile = "fork.json"
	lockFile   = "lock"
	layersDir  = "layers"
	copyDir    = "tree"
	openDir    = "open" // records of the programs in the fork
	gone       = ".deleted-"
	making     = ".making-"
	lockWait   = 30 * time.Second
	jsonLimit  = 16 << 20
	filesLimit = 1 << 30 // of a record that has an entry for each file that was brought, of some 400 bytes
)

// checkName checks the name of a fork.
func checkName(name string) error {
	if regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(name) && !strings.HasSuffix(name, ".lock") &&
		!strings.Contains(name, "..") && !strings.HasSuffix(name, ".") {
		return nil
	}
	return fault.New(fault.ArgError, "%q cannot name a fork: use letters, digits, - and _, and dots in between", name).
		Hint("a name such as fix-login")
}

func (s Store) at(name string) string { return filepath.Join(s.Dir, name) }

// Open returns the fork with a name.
func (s Store) Open(name string) (*Fork, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	f := &Fork{store: s, dir: s.at(name)}
	err := workspace.ReadJSON(filepath.Join(f.dir, recordFile), jsonLimit, &f.Record)
	switch {
	case workspace.Absent(err):
		return nil, fault.New(fault.NotFoundCode, "there is no fork %s", name).Hint("omniagent fork list")
	case err != nil:
		return nil, fault.New(fault.Unsafe, "the record of the fork %s is damaged: %v", name, err).
			Hint("omniagent fork delete %s --confirm-destructive", name)
	}
	return f, nil
}

// List returns all forks, the newest first.
func (s Store) List() ([]*Fork, error) {
	s.sweep()
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !workspace.Absent(err) {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be read: %s", s.Dir, fault.Bare(err)).Because(err)
	}
	var all []*Fork
	for _, e := range entries {
		if f, err := s.Open(e.Name()); err == nil {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b *Fork) int { return strings.Compare(b.ID, a.ID) })
	return all, nil
}

// Around returns the fork that this process runs in, for a directory, or nil.
func (s Store) Around(dir string) *Fork {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	if rel, within := pathname.In(s.Dir, real); within {
		name, _, _ := strings.Cut(rel, string(filepath.Separator))
		if f, err := s.Open(name); err == nil && pathname.Within(f.tree(), real) {
			return f
		}
	}
	if id, ours := strings.CutPrefix(sandbox.LayersAt(real), markPrefix); ours {
		all, _ := s.List()
		for _, f := range all {
			if f.ID == id {
				return f
			}
		}
	}
	return nil
}

// mark returns the name of the layers in mount tables.
func (f *Fork) mark() string { return markPrefix + f.ID }

const markPrefix = "omniagent-fork-"

// State returns a directory for records about the workspace's paths, whose content differs in the fork.
func (f *Fork) State() string { return filepath.Join(f.dir, "state") }

// tree returns the directory of the copy, for forks that are copies.
func (f *Fork) tree() string { return filepath.Join(f.dir, copyDir) }

// Place returns a directory of the workspace as the programs of the fork see it.
func (f *Fork) Place(dir string) string {
	dir = pathname.Real(dir)
	rel, within := pathname.In(f.Workspace, dir)
	if f.Tier == Overlay || !within {
		return dir
	}
	return filepath.Join(f.tree(), rel)
}

// Roots returns the private directories, as the programs of the fork see them.
func (f *Fork) Roots() (dirs []string) {
	for _, l := range f.Layers {
		dirs = append(dirs, l.Lower)
	}
	if len(dirs) == 0 {
		dirs = []string{f.tree()}
	}
	return dirs
}

// Covers reports whether programs of the fork have a directory of their own at a path.
func (f *Fork) Covers(dir string) bool {
	return slices.ContainsFunc(f.Roots(), func(root string) bool { return pathname.Within(root, dir) })
}

// Make makes a fork. If no tier works, the fault says why for each.
func (s Store) Make(ctx context.Context, w Wanted) (*Fork, error) {
	if w.Name != "" {
		if err := checkName(w.Name); err != nil {
			return nil, err
		}
	}
	root, err := s.Root(w.Dir)
	if err != nil {
		return nil, err
	}
	if in := s.Around(root); in != nil {
		return nil, fault.New(fault.Conflicting, "this is the fork %s, and a fork cannot have forks", in.Name).
			Hint("run it outside of the fork, in %s", in.Workspace)
	}
	if pathname.Within(root, s.Dir) {
		return nil, fault.New(fault.Unsafe, "forks of %s would lie in it, in %s", root, s.Dir).
			Hint("work in a directory inside it, or set XDG_STATE_HOME to a directory outside")
	}
	if err := workspace.MkdirAll(s.Dir); err != nil {
		return nil, err
	}
	f := &Fork{store: s, Record: Record{ID: ident.Ordered(), Workspace: root, Made: time.Now().UTC()}}
	if info, err := os.Stat(root); err == nil {
		s := workspace.StatusOf(info)
		f.Inode, f.Device = s.Inode, s.Device
	}
	if opened, err := git.Open(root); err == nil {
		f.GitDir, f.Common = pathname.Real(opened.Dir()), pathname.Real(opened.Common())
		opened.Close()
		if h, err := f.home().Head(); err == nil { // otherwise commits cannot be applied
			f.Heads = append(f.Heads, head{Head: h, Index: gitIndex(0)})
		}
	}
	f.data = dataOf(root, nestedDepth)
	f.dir = filepath.Join(s.Dir, making+f.ID)
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return nil, fault.New(fault.PermissionDenied, "no fork can be made in %s: %s", s.Dir, fault.Bare(err)).
			Because(err)
	}
	if err := f.build(ctx, w); err != nil {
		_ = workspace.Purge(f.dir)
		return nil, err
	}
	return f, nil
}

// build fills the directory of the fork, and gives it its name.
func (f *Fork) build(ctx context.Context, w Wanted) error {
	held, err := workspace.Lock(ctx, filepath.Join(f.dir, lockFile), 0)
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	if err := f.choose(ctx, w.Tier); err != nil {
		return err
	}
	if f.GitDir != "" { // takes no space until the index changes
		_ = keepFile(filepath.Join(f.GitDir, "index"), filepath.Join(f.dir, gitIndex(0)))
	}
	base := slug(filepath.Base(f.Workspace))
	for n := 1; ; n++ {
		f.Name = cmp.Or(w.Name, fmt.Sprintf("%s-%d", base, n))
		to := f.store.at(f.Name)
		_, err := os.Lstat(to)
		taken := err == nil
		if !taken {
			f.Layers = f.layersIn(to)
			if err := writeSoon(filepath.Join(f.dir, recordFile), f.Record); err != nil {
				return err
			}
			if err = os.Rename(f.dir, to); err == nil {
				f.dir = to
				return nil
			}
			_, errThere := os.Lstat(to)
			taken = errThere == nil || errors.Is(err, fs.ErrExist) // another process was faster
		}
		switch {
		case !taken:
			return fault.New(fault.PermissionDenied, "the fork cannot be named %s: %s", f.Name, fault.Bare(err)).
				Because(err)
		case w.Name != "":
			return fault.New(fault.AlreadyExists, "the fork %s already exists", f.Name).
				Hint("give it another name")
		}
	}
}

// slug converts a name to a valid name of a fork.
func slug(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(name, "-"), "-_")
	if name == "" {
		return "fork"
	}
	return name[:min(len(name), 40)]
}

// OpenToDelete returns the fork with a name, also if its record is damaged: then only the name is known.
func (s Store) OpenToDelete(name string) (*Fork, error) {
	f, err := s.Open(name)
	if errors.Is(err, fault.Unsafe) {
		return &Fork{store: s, dir: s.at(name), Record: Record{Name: name, ID: name}}, nil
	}
	return f, err
}

// lock locks the fork against other processes.
func (f *Fork) lock(ctx context.Context) (*workspace.FileLock, error) {
	if _, err := os.Lstat(filepath.Join(f.dir, recordFile)); err != nil {
		return nil, fault.New(fault.NotFoundCode, "the fork %s was deleted", f.Name).Hint("omniagent fork list")
	}
	return workspace.Lock(ctx, filepath.Join(f.dir, lockFile), lockWait)
}

func (f *Fork) write() error { return writeJSON(filepath.Join(f.dir, recordFile), f.Record) }

// Delete deletes the fork, and returns how many bytes that freed. It refuses while programs run in it.
func (f *Fork) Delete(ctx context.Context) (freed int64, err error) {
	held, err := f.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = held.Unlock() }()
	if err := f.Idle(); err != nil {
		return 0, err
	}
	freed = f.Size()
	away := f.store.at(gone + f.ID)
	if err := os.Rename(f.dir, away); err != nil {
		return 0, fault.New(fault.PermissionDenied, "the fork %s cannot be deleted: %s", f.Name, fault.Bare(err)).
			Because(err)
	}
	if err := workspace.Purge(away); err != nil {
		return 0, fault.New(fault.PermissionDenied, "not all of the fork %s can be deleted: %s", f.Name,
			fault.Bare(err)).Because(err)
	}
	return freed, nil
}

// Size returns the bytes that the fork takes on disk. It does not count files with other names, such as git's index.
func (f *Fork) Size() int64 {
	var bytes int64
	_ = filepath.WalkDir(f.dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			if info, err := e.Info(); err == nil {
				bytes += onDisk(info)
			}
		}
		return nil
	})
	return bytes
}

// sweep removes the leftovers of killed processes: incomplete or partly deleted forks.
func (s Store) sweep() {
	for _, prefix := range []string{gone, making} {
		left, _ := filepath.Glob(filepath.Join(s.Dir, prefix+"*"))
		for _, dir := range left {
			lock := filepath.Join(dir, lockFile)
			if _, held := workspace.HolderOf(lock); held {
				continue
			}
			info, err := os.Lstat(dir)
			if err == nil && (prefix == gone || time.Since(info.ModTime()) > time.Minute) {
				_ = workspace.Purge(dir)
			}
		}
	}
}

func writeJSON(path string, from any) error {
	return workspace.WriteJSON(path, from, workspace.Replace)
}

// writeSoon is writeJSON for a file that several processes may write.
func writeSoon(path string, from any) error {
	return workspace.WriteJSON(path, from, workspace.WriteDerived)
}

// Net describes the network of programs.
type Net struct {
	Word string // the requested network, for comparison; empty for any
	sandbox.Network
}

// Work is a program in a fork.
type Work struct {
	*process.Child
	fork   *Fork
	spaces sandbox.Spaces
	alive  *workspace.FileLock
	file   string
	over   chan struct{} // closed when the program has ended
	based  chan error    // receives why there is no base, or nil
}
