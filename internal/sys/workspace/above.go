package workspace

import (
	"path/filepath"
	"strings"
)

// Parent is a parent directory of another one. It reads small files by name, never through a link.
type Parent struct {
	Path string // absolute

	place  openDir
	opened bool
}

// Above calls visit for each parent of the directory name, from the root of the file system down, and returns the
// absolute path of name itself, without links. It opens parents above the workspace by path, because others do not
// control them; from the workspace on, it opens each in its parent, never through a link. A directory that cannot be
// opened counts as empty.
func (d *Dir) Above(name string, visit func(*Parent)) (full string) {
	if own, rel := d.owner(name); own != d {
		return own.Above(rel, visit)
	}
	base, rel := d.real, name
	if filepath.IsAbs(filepath.FromSlash(name)) {
		base, rel = filepath.Clean(filepath.FromSlash(name)), "."
	} else if resolved, err := d.resolve(name); err == nil {
		rel = resolved
	}
	full = filepath.Join(base, filepath.FromSlash(rel))
	top := filepath.VolumeName(base) + string(filepath.Separator)
	at := top
	for part := range strings.SplitSeq(strings.TrimPrefix(base, top), string(filepath.Separator)) {
		if part == "" {
			break
		}
		p, err := placeAt(at)
		visitParent(at, p, err, visit)
		at = filepath.Join(at, part)
	}
	if rel == "." {
		return full
	}
	p, err := startAt(d, ".")
	for part := range strings.SplitSeq(rel, "/") {
		var next openDir
		failed := err
		if err == nil {
			next, failed = p.enter(part)
		}
		visitParent(at, p, err, visit)
		at, p, err = filepath.Join(at, part), next, failed
	}
	if err == nil {
		p.close()
	}
	return full
}

func visitParent(path string, p openDir, err error, visit func(*Parent)) {
	visit(&Parent{Path: path, place: p, opened: err == nil})
	if err == nil {
		p.close()
	}
}

// Has reports whether the directory has an entry with that name.
func (a *Parent) Has(name string) bool { return a.opened && a.place.has(name) }

// ReadFile reads a regular file of up to limit bytes in or below the directory. No element of its name may be a link.
func (a *Parent) ReadFile(name string, limit int64) ([]byte, error) {
	if !a.opened {
		return nil, changedSince(a.Path)
	}
	return a.place.readFile(name, limit)
}
