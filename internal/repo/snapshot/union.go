package snapshot

import (
	"slices"
	"strings"
)

// Union returns the index with the paths of another index of the same root, which replace its own.
func (x *Index) Union(other *Index) *Index {
	both := *x
	both.folders = nil
	if other.top != nil {
		both.top = other.top
	}
	byPath := func(a, b *folder) int { return strings.Compare(a.path, b.path) }
	pairs(x.folders, other.folders, byPath, func(a, b **folder) {
		switch {
		case b == nil:
			both.folders = append(both.folders, *a)
		case a == nil:
			both.folders = append(both.folders, *b)
		default:
			one := **a
			one.entries, one.complete = nil, false
			byName := func(a, b fileEntry) int { return strings.Compare(a.name, b.name) }
			pairs((*a).entries, (*b).entries, byName, func(a, b *fileEntry) {
				if b != nil {
					a = b
				}
				one.entries = append(one.entries, *a)
			})
			both.folders = append(both.folders, &one)
		}
	})
	return &both
}

// Only returns the index with nothing but the paths for which keep returns true.
func (x *Index) Only(keep func(path string) bool) *Index {
	few := x.only(keep)
	few.folders = slices.DeleteFunc(few.folders, func(f *folder) bool { return len(f.entries) == 0 })
	return few
}
