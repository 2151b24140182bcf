package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/agent"
	"omniagent/internal/fault"
	"omniagent/internal/ident"
)

// temporary is what a call leaves behind until its end, and nothing after it.
type temporary struct {
	named []string // the private directories that somebody knows of, each made when it is needed
	made  []string
	files []*os.File
	after []func()
}

// path is where a private directory will be, another one each time: what an agent was told of once, it may have
// prepared for the next. Nothing is made yet: the translation may turn out not to need one.
func (t *temporary) path(base string) string {
	dir := filepath.Join(base, "omniagent-"+ident.Hex(12))
	t.named = append(t.named, dir)
	return dir
}

// write makes the files that a launch needs.
func (t *temporary) write(files []agent.File) error {
	for _, f := range files {
		if err := t.put(f); err != nil {
			return notMade(f.Path, err)
		}
	}
	return nil
}

// put makes one file in one of our directories. Both are new, and no link leads out of them: whatever has the name
// already is not ours.
func (t *temporary) put(f agent.File) error {
	dir, name, ok := t.inside(f.Path)
	if !ok {
		return fmt.Errorf("it lies in none of our directories")
	}
	if !slices.Contains(t.made, dir) {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		t.made = append(t.made, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	if e := file.Close(); err == nil {
		err = e
	}
	return err
}

// inside finds the directory of ours that a path lies in.
func (t *temporary) inside(path string) (dir, name string, ok bool) {
	for _, dir := range t.named {
		if name, err := filepath.Rel(dir, path); err == nil && name != "." && filepath.IsLocal(name) {
			return dir, name, true
		}
	}
	return "", "", false
}

func notMade(path string, err error) error {
	return fault.New(fault.Internal, "%s cannot be written",
		printable(path)).Because(cause(err)).Hint("set TMPDIR to a directory that can be written to")
}

// home makes a private home for a rehearsal. It does not lie in the system's temporary directory, where codex refuses
// to work.
func (t *temporary) home(state string) (string, error) {
	if state == "" {
		return "", fault.New(fault.NoHome,
			"there is no place for the home of a rehearsal").Hint("set HOME or XDG_STATE_HOME")
	}
	base := filepath.Join(state, "rehearsal")
	dir := filepath.Join(base, ident.Hex(12))
	err := os.MkdirAll(base, 0o700)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		return "", notMade(dir, err)
	}
	t.named, t.made = append(t.named, dir), append(t.made, dir)
	return dir, nil
}

func (t *temporary) closes(f *os.File) { t.files = append(t.files, f) }
func (t *temporary) later(stop func()) { t.after = append(t.after, stop) }

// remove takes it all away.
func (t *temporary) remove() {
	for _, stop := range t.after {
		stop()
	}
	for _, f := range t.files {
		_ = f.Close()
		_ = os.Remove(f.Name()) // where an open file could not be removed
	}
	for _, dir := range t.made {
		_ = os.RemoveAll(dir)
	}
}
