package snapshot

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/git"
)

// File is what an index knows of one path.
type File struct {
	fileEntry
}

// Target returns where a link leads.
func (f *File) Target() string { return f.target }

// Sum returns the SHA-256 of the content, or zero if it was not read.
func (f *File) Sum() (sum [32]byte) {
	if f.content != nil {
		sum = f.content.sum
	}
	return sum
}

// Ignored reports whether .gitignore excludes the file and git does not track it.
func (f *File) Ignored() bool { return f.about&ignored != 0 }

// OfGit reports whether the file is in a directory .git.
func (f *File) OfGit() bool { return f.about&stateOfGit != 0 }

// Clean reports whether git has the content of the file.
func (f *File) Clean() bool { return f.content != nil && f.content.inGit }

// Later reports whether MarkLater has marked the file.
func (f *File) Later() bool { return f.about&later != 0 }

// MarkLater marks the files that changed after a moment and before now. Files with a time in the future have it from
// another clock.
func (x *Index) MarkLater(at time.Time) {
	from, to := at.UnixNano(), time.Now().UnixNano()
	for _, f := range x.folders {
		for i := range f.entries {
			e := &f.entries[i]
			if e.Changed > from && e.Changed <= to && !e.Mode.IsDir() && e.about&stateOfGit == 0 {
				e.about |= later
			}
		}
	}
}

// Held reports whether the content of the file is available: it was kept, git has it, or the file has none.
func (f *File) Held() bool {
	switch {
	case f.Mode.IsDir(), isLink(f.Mode), f.Mode.IsRegular() && f.Size == 0:
		return true
	case !f.Mode.IsRegular() || f.content == nil:
		return false
	}
	return f.content.kept || f.content.inGit
}

// SameFile reports whether two files have the same type, mode, and content or target. Nil means that there is no file.
func SameFile(a, b *File) bool {
	switch {
	case a == nil || b == nil:
		return a == nil && b == nil
	case isLink(a.Mode):
		return a.Mode.Type() == b.Mode.Type() && a.target == b.target
	case a.Mode != b.Mode:
		return false
	}
	return !a.Mode.IsRegular() || same(&a.fileEntry, &b.fileEntry)
}

// Same reports whether two indexes certainly say the same of the same files, by status and known content. vague is how
// many files have, in a but not in b, a status that does not prove that they are unchanged, and how many directories of
// a, but not of b, may have other names.
func Same(a, b *Index) (certain bool, vague int) {
	if len(a.folders) != len(b.folders) || (a.top == nil) != (b.top == nil) ||
		a.top != nil && a.top.Mode != b.top.Mode {
		return false, 0
	}
	for i, x := range a.folders {
		y := b.folders[i]
		if x.path != y.path || len(x.entries) != len(y.entries) {
			return false, 0
		}
		if !x.complete && y.complete {
			vague++
		}
		for j := range x.entries {
			m, n := &x.entries[j], &y.entries[j]
			if m.name != n.name || m.target != n.target || !m.Mode.IsDir() && m.Status != n.Status ||
				m.Mode != n.Mode || m.Mode.IsRegular() && m.content != n.content && !same(m, n) {
				return false, 0
			}
			if m.about&recent != 0 && n.about&recent == 0 {
				vague++
			}
		}
	}
	return true, vague
}

// Each calls do for every path in which two indexes of one root differ, with nil for the side that does not have it:
// the paths of Diff, and also directories, ignored files and the state of git. Paths of which nothing is known are left
// out.
func Each(before, after *Index, do func(path string, old, is *File)) {
	c := compare(before, after)
	each(before, after, func(path string, old, is *fileEntry) {
		unknown := old == nil && within(c.lostBefore, path) || is == nil && within(c.lostAfter, path)
		if !unknown && (old == nil || is == nil || c.status(path, old, is) != "") {
			do(path, fileOf(old), fileOf(is))
		}
	})
}

// EachHidden calls do for every path of before that could not be read for after.
func EachHidden(before, after *Index, do func(path string, old *File)) {
	lost := after.lost()
	if len(lost) == 0 {
		return
	}
	each(before, after, func(path string, old, is *fileEntry) {
		if is == nil && within(lost, path) {
			do(path, fileOf(old))
		}
	})
}

func fileOf(e *fileEntry) *File {
	if e == nil {
		return nil
	}
	return &File{*e}
}

// Find returns what an index has at a path, or nil.
func (x *Index) Find(name string) *File {
	if name == "." {
		return fileOf(x.top)
	}
	dir, base := path.Split(name)
	return fileOf(x.folder(strings.TrimSuffix(dir, "/")).find(base))
}

// EachDir calls do for every directory below the root.
func (x *Index) EachDir(do func(path string, f *File)) {
	for _, f := range x.folders {
		for i := range f.entries {
			if f.entries[i].Mode.IsDir() {
				do(f.join(f.entries[i].name), &File{f.entries[i]})
			}
		}
	}
}

// Unread returns a func that reports whether nothing is known of a path, because it, or a directory that it is in,
// could not be read.
func (x *Index) Unread() func(path string) bool {
	lost := x.lost()
	return func(path string) bool { return within(lost, path) && x.Find(path) == nil }
}

// Gap returns why the index does not have the content of a path, or "".
func (x *Index) Gap(path string) string {
	for _, g := range x.Gaps {
		if path == g.Path || strings.HasPrefix(path, g.Path+"/") {
			return g.Reason
		}
	}
	return ""
}

// GitDirs returns the absolute paths of the directories .git whose repositories have files in the index.
func (x *Index) GitDirs() []string {
	var dirs []string
	for _, f := range x.folders {
		if f.repository != nil && !slices.Contains(dirs, f.repository.dir) {
			dirs = append(dirs, f.repository.dir)
		}
	}
	return dirs
}

// Repositories returns the directories below the root, relative to it, that hold a repository with its objects: also
// those of submodules without a working tree, and of repositories in ignored directories.
func (x *Index) Repositories() (dirs []string) {
	for _, f := range x.folders {
		dir, is := strings.CutSuffix(f.path, "refs")
		if !is || dir != "" && !strings.HasSuffix(dir, "/") {
			continue
		}
		dir = strings.TrimSuffix(dir, "/")
		head := x.Find(path.Join(dir, "HEAD"))
		if head != nil && head.OfGit() && x.Find(path.Join(dir, "config")) != nil {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// EachRepository calls do for every repository that has files of the index, with its own directory and the top of its
// working tree, relative to the root.
func (x *Index) EachRepository(do func(dir, top string)) {
	seen := map[*repository]bool{nil: true}
	for _, f := range x.folders {
		if !seen[f.repository] {
			seen[f.repository] = true
			do(f.repository.dir, strings.TrimSuffix(f.repository.top, "/"))
		}
	}
}

// Sums calls do with the SHA-256 of each content of the index that a store keeps.
func (x *Index) Sums(do func(sum [32]byte)) {
	for _, f := range x.folders {
		for i := range f.entries {
			if c := f.entries[i].content; c != nil && c.kept {
				do(c.sum)
			}
		}
	}
}

// Contents reads the contents of files of indexes.
type Contents struct {
	store *Store
	at    func(dir string) string
	repos map[string]*git.Repository
}

// OpenContents returns a reader of contents: from the store, and from git in the directory that at returns for a
// repository of the index.
func OpenContents(store *Store, at func(dir string) string) *Contents {
	return &Contents{store, at, map[string]*git.Repository{}}
}

// Close closes the files that Read has opened.
func (r *Contents) Close() {
	for _, opened := range r.repos {
		opened.Close()
	}
}

// Read returns the content of a regular file after checking its hash and size. It fails if the content is not
// available.
func (r *Contents) Read(f *File) ([]byte, error) {
	c := f.content
	switch {
	case !f.Mode.IsRegular() || !f.Held():
		return nil, fault.New(fault.FileMissing, "the content of the file was not kept")
	case f.Size == 0:
		return nil, nil
	case c.kept:
		return r.store.Get(c.sum, f.Size)
	}
	data, err := r.blob(c, f.Size)
	if err == nil && int64(len(data)) != f.Size {
		err = fault.New(fault.Unsafe, "git had converted the file by a setting that is not known, so it was not saved")
	}
	return data, err
}

// blob reads a content that git has. What git got after at had its objects is only in the repository itself.
func (r *Contents) blob(c *content, size int64) (data []byte, err error) {
	for _, dir := range []string{r.at(c.repository.dir), c.repository.dir} {
		var opened *git.Repository
		if opened, err = r.open(dir); err == nil {
			if data, err = opened.Blob(c.blob, size); err == nil {
				return data, nil
			}
		}
	}
	return nil, err
}

func (r *Contents) open(dir string) (*git.Repository, error) {
	if opened := r.repos[dir]; opened != nil {
		return opened, nil
	}
	opened, err := git.At(dir)
	if err == nil {
		r.repos[dir] = opened
	}
	return opened, err
}

// Perm returns the bits of the mode that chmod sets.
func (f *File) Perm() fs.FileMode {
	return f.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
}
