package snapshot

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
)

// ChangedBy returns a func that says who changed a path that differs in two indexes, as far as their contents can be
// read. seen may be nil: then nothing is known. With live, a content that after lacks is read from the file itself.
func ChangedBy(seen *touch.Window, before, after *Index, contents *Contents, live bool) func(string) touch.Verdict {
	if seen == nil {
		return func(string) touch.Verdict { return touch.Verdict{By: touch.Unknown, Why: touch.ReasonUnwatched} }
	}
	root := pathname.Real(before.Root)
	was, is := moment{root, before, contents, false}, moment{root, after, contents, live}
	return func(path string) touch.Verdict {
		return seen.Judge(filepath.Join(root, filepath.FromSlash(path)), was, is)
	}
}

// moment implements touch.Moment by an index.
type moment struct {
	root     string
	index    *Index
	contents *Contents
	live     bool
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
	if err != nil && m.live {
		data, err = f.readFrom(path)
	}
	return data, err == nil
}

// readFrom reads a file that is still as the index has it.
func (f *File) readFrom(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, readLimit))
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || workspace.StatusOf(info) != f.Status {
		return nil, errors.Join(err, errors.New(replaced))
	}
	return data, nil
}
