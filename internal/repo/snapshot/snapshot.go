// Package snapshot tells what changed in a directory between two moments, whichever program changed it.
//
//	before, err := snapshot.Take(ctx, root, snapshot.Options{Store: store})
//	// an agent works, with its own tools and through a shell
//	after, err := snapshot.Take(ctx, root, snapshot.Options{Store: store, Since: before})
//	changes := snapshot.Diff(before, after)
//	err = changes.Count(ctx, store)    // lines added and removed
//	err = changes.Patch(ctx, store, w) // a unified diff, as git apply takes it
//
// An Index has the status of every file below a root: size, times, inode, mode, and the target of a link. No program
// can change a file and keep its status, because the system sets the time of the last change. A file changed as
// recently as the walk is the exception: a further change within the same tick of the clock leaves the same status.
// Take hashes the content of these. A directory with the status that it had has the same names, and is not read again.
//
// A diff needs the content that a file had. What the object store of git has as it is, is read there, when it is
// needed. Take keeps the rest in a Store: files that are modified or untracked, or all of them without a repository.
// The repository's programs never run, and nothing is written into it.
//
// Package snapshot never follows a link, never opens anything but a regular file, and never reads a file that is larger
// than a limit. What it could not read or keep is a Gap of the index. It does not notice:
//
//   - a change of owner, access list or extended attribute by itself;
//   - a change within a tick in a file that .gitignore excludes, or on a file system whose clock is another one;
//   - a commit, if .git is not below the root;
//   - what a repository says of itself wrongly: a blob is what its index names for a file of this status. With Whole,
//     that is believed only without Since.
package snapshot

import (
	"context"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/repo/git"
	"omniagent/internal/sys/workspace"
)

// Options say what Take does besides walking.
type Options struct {
	// Store keeps the content that a later diff needs; nil keeps nothing.
	Store *Store
	// Since is an earlier index of the root. Take reads what is not as it was then, so that Diff can tell a file that
	// was only touched from one that changed.
	Since *Index
	// Except reports whether a name in a directory, given relative to the root with slashes, is left out; nil: nothing
	// is.
	Except func(dir, name string) bool
	// Whole asks for all that is needed to restore the root: also ignored files, and all of .git except its objects.
	Whole bool
	// Absent asks for Index.Absent.
	Absent bool
	// Private reports whether a content must not be kept; nil: all may be kept.
	Private func(content []byte) bool
	// GitDir says that the root is itself a directory .git.
	GitDir bool
	// IgnoredLimit is how many bytes of ignored files Take keeps with Whole. The smallest files and directories come
	// first.
	IgnoredLimit int64
	// The limits of the content that one call keeps. 0 means the default.
	FileLimit  int64 // bytes of a file, 4 MiB
	TotalLimit int64 // bytes together, 256 MiB
	CountLimit int   // files, 20,000
}

func (o Options) withDefaults() Options {
	if o.FileLimit == 0 {
		o.FileLimit = 4 << 20
	}
	if o.TotalLimit == 0 {
		o.TotalLimit = 256 << 20
	}
	if o.CountLimit == 0 {
		o.CountLimit = 20_000
	}
	return o
}

// Except returns an Options.Except for absolute paths of files and directories. Those outside of the root are ignored.
func Except(root string, paths []string) func(dir, name string) bool {
	names := map[string]bool{}
	for _, full := range paths {
		if rel, within := pathname.In(root, full); within {
			names[filepath.ToSlash(rel)] = true
		}
	}
	return func(dir, name string) bool { return len(names) > 0 && names[path.Join(dir, name)] }
}

// Index is the state of all files below a root at one moment.
type Index struct {
	Root  string    // absolute
	Taken time.Time // when the walk began
	Gaps  []Gap     // what the index does not have, sorted by path
	// Unrepresented are files that an index cannot represent, set by Take with Whole: those with names outside of the
	// root, and those that are neither files, directories nor links. For an ignored file it has the topmost ignored
	// directory. They are sorted by path.
	Unrepresented []Gap

	// Absent are the files that git tracks and that do not exist, sorted, if Options.Absent asked for them. A loaded
	// index has none.
	Absent []string

	folders []*folder // sorted by path
	// top is the root itself, whose path is "."; nil if the root is a .git or does not exist.
	top *fileEntry
}

// Gap is something that an index does not have.
type Gap struct {
	Path   string `json:"path"` // relative to the root, with slashes
	Reason string `json:"reason"`
	// Unread means that nothing is known of the file, or of the directory and everything below it. Otherwise only the
	// content is missing.
	Unread bool `json:"unread"`
}

// Len returns the number of files, with directories and ignored files.
func (x *Index) Len() int {
	n := 0
	for _, f := range x.folders {
		n += len(f.entries)
	}
	return n
}

// folder is a directory of an index.
type folder struct {
	path       string      // "" for the root
	entries    []fileEntry // sorted by name
	repository *repository
	complete   bool // entries are all its names
	ofGit      bool // in the state of git; set only by Take
}

// fileEntry is a file in a folder.
type fileEntry struct {
	name string
	workspace.Status
	target  string // of a link
	about   about
	linked  bool     // it has other names; set only by Take
	content *content // nil if it is not known
}

// about are flags that say how a change of a file counts.
type about uint8

const (
	ignored    about = 1 << iota // .gitignore excludes it, and git does not track it
	stateOfGit                   // it is in a directory .git
	recent                       // its status alone does not prove that it is unchanged
	later                        // see MarkLater
)

// content identifies the bytes of a file.
type content struct {
	sum        [32]byte // SHA-256; zero if the bytes were not read
	blob       git.ID   // in the repository; zero if there is none, or the bytes were not read
	kept       bool     // the store has it
	repository *repository
	inGit      bool // the repository has the blob
}

// repository is a git repository to which some folders belong.
type repository struct {
	dir string // its own directory, absolute
	top string // of the working tree, relative to the root
	// prefix is the path of the root in the working tree, if the tree begins above the root.
	prefix string
	// conversions are what git may do to files that it writes; nil in an index that was loaded.
	conversions *git.Conversions
}

// path returns the path of a folder of the index in the repository.
func (r *repository) path(folder string) string {
	return path.Join(r.prefix, strings.TrimPrefix(strings.TrimPrefix(folder, r.top), "/"))
}

// folder is the inverse of path. beneath reports whether the folder is the root or below it.
func (r *repository) folder(dir string) (at string, beneath bool) {
	switch {
	case r.prefix == "":
	case dir == r.prefix:
		dir = ""
	default:
		if dir, beneath = strings.CutPrefix(dir, r.prefix+"/"); !beneath {
			return "", false
		}
	}
	return path.Join(r.top, dir), true
}

func (f *folder) join(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "/" + name
}

// Nothing returns the index of a directory that does not exist.
func Nothing(root string) *Index {
	return &Index{Root: root, Taken: time.Now(), folders: []*folder{{}}}
}

// Take makes the index of a directory. It fails if root cannot be read at all, or if ctx ends; whatever else cannot be
// read is a gap.
func Take(ctx context.Context, root string, o Options) (*Index, error) {
	o = o.withDefaults()
	dir, err := workspace.OpenDir(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	w := &walk{
		options: o, dir: dir, index: &Index{Root: dir.Path(), Taken: time.Now()}, since: o.Since.files(),
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	if !o.GitDir {
		info, err := dir.Stat(".")
		if err != nil {
			return nil, err
		}
		w.index.top = &fileEntry{name: ".", Status: workspace.StatusOf(info)}
	}
	if err := w.readContents(ctx); err != nil {
		return nil, err
	}
	if o.Whole {
		w.index.Unrepresented = w.beyond()
	}
	slices.SortFunc(w.index.Gaps, func(a, b Gap) int { return strings.Compare(a.Path, b.Path) })
	return w.index, nil
}

// walk is a running Take.
type walk struct {
	options Options
	dir     *workspace.Dir
	index   *Index
	above   string             // the path of the root, as rules are matched with it
	since   map[string]*folder // of Options.Since, by path
	mu      sync.Mutex
	repos   []*repository
	timely  map[uint64]bool  // by device, what Folder.KeepsTime reports
	names   map[inode]uint64 // of a file that has several, how many are not known
}

func (w *walk) gap(path, reason string, unread bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.index.Gaps = append(w.index.Gaps, Gap{path, reason, unread})
}

func isLink(m fs.FileMode) bool { return m&fs.ModeSymlink != 0 }
