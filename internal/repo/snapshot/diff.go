package snapshot

import (
	"cmp"
	"slices"
	"strings"

	"omniagent/internal/repo/git"
)

// Status says how a file changed.
type Status string

// The values of Status.
const (
	Added    Status = "added"
	Modified Status = "modified"
	Deleted  Status = "deleted"
	Type     Status = "type" // a file became a link, for example
	Mode     Status = "mode" // the permissions alone
	Git      Status = "git"  // it is a part of the state of a repository: HEAD, refs, configuration, hooks
)

// Change is a file that changed. A directory counts only if its mode changed, or if it is empty and was added or
// deleted. The root itself is ".".
type Change struct {
	Path   string `json:"path"` // relative to the root, with slashes; any bytes but zero
	Status Status `json:"status"`
	// The numbers of lines, set by Changes.Count. Nil if the file is binary, too large, or was not kept.
	Added   *int `json:"added"`
	Removed *int `json:"removed"`

	before, after *fileEntry
}

// Changes are the differences between two indexes.
type Changes struct {
	Files   []Change `json:"files"`   // sorted by path
	Ignored int      `json:"ignored"` // ignored files that differ
	// Gaps are the paths where either index has a gap that hides changes.
	Gaps []Gap `json:"gaps,omitempty"`
}

// Diff returns what changed between two indexes of one root.
func Diff(before, after *Index) *Changes {
	c, found := compare(before, after), &Changes{Files: []Change{}}
	for _, g := range slices.Concat(before.Gaps, after.Gaps) {
		if g.Unread {
			found.Gaps = append(found.Gaps, g)
		}
	}
	slices.SortFunc(found.Gaps, func(a, b Gap) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Reason, b.Reason))
	})
	found.Gaps = slices.Compact(found.Gaps)
	each(before, after, func(path string, old, is *fileEntry) {
		status := c.status(path, old, is)
		switch {
		case status == "":
		case (old == nil || old.about&ignored != 0) && (is == nil || is.about&ignored != 0):
			found.Ignored++
		default:
			found.Files = append(found.Files, Change{Path: path, Status: status, before: old, after: is})
		}
	})
	slices.SortFunc(found.Files, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return found
}

// comparison tells how the files of two indexes differ.
type comparison struct {
	before, after         *Index
	lostBefore, lostAfter map[string]bool // what could not be read
}

func compare(before, after *Index) comparison {
	return comparison{before, after, before.lost(), after.lost()}
}

func (x *Index) lost() map[string]bool {
	all := map[string]bool{}
	for _, g := range x.Gaps {
		if g.Unread {
			all[g.Path] = true
		}
	}
	return all
}

// within reports whether all has a path, or a directory that contains it.
func within(all map[string]bool, path string) bool {
	for len(all) > 0 {
		if all[path] {
			return true
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return all[""]
		}
		path = path[:i]
	}
	return false
}

// each calls do for every path of two indexes, with nil for the side that does not have it.
func each(before, after *Index, do func(path string, old, is *fileEntry)) {
	byPath := func(a, b *folder) int { return strings.Compare(a.path, b.path) }
	byName := func(a, b fileEntry) int { return strings.Compare(a.name, b.name) }
	none := &folder{}
	if before.top != nil && (after.top != nil || after.Len() == 0) {
		do(before.top.name, before.top, after.top)
	}
	pairs(before.folders, after.folders, byPath, func(a, b **folder) {
		old, is := none, none
		path := none
		if a != nil {
			old, path = *a, *a
		}
		if b != nil {
			is, path = *b, *b
		}
		pairs(old.entries, is.entries, byName, func(a, b *fileEntry) {
			name := a
			if name == nil {
				name = b
			}
			do(path.join(name.name), a, b)
		})
	})
}

// pairs calls do for each element of two sorted lists, with nil for the list that does not have it.
func pairs[T any](a, b []T, compare func(a, b T) int, do func(a, b *T)) {
	for i, j := 0, 0; i < len(a) || j < len(b); {
		order := -1
		if i == len(a) {
			order = 1
		} else if j < len(b) {
			order = compare(a[i], b[j])
		}
		switch {
		case order < 0:
			do(&a[i], nil)
			i++
		case order > 0:
			do(nil, &b[j])
			j++
		default:
			do(&a[i], &b[j])
			i, j = i+1, j+1
		}
	}
}

// status returns how a file differs, or "" if it does not, or that is not known.
func (c comparison) status(path string, old, is *fileEntry) Status {
	switch {
	case old == nil && within(c.lostBefore, path), is == nil && within(c.lostAfter, path):
		return ""
	case old == nil || is == nil || old.Mode.Type() != is.Mode.Type():
		return c.oneSided(path, old, is)
	case old.Mode.IsDir():
		if old.Mode == is.Mode {
			return ""
		}
		return ofGit(is, Mode)
	case isLink(is.Mode) && old.target != is.target, is.Mode.IsRegular() && !same(old, is):
		return ofGit(is, Modified)
	case old.Mode != is.Mode && !isLink(is.Mode):
		return ofGit(is, Mode)
	}
	return ""
}

// oneSided returns the status of a path that is missing on one side, or has another type. The files in a directory have
// their own changes, so a directory counts only if it is empty.
func (c comparison) oneSided(path string, old, is *fileEntry) Status {
	was := old != nil && (!old.Mode.IsDir() || c.before.empty(path))
	now := is != nil && (!is.Mode.IsDir() || c.after.empty(path))
	switch {
	case was && now:
		return ofGit(is, Type)
	case was:
		return ofGit(old, Deleted)
	case now:
		return ofGit(is, Added)
	}
	return ""
}

func ofGit(e *fileEntry, otherwise Status) Status {
	if e.about&stateOfGit != 0 {
		return Git
	}
	return otherwise
}

// empty reports whether a directory has no entries.
func (x *Index) empty(path string) bool {
	f := x.folder(path)
	return f != nil && len(f.entries) == 0
}

// folder returns a directory by its path, or nil.
func (x *Index) folder(path string) *folder {
	i, ok := slices.BinarySearchFunc(x.folders, path, func(f *folder, path string) int {
		return strings.Compare(f.path, path)
	})
	if !ok {
		return nil
	}
	return x.folders[i]
}

// same reports whether two regular files have the same content, as far as is known.
func same(old, is *fileEntry) bool {
	if old.Size != is.Size {
		return false
	}
	if a, b := old.content, is.content; a != nil && b != nil {
		if a.sum != ([32]byte{}) && b.sum != ([32]byte{}) {
			return a.sum == b.sum
		}
		if a.blob != (git.ID{}) && b.blob != (git.ID{}) && (old.Status != is.Status || old.about&recent != 0) {
			return a.blob == b.blob
		}
	}
	return old.Modified == is.Modified && old.Changed == is.Changed && old.Inode == is.Inode && old.Device == is.Device
}

// Trim returns both indexes without what is the same in both, so that they are small to save. Their Diff is the same.
// The state of git stays: it is compared as a whole.
func Trim(before, after *Index) (*Index, *Index) {
	c, keep := compare(before, after), map[string]bool{}
	each(before, after, func(path string, old, is *fileEntry) {
		if old == nil || is == nil || old.about&stateOfGit != 0 || c.status(path, old, is) != "" {
			keep[path] = true
		}
	})
	wanted := func(path string) bool { return keep[path] }
	return before.only(wanted), after.only(wanted)
}

// Without returns the index without the paths for which drop returns true.
func (x *Index) Without(drop func(path string) bool) *Index {
	return x.only(func(path string) bool { return !drop(path) })
}

// only returns the index with the paths for which keep returns true, and with its empty directories.
func (x *Index) only(keep func(path string) bool) *Index {
	few := *x
	few.folders = nil
	if x.top != nil && !keep(x.top.name) {
		few.top = nil
	}
	for _, f := range x.folders {
		some := *f
		some.entries, some.complete = nil, false
		for _, e := range f.entries {
			if keep(f.join(e.name)) {
				some.entries = append(some.entries, e)
			}
		}
		if len(some.entries) > 0 || len(f.entries) == 0 {
			few.folders = append(few.folders, &some)
		}
	}
	return &few
}
