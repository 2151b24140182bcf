package snapshot

import (
	"path/filepath"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// ChangedBy returns a func that says who changed a path that differs in two indexes, as far as their contents can be
// read. seen may be nil: then nothing is known.
func ChangedBy(seen *touch.Window, before, after *Index, contents *Contents) func(path string) touch.Verdict {
	if seen == nil {
		return func(string) touch.Verdict { return touch.Verdict{By: touch.Unknown, Why: touch.ReasonUnwatched} }
	}
	root := pathname.Real(before.Root)
	was, is := moment{root, before, contents}, moment{root, after, contents}
	return func(path string) touch.Verdict {
		return seen.Judge(filepath.Join(root, filepath.FromSlash(path)), was, is)
	}
}

// moment implements touch.Moment by an index.
type moment struct {
	root     string
	index    *Index
	contents *Contents
}

func (m moment) find(path string) *File {
	name, within := pathname.In(m.root, path)
	if !within {
		return nil
	}
	return m.index.Find(filepath.ToSlash(name))
}

func (m moment) Status(path string) workspace.Status {
	if f := m.find(path); f != nil {
		return f.Status
	}
	return workspace.Status{}
}

func (m moment) Content(path string) ([]byte, bool) {
	f := m.find(path)
	if f == nil || !f.Mode.IsRegular() || f.Size > readLimit {
		return nil, false
	}
	data, err := m.contents.Read(f)
	return data, err == nil
}
