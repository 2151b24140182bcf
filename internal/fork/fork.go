// Package fork makes private copies of a workspace in which programs work, and brings home what they did there.
//
//	f, err := store.Make(ctx, fork.Wanted{Dir: dir, Name: "try"}) // or store.Open("try")
//	work, err := f.Start(ctx, plan, fork.Net{})                  // a program, in the fork
//	ending := work.Wait()
//	changes, err := f.Changes(ctx)                                // what differs from the beginning
//	out, err := f.Apply(ctx, snapshots)                           // three-way, into the workspace
//	freed, err := f.Delete(ctx)
//
// A fork has everything that the workspace has when it is made: also what git does not track or ignores. There are
// three ways to make one, its tier:
//
//   - Overlay: the programs of the fork see, at the path of the workspace, a layer over it. The layer has what differs,
//     so a fork costs nothing until something is written. Each fork has a network of its own. Linux alone has this,
//     where users may make namespaces. What somebody changes in the workspace meanwhile is seen in the fork too, in
//     the files that the fork has not changed.
//   - Reflink: a copy of each file that shares its blocks with the original, where the file system can.
//   - Copy: a copy of each file.
//
// A fork keeps mistakes away from a workspace. It does not contain them: what its programs do elsewhere, they really
// do.
//
// What belongs to a fork lies in one directory of the Store, after which it is named: the record, the layers or the
// copy, and the base, which is what the workspace was. Delete removes that directory and nothing else. The base is an
// index of what git's own index does not vouch for, with the contents, beside that index. It is taken while the first
// program already works, because that cannot change the workspace.
//
// Apply merges file by file: base, workspace, fork. Of two changes in different places of a text both count; where they
// meet, the text gets marks as git writes them. What cannot be merged is left as it is in the workspace. Commits become
// commits of the workspace's branch if neither that nor the index has moved, else a branch of their own. The result of
// each file is known before the first one is written, so an Apply that was killed is completed by the next one. What is
// brought home counts as the base from then on.
package fork

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/git"
	"omniagent/internal/ident"
	"omniagent/internal/process"
	"omniagent/internal/sandbox"
	"omniagent/internal/tree"
	"omniagent/internal/workspace"
)

// Tier is the way in which a fork is made.
type Tier string

// The tiers, the best first.
const (
	Overlay Tier = "overlay"
	Reflink Tier = "reflink"
	Copy    Tier = "copy"
)

// Tiers returns all of them.
func Tiers() []Tier { return []Tier{Overlay, Reflink, Copy} }

// Store is the directory with all forks of a user. Any number of processes may use it.
type Store struct {
	Dir string // absolute
	// Root returns the workspace in which a directory is, or why it cannot be forked.
	Root func(dir string) (string, error)
	// Undone reports whether a turn of a workspace was taken back; nil: none was.
	Undone func(workspace, turn string) bool
}

// Wanted describes a fork to make.
type Wanted struct {
	Dir  string // in the workspace
	Name string // empty: one is chosen
	Tier Tier   // empty: the best that works
}

// Record is what is known of a fork.
type Record struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Workspace string    `json:"workspace"` // its top
	Tier      Tier      `json:"tier"`
	Made      time.Time `json:"made"`
	Applied   time.Time `json:"applied,omitzero"` // the last time
	// of the workspace's repository: at the beginning, after an Apply
	Heads  []head          `json:"heads,omitempty"`
	GitDir string          `json:"git_dir,omitempty"`
	Common string          `json:"common,omitempty"`
	Layers []sandbox.Layer `json:"layers,omitempty"`
	Copies map[Tier]string `json:"-"`
}

// Fork is a fork.
type Fork struct {
	Record
	store Store
	dir   string
	turns map[string]bool // that were taken back or not, as far as it is known
}

const (
	recordFile = "fork.json"
	lockFile   = "lock"
	layersDir  = "layers"
	copyDir    = "tree"
	openDir    = "open" // what runs in the fork
	gone       = ".deleted-"
	making     = ".making-"
	lockWait   = 30 * time.Second
	jsonLimit  = 16 << 20
)

// CheckName returns what is wrong with the name of a fork.
func CheckName(name string) error {
	if regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString(name) && !strings.HasSuffix(name, ".lock") &&
		!strings.Contains(name, "..") && !strings.HasSuffix(name, ".") {
		return nil
	}
	return fault.New(fault.ArgError, "%q cannot name a fork: letters, digits, - and _ can, and dots in between", name)
}

func (s Store) at(name string) string { return filepath.Join(s.Dir, name) }

// Open returns the fork of a name.
func (s Store) Open(name string) (*Fork, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	f := &Fork{store: s, dir: s.at(name)}
	err := readJSON(filepath.Join(f.dir, recordFile), &f.Record)
	switch {
	case absent(err):
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
	if err != nil && !absent(err) {
		return nil, fault.New(fault.PermissionDenied, "%s cannot be read: %s", s.Dir, tree.Reason(err)).Because(err)
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

// Around returns the fork in which this process works in a directory, or nil.
func (s Store) Around(dir string) *Fork {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	if rel, err := filepath.Rel(s.Dir, real); err == nil && filepath.IsLocal(rel) {
		name, _, _ := strings.Cut(rel, string(filepath.Separator))
		if f, err := s.Open(name); err == nil && within(f.tree(), real) {
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

// mark is what mount tables call the layers.
func (f *Fork) mark() string { return markPrefix + f.ID }

const markPrefix = "omniagent-fork-"

// State is a directory for what belongs to the paths of the workspace, which are others in the fork: the record of
// walls.
func (f *Fork) State() string { return filepath.Join(f.dir, "state") }

// tree is where a fork that is a copy lies.
func (f *Fork) tree() string { return filepath.Join(f.dir, copyDir) }

// Place returns where a directory of the workspace is for the programs of the fork.
func (f *Fork) Place(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, err := filepath.Rel(f.Workspace, dir)
	if f.Tier == Overlay || err != nil || !filepath.IsLocal(rel) {
		return dir
	}
	return filepath.Join(f.tree(), rel)
}

// Roots are the directories that are private, as the programs of the fork see them.
func (f *Fork) Roots() (dirs []string) {
	for _, l := range f.Layers {
		dirs = append(dirs, l.Lower)
	}
	if len(dirs) == 0 {
		dirs = []string{f.tree()}
	}
	return dirs
}

// Make makes a fork. If no tier is possible, the fault says why for each.
func (s Store) Make(ctx context.Context, w Wanted) (*Fork, error) {
	if w.Name != "" {
		if err := CheckName(w.Name); err != nil {
			return nil, err
		}
	}
	root, err := s.Root(w.Dir)
	if err != nil {
		return nil, err
	}
	if in := s.Around(root); in != nil {
		return nil, fault.New(fault.Conflicting, "this is the fork %s already, and a fork has no forks", in.Name).
			Hint("call it outside of the fork, in %s", in.Workspace)
	}
	if within(root, s.Dir) {
		return nil, fault.New(fault.Unsafe, "forks of %s would lie in it, in %s", root, s.Dir).
			Hint("work in a directory inside it, or set XDG_STATE_HOME to a directory outside")
	}
	if err := workspace.MkdirAll(s.Dir); err != nil {
		return nil, err
	}
	f := &Fork{store: s, Record: Record{ID: ident.Ordered(), Workspace: root, Made: time.Now().UTC()}}
	if opened, err := git.Open(root); err == nil {
		f.GitDir, f.Common = opened.Dir(), opened.Common()
		opened.Close()
		if h, err := f.home().head(); err == nil { // else no commits can be brought home
			h.Index = gitIndex(0)
			f.Heads = append(f.Heads, h)
		}
	}
	f.dir = filepath.Join(s.Dir, making+f.ID)
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return nil, fault.New(fault.PermissionDenied, "no fork can be made in %s: %s", s.Dir, tree.Reason(err)).
			Because(err)
	}
	if err := f.build(ctx, w); err != nil {
		_ = purge(f.dir)
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
	if f.GitDir != "" { // as long as nobody stages anything, it takes no room
		_ = keepFile(filepath.Join(f.GitDir, "index"), filepath.Join(f.dir, gitIndex(0)))
	}
	base, names := slug(filepath.Base(f.Workspace)), []string{w.Name}
	if w.Name == "" {
		names = nil
		for n := 1; n <= mostNames; n++ {
			names = append(names, fmt.Sprintf("%s-%d", base, n))
		}
	}
	for _, f.Name = range names {
		to := f.store.at(f.Name)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		f.Layers = f.layersIn(to)
		if err := writeSoon(filepath.Join(f.dir, recordFile), f.Record); err != nil {
			return err
		}
		if err := os.Rename(f.dir, to); err == nil { // fails if another process was faster
			f.dir = to
			return nil
		}
	}
	return fault.New(fault.AlreadyExists, "there is a fork %s already", f.Name).
		Hint("omniagent fork delete %s, or another name", f.Name)
}

// mostNames is how many names of a workspace's forks are tried.
const mostNames = 10_000

// slug is a name made fit to be that of a fork.
func slug(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(name, "-"), "-_")
	if name == "" {
		return "fork"
	}
	return name[:min(len(name), 40)]
}

// lock keeps other processes away from the fork.
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
	if n := len(f.Running()); n > 0 {
		return 0, fault.New(fault.Conflicting, "%d programs run in the fork %s", n, f.Name).
			Hint("end them first; omniagent fork list shows their processes")
	}
	freed = f.Size()
	away := f.store.at(gone + f.ID)
	if err := os.Rename(f.dir, away); err != nil {
		return 0, fault.New(fault.PermissionDenied, "the fork %s cannot be deleted: %s", f.Name, tree.Reason(err)).
			Because(err)
	}
	if err := purge(away); err != nil {
		return 0, fault.New(fault.PermissionDenied, "not all of the fork %s can be deleted: %s", f.Name,
			tree.Reason(err)).Because(err)
	}
	return freed, nil
}

// Size is how many bytes the fork takes on disk. What others have too, such as git's index, is not counted.
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

// sweep removes what killed processes have left: forks half made, or half deleted.
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
				_ = purge(dir)
			}
		}
	}
}

// purge removes a directory with all in it, also what nobody may write, and what the kernel has made for overlays.
func purge(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// absent reports whether an error says that there is nothing at a path, or a file above it.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fault.FileMissing) || errors.Is(err, syscall.ENOTDIR)
}

// within reports whether a path is a directory or beneath it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func readJSON(path string, to any) error {
	data, err := workspace.ReadFile(path, jsonLimit)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	return err
}

func writeJSON(path string, from any) error { return writeAs(path, from, workspace.Replace) }

// writeSoon does not wait for the disk.
func writeSoon(path string, from any) error { return writeAs(path, from, workspace.WriteDerived) }

func writeAs(path string, from any, write func(string, []byte, os.FileMode) error) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fault.New(fault.Internal, "%s cannot be written: %v", path, err)
	}
	return write(path, data, 0o600)
}

// Running are the processes that have started programs in the fork.
func (f *Fork) Running() (pids []int) {
	for _, m := range f.members() {
		pids = append(pids, m.PID)
	}
	return pids
}

// member is a process that has started a program in the fork.
type member struct {
	PID     int    `json:"pid"`
	Net     string `json:"net"`               // what was asked for
	User    uint64 `json:"user,omitempty"`    // descriptors of its namespaces
	Mount   uint64 `json:"mount,omitempty"`   //
	Network uint64 `json:"network,omitempty"` // 0: that of the machine
	Proxy   int    `json:"proxy,omitempty"`
}

// members are the processes that live.
func (f *Fork) members() (all []member) {
	files, _ := filepath.Glob(filepath.Join(f.dir, openDir, "*.json"))
	for _, file := range files {
		lock := strings.TrimSuffix(file, ".json")
		if _, held := workspace.HolderOf(lock); !held {
			_ = os.Remove(file)
			_ = os.Remove(lock)
			continue
		}
		var m member
		if readJSON(file, &m) == nil {
			all = append(all, m)
		}
	}
	return all
}

// Net says which network programs have.
type Net struct {
	Word string // what was asked for, to tell it from another; empty: any
	sandbox.Network
}

// Work is a program in a fork.
type Work struct {
	*process.Child
	fork   *Fork
	spaces sandbox.Spaces
	alive  *workspace.FileLock
	file   string
	over   chan struct{} // closed when it has ended
	based  chan error    // why there is no base
}
