package workspace

import (
	"path/filepath"

	"omniagent/internal/kit/fault"
)

// Add adds a writable directory like the root and returns its Dir, so that the caller can withhold and restrict names
// there. It returns nil if the directory is inside one that is already known. Call it before any other method.
func (d *Dir) Add(dir string) (*Dir, error) {
	more, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	if filepath.Dir(more.real) == more.real {
		_ = more.Close()
		return nil, fault.New(fault.Unsafe, "%s cannot be a directory to work in: it is a root", printable(dir)).
			Hint("name the directory of a project")
	}
	for _, known := range append([]*Dir{d}, d.roots...) {
		if _, inside := beneathPath(known.real, more.real, foldsCase(known.path)); inside {
			return nil, more.Close()
		}
	}
	d.roots = append(d.roots, more) // it may contain others, but is never inside one, so inner ones are found first
	return more, nil
}

// AddedDirs returns the absolute paths of the added directories.
func (d *Dir) AddedDirs() []string {
	var paths []string
	for _, more := range d.roots {
		paths = append(paths, more.path)
	}
	return paths
}

// owner returns the directory that a name belongs to, and the name in it.
func (d *Dir) owner(name string) (*Dir, string) {
	local := filepath.FromSlash(name)
	if !filepath.IsAbs(local) {
		return d, name
	}
	for _, more := range d.roots {
		if rel, ok := beneathPath(more.path, local, foldsCase(more.path)); ok {
			return more, filepath.ToSlash(rel)
		}
	}
	return d, name
}

// outerName returns the full name for a name in an added directory.
func (d *Dir) outerName(rel string) string {
	return filepath.ToSlash(filepath.Join(d.path, filepath.FromSlash(rel)))
}
