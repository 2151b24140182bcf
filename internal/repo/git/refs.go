package git

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// RefsLimit is the limit, in bytes, of the file that has many refs.
const RefsLimit = 64 << 20

// PackedRefs is the name of the file that has refs without a file of their own.
const PackedRefs = "packed-refs"

// Head is what HEAD names: a ref, or without one a commit.
type Head struct {
	Ref    string `json:"ref,omitempty"` // such as refs/heads/main; empty if no branch is checked out
	Commit string `json:"commit,omitempty"`
}

// Refs reads HEAD and the refs of a repository from their files, or from copies of them. It reads regular files only,
// up to a limit that depends on the file, and no file for a ref whose name leads out of refs. It follows links, which
// repositories may have there; At and Read may refuse them. As git does, it takes a link to the name of a ref for that
// name, whether or not the link leads to a file.
//
// It does not read reftables: HEAD is refused where a repository keeps its branches in them.
type Refs struct {
	Dir    string // the directory with HEAD
	Common string // the directory with the refs, which all working trees share
	// At returns the file that has the content of a path, or "".
	At func(path string) string
	// Read returns the content of a path.
	Read func(path string, limit int64) ([]byte, error)
	// Link returns the target of the link at a path, or "" if the path is not a link. If it is nil, no path is one.
	Link func(path string) string
}

// RefsOf returns the refs in two directories, for which at returns the files that have their contents.
func RefsOf(dir, common string, at func(path string) string) Refs {
	return Refs{dir, common, at, func(path string, limit int64) ([]byte, error) {
		return workspace.ReadFile(at(path), limit) // "" is missing
	}, func(path string) string {
		if dir := at(filepath.Dir(path)); dir != "" {
			return LinkAt(filepath.Join(dir, filepath.Base(path)))
		}
		return ""
	}}
}

// LinkAt returns what the link at a path names, or "".
func LinkAt(path string) string {
	to, _ := os.Readlink(path)
	return to
}

func (r Refs) read(dir, name string, limit int64) (string, error) {
	data, err := r.Read(filepath.Join(dir, filepath.FromSlash(name)), limit)
	return string(data), err
}

// readRef returns what HEAD or the file of a ref has. Of a link that names a ref it returns what a file would have.
func (r Refs) readRef(dir, name string) (string, error) {
	if r.Link != nil {
		if to := r.Link(filepath.Join(dir, filepath.FromSlash(name))); NamesRef(to) {
			return symref + " " + filepath.ToSlash(to), nil
		}
	}
	text, err := r.read(dir, name, SmallFile)
	text, _, _ = strings.Cut(strings.TrimRight(text, spaces), "\x00") // git takes it for the end
	return text, err
}

// NamesRef reports whether what a link names is a ref: git takes such a link for the ref, and does not follow it.
func NamesRef(to string) bool { return isRef(filepath.ToSlash(to)) }

// symref is the beginning of HEAD, or of the file of a ref, that names a ref.
const symref = "ref:"

// symbolic returns the ref that a content names.
func symbolic(text string) (ref string, is bool) {
	ref, is = strings.CutPrefix(text, symref)
	ref = strings.TrimLeft(ref, spaces)
	return ref, is && (isRef(ref) || ref == inReftable)
}

// inReftable is the ref that HEAD names in a repository whose branches are kept as reftable.
const inReftable = "refs/heads/.invalid"

// spaces are the characters that git ignores at the end of a file with HEAD or a ref.
const spaces = " \t\r\n"

// Target returns what HEAD has: the name of a ref, or else what is there instead of a commit, unchecked.
func (r Refs) Target() (Head, error) {
	text, err := r.readRef(r.Dir, "HEAD")
	if ref, is := symbolic(text); is {
		return Head{Ref: ref}, err
	}
	return Head{Commit: text}, err
}

// isRef reports whether git takes a name below refs for that of a ref. Its file lies below refs.
func isRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c == 0x7f || strings.ContainsRune(`\~^:?*[`, c)
	}) && !strings.Contains(name, "..") && !strings.Contains(name, "@{") && !strings.HasSuffix(name, ".") &&
		!slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
			return part == "" || part[0] == '.' || strings.HasSuffix(part, lockEnd)
		})
}

// lockEnd is the end of the names of git's locks.
const lockEnd = ".lock"

// Head returns what HEAD has, with the commit of its ref. The commit is empty on a branch without commits.
func (r Refs) Head() (Head, error) {
	h, err := r.Target()
	if h.Ref == "" {
		commit, bad := commitIn(h.Commit)
		return Head{Commit: commit}, cmp.Or(err, bad)
	}
	h.Commit, err = r.Commit(h.Ref)
	return h, err
}

// Commit returns the name of the object, usually a commit, that a ref names, or "" if the ref does not exist. It
// returns an error with anything else that a ref has, such as the name of another ref.
func (r Refs) Commit(ref string) (string, error) {
	switch {
	case ref == inReftable:
		return "", errors.New("its branches are kept as reftable")
	case !isRef(ref):
		return "", errors.New("HEAD names no branch")
	}
	if value, found, err := r.ownFile(ref); found {
		return value, err
	}
	packed, err := r.packed()
	last, found := "", false // git takes the last line of a name too
	for name, value := range packed {
		if name == ref {
			last, found = value, true
		}
	}
	if found {
		last, err = packedCommit(last)
	}
	return last, err
}

// Commits returns the refs with what Commit returns for each, without those that it cannot read. A ref that names
// another one has the commit of that. It reads packed-refs once, which Commit does every time.
func (r Refs) Commits() map[string]string {
	packed, _ := r.packed()
	all := maps.Collect(packed)
	r.addLoose(all)
	names := map[string]string{} // the refs that name others
	for ref, value := range all {
		own, found, err := r.ownFile(ref)
		if !found {
			own, err = packedCommit(value)
		}
		if all[ref] = own; err == nil {
			continue
		}
		delete(all, ref)
		if to, is := symbolic(own); is {
			names[ref] = to
		}
	}
	for ref, to := range names {
		for range mostSymbolic {
			next, more := names[to]
			if !more {
				break
			}
			to = next
		}
		if commit, known := all[to]; known {
			all[ref] = commit
		}
	}
	return all
}

// mostSymbolic limits the refs between one and its commit, as git does: they may name each other in a circle.
const mostSymbolic = 5

// ownFile returns what the file of a ref has, if there is one. A directory of that name has other refs.
func (r Refs) ownFile(ref string) (value string, found bool, err error) {
	text, err := r.readRef(r.Common, ref)
	if workspace.Absent(err) || errors.Is(err, fault.Unsafe) {
		return "", false, nil
	}
	value, bad := commitIn(text)
	return value, true, cmp.Or(err, bad)
}

// commitIn returns the commit at the beginning of a file with HEAD or a ref, or else the content and an error. Git
// ignores what follows behind a space.
func commitIn(text string) (string, error) {
	name := text
	if end := strings.IndexAny(text, spaces); end >= 0 {
		name = text[:end]
	}
	if commit, err := packedCommit(name); err == nil {
		return commit, nil
	}
	return text, errNoCommit
}

// packedCommit returns the commit that a value in packed-refs is, or else the value and an error. Git takes capital
// letters too, and never shows them.
func packedCommit(value string) (string, error) {
	if (len(value) == 40 || len(value) == 64) && strings.Trim(value, "0123456789abcdefABCDEF") == "" {
		return strings.ToLower(value), nil
	}
	return value, errNoCommit
}

var errNoCommit = errors.New("a branch names no commit")

// packed returns the refs in packed-refs with their values. The other lines there describe the file, or name the
// objects that tags lead to.
func (r Refs) packed() (iter.Seq2[string, string], error) {
	text, err := r.read(r.Common, PackedRefs, RefsLimit)
	if workspace.Absent(err) {
		err = nil
	}
	return func(yield func(ref, value string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			at := strings.LastIndexByte(line, ' ') // a name of a ref has none, so a damaged value does not hide one
			if ref := line[at+1:]; at >= 0 && isRef(ref) && !yield(ref, line[:at]) {
				return
			}
		}
	}, err
}

// Names returns the names of the refs, sorted, without those that cannot be read.
func (r Refs) Names() []string {
	packed, _ := r.packed()
	all := maps.Collect(packed)
	r.addLoose(all)
	return slices.Sorted(maps.Keys(all))
}

// addLoose adds the names of the refs with a file of their own.
func (r Refs) addLoose(all map[string]string) {
	r.loose(func(_, ref string, _ bool) {
		if isRef(ref) {
			all[ref] = ""
		}
	})
}

// Files returns the paths of the files that have HEAD and the refs, with the limits of their sizes. A file may be
// missing. Links below refs are left out: they may lead to any file.
func (r Refs) Files() map[string]int64 {
	files := map[string]int64{filepath.Join(r.Dir, "HEAD"): SmallFile, filepath.Join(r.Common, PackedRefs): RefsLimit}
	r.loose(func(file, _ string, link bool) {
		if !link {
			files[file] = SmallFile
		}
	})
	return files
}

// loose calls found for every ref with a file of its own, or with a link. It leaves out the locks of git.
func (r Refs) loose(found func(file, ref string, link bool)) {
	top := r.At(filepath.Join(r.Common, "refs"))
	_ = filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) == lockEnd {
			return nil
		}
		link := leadsToRef(file, e)
		if link || e.Type().IsRegular() {
			found(file, "refs"+filepath.ToSlash(strings.TrimPrefix(file, top)), link)
		}
		return nil
	})
}

// leadsToRef reports whether a directory entry is a link that names a ref, or leads to a regular file.
func leadsToRef(file string, e fs.DirEntry) bool {
	if e.Type() != fs.ModeSymlink {
		return false
	}
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() || NamesRef(LinkAt(file))
}

// Fits reports whether a ref that Commit can read can exist next to the others: a name cannot be both a ref and a
// directory with refs. It ignores a ref called refs/heads, which packed-refs can have: no branch would fit next to it.
func (r Refs) Fits(ref string) bool {
	info, err := os.Lstat(r.At(filepath.Join(r.Common, filepath.FromSlash(ref))))
	return (err != nil || !info.IsDir()) && !slices.ContainsFunc(r.Names(), func(name string) bool {
		return strings.HasPrefix(name, ref+"/") || name != "refs/heads" && strings.HasPrefix(ref, name+"/")
	})
}

// BranchOf returns the branch whose file a path is, which leads through a directory .git.
func BranchOf(path string) (name string, ok bool) {
	dir, name, ok := strings.Cut(path, "/refs/heads/")
	return name, ok && !strings.HasSuffix(dir, "logs") // where the reflogs are
}
