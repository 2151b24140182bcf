package fork

import (
	"io/fs"
	"path/filepath"
)

// Wrote returns a func that reports whether programs of the fork have written a path of the workspace before this call.
// For an overlay that is not the same as a difference: later changes of the workspace show in it. A removed path that
// only the fork had counts as written. Wrote works inside the fork.
func (f *Fork) Wrote() func(path string) bool {
	if f.Tier != Overlay {
		return func(string) bool { return true }
	}
	had := map[string]bool{}
	for _, l := range f.Layers {
		_ = filepath.WalkDir(l.Upper, func(path string, _ fs.DirEntry, err error) error {
			if rel, errRel := filepath.Rel(l.Upper, path); err == nil && errRel == nil {
				had[filepath.Join(l.Lower, rel)] = true
			}
			return nil // what cannot be read is left out
		})
	}
	return func(path string) bool { return had[path] || !f.Covers(path) || f.Real(path) != path }
}
