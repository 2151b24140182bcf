package workspace

import (
	"path/filepath"

	"omniagent/internal/fault"
)

// Add makes a further directory one that files may be worked on in, as in the root, and returns it, so that the caller
// withholds and restricts there what is to be. nil: it lies in one that is known already. It is called before anything
// else is done with the Dir.
func (d *Dir) Add(dir string) (*Dir, error) {
	more, err := OpenDir(dir)
	if err != nil {
		return nil, err
	}
	if filepath.Dir(more.real) == more.real {
		_ = more.Close()
		return nil, fault.New(fault.Unsafe, "%s cannot be a directory to work in: it is everything",
			shown(dir)).Hint("name the directory of a project")
	}
	for _, known := range append([]*Dir{d}, d.more...) {
		if _, inside := beneathPath(known.real, more.real, foldsCase(known.path)); inside {
			return nil, more.Close()
		}
	}
	d.more = append(d.more, more) // it may lie around others, and never in one: the inner ones are found first
	return more, nil
}

// More are the absolute paths of the directories that were added.
func (d *Dir) More() []string {
	var paths []string
	for _, more := range d.more {
		paths = append(paths, more.path)
	}
	return paths
}

// of is the directory that a name belongs to, and the name there.
func (d *Dir) of(name string) (*Dir, string) {
	local := filepath.FromSlash(name)
	if !filepath.IsAbs(local) {
		return d, name
	}
	for _, more := range d.more {
		if rel, ok := beneathPath(more.path, local, foldsCase(more.path)); ok {
			return more, filepath.ToSlash(rel)
		}
	}
	return d, name
}

// called is what a name in an added directory is called outside of it.
func (d *Dir) called(rel string) string {
	return filepath.ToSlash(filepath.Join(d.path, filepath.FromSlash(rel)))
}
