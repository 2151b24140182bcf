package shim

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/pathname"
)

// temporary holds the temporary files of a call.
type temporary struct {
	named []string // private directories whose paths the agent may know, created when needed
	made  []string
	after []func()
}

// path returns a new path for a private directory, because the agent may have tampered with an earlier one. The
// directory is not created yet: the translation may not need it.
func (t *temporary) path(base string) string {
	dir := filepath.Join(base, "omniagent-"+ident.Hex(12))
	t.named = append(t.named, dir)
	return dir
}

// write creates the files that a launch needs.
func (t *temporary) write(files []agent.File) error {
	for _, f := range files {
		if err := t.put(f); err != nil {
			return notMade(f.Path, "TMPDIR", err)
		}
	}
	return nil
}

// put creates one file in one of our directories. It fails if the file exists, or a link leads out of the directory.
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
	return cmp.Or(err, file.Close())
}

// inside returns our directory that contains a path.
func (t *temporary) inside(path string) (dir, name string, ok bool) {
	for _, dir := range t.named {
		if name, within := pathname.In(dir, path); within && name != "." {
			return dir, name, true
		}
	}
	return "", "", false
}

// notMade returns the fault for a file or directory that cannot be written. The variable sets another place for it.
func notMade(path, variable string, err error) error {
	return fault.New(fault.Internal, "%s cannot be written", printable(path)).
		Because(fault.Bare(err)).Hint("set %s to a directory that can be written to", variable)
}

// home creates a private home for a rehearsal, outside the system's temporary directory, where codex refuses to work.
func (t *temporary) home(state string) (string, error) {
	if state == "" {
		return "", fault.New(fault.NoHome, "there is no place for the home of a rehearsal").
			Hint("set HOME or XDG_STATE_HOME")
	}
	base := filepath.Join(state, "rehearsal")
	dir := filepath.Join(base, ident.Hex(12))
	if err := cmp.Or(os.MkdirAll(base, 0o700), os.Mkdir(dir, 0o700)); err != nil {
		return "", notMade(dir, "XDG_STATE_HOME", err)
	}
	t.named, t.made = append(t.named, dir), append(t.made, dir)
	return dir, nil
}

func (t *temporary) later(stop func()) { t.after = append(t.after, stop) }

// remove removes everything.
func (t *temporary) remove() {
	for _, stop := range t.after {
		stop()
	}
	for _, dir := range t.made {
		_ = os.RemoveAll(dir)
	}
}
