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
// repositories may have there; At and Read may refuse them.
//
// It does not read reftables: HEAD is refused where a repository keeps its branches in them.
type Refs struct {
	Dir    string // the directory with HEAD
	Common string // the directory with the refs, which all working trees share
	// At returns the file that has the content of a path, or "".
	At func(path string) string
	// Read returns the content of a path.
	Read func(path string, limit int64) ([]byte, error)
}

// RefsOf returns the refs in two directories, for which at returns the files that have their contents.
func RefsOf(dir, common string, at func(path string) string) Refs {
	return Refs{dir, common, at, func(path string, limit int64) ([]byte, error) {
		return workspace.ReadFile(at(path), limit) // "" is missing
	}}
}

func (r Refs) read(dir, name string, limit int64) (string, error) {
	data, err := r.Read(filepath.Join(dir, filepath.FromSlash(name)), limit)
	return string(data), err
}

// spaces are the characters that git ignores at the end of a file with HEAD or a ref.
const spaces = " \t\r\n"

// Target returns what HEAD has: the name of a ref, or else what is there instead of a commit, unchecked.
func (r Refs) Target() (Head, error) {
	text, err := r.read(r.Dir, "HEAD", SmallFile)
	text = strings.TrimRight(text, spaces)
	ref, symbolic := strings.CutPrefix(text, "ref:")
	if ref = strings.TrimLeft(ref, spaces); symbolic && isRef(ref) {
		return Head{Ref: ref}, err
	}
	return Head{Commit: text}, err
}

// isRef reports whether a name is that of a ref, and its file lies below refs. It does not check all that git does.
func isRef(name string) bool {
	return strings.HasPrefix(name, "refs/") && !strings.ContainsFunc(name, func(c rune) bool {
		return c <= ' ' || c == 0x7f || c == '\\' // which separates names on Windows
	}) && !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return part == "" || part == "." || part == ".."
	})
}

// Head returns what HEAD has, with the commit of its ref. The commit is empty on a branch without commits.
func (r Refs) Head() (Head, error) {
	h, err := r.Target()
	if h.Ref == "" {
		return h, cmp.Or(err, checkCommit(h.Commit))
	}
	h.Commit, err = r.Commit(h.Ref)
	return h, err
}

// Commit returns the name of the object, usually a commit, that a ref names, or "" if the ref does not exist. It
// returns an error with anything else that a ref has, such as the name of another ref.
func (r Refs) Commit(ref string) (string, error) {
	switch {
	case !isRef(ref):
		return "", errors.New("HEAD names no branch")
	case ref == "refs/heads/.invalid":
		return "", errors.New("its branches are kept as reftable")
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
		err = checkCommit(last)
	}
	return last, err
}

// Commits returns the refs with what Commit returns for each, without those that it cannot read. It reads packed-refs
// once, which Commit does every time.
func (r Refs) Commits() map[string]string {
	packed, _ := r.packed()
	all := maps.Collect(packed)
	r.addLoose(all)
	for ref, value := range all {
		own, found, err := r.ownFile(ref)
		if !found {
			own, err = value, checkCommit(value)
		}
		if all[ref] = own; err != nil {
			delete(all, ref)
		}
	}
	return all
}

// ownFile returns what the file of a ref has, if there is one. A directory of that name has other refs.
func (r Refs) ownFile(ref string) (value string, found bool, err error) {
	text, err := r.read(r.Common, ref, SmallFile)
	if workspace.Absent(err) || errors.Is(err, fault.Unsafe) {
		return "", false, nil
	}
	text = strings.TrimRight(text, spaces)
	return text, true, cmp.Or(err, checkCommit(text))
}

func checkCommit(name string) error {
	if (len(name) == 40 || len(name) == 64) && strings.Trim(name, "0123456789abcdef") == "" {
		return nil
	}
	return errors.New("a branch names no commit")
}

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
	r.loose(func(_, ref string) {
		if isRef(ref) {
			all[ref] = ""
		}
	})
}

// Files returns the paths of the files that have HEAD and the refs, with the limits of their sizes. A file may be
// missing.
func (r Refs) Files() map[string]int64 {
	files := map[string]int64{filepath.Join(r.Dir, "HEAD"): SmallFile, filepath.Join(r.Common, PackedRefs): RefsLimit}
	r.loose(func(file, _ string) { files[file] = SmallFile })
	return files
}

// loose calls found for every ref with a file of its own. It leaves out the locks of git.
func (r Refs) loose(found func(file, ref string)) {
	top := r.At(filepath.Join(r.Common, "refs"))
	_ = filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Ext(file) != ".lock" {
			found(file, "refs"+filepath.ToSlash(strings.TrimPrefix(file, top)))
		}
		return nil
	})
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
