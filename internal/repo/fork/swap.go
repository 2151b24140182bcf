package fork

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"omniagent/internal/kit/fault"
)

// carryOut moves the branch, unless somebody has changed meanwhile what would be replaced.
func (m move) carryOut() error {
	if m.to == "" {
		return nil
	}
	if err := m.swap(); err != nil {
		return fault.New(fault.Conflicting, "the files were brought home, but the commits were not: %s",
			fault.Bare(err)).
			Hint("omniagent fork apply %s, again", m.fork.Name)
	}
	return nil
}

// files returns the files of git that a move replaces. The index is the first: if this process is killed in between,
// what the fork has committed is staged, and a commit of the person would have it too.
func (m move) files() []string {
	f := m.fork
	return []string{
		filepath.Join(f.GitDir, "index"), filepath.Join(f.Common, filepath.FromSlash(m.ref)),
		filepath.Join(f.GitDir, "HEAD"),
	}
}

// swap holds git's own locks of all files while it checks and replaces them, so that git can change none in between.
func (m move) swap() error {
	f, files := m.fork, m.files()
	was, err := f.home().Commit(m.ref)
	if err != nil {
		return err
	}
	data := make([][]byte, len(files)) // nil if the file stays
	if was != m.to {
		data[1] = []byte(m.to + "\n")
	}
	if m.inPlace && !m.keepIndex {
		data[0] = m.index
	}
	if m.inPlace && m.from.Ref != m.ref {
		data[2] = []byte("ref: " + m.ref + "\n")
	}
	defer m.tidy()
	for i, path := range files {
		if i == 1 || m.inPlace {
			if err := lockWith(path, m.staged(i), data[i]); err != nil {
				return err
			}
		}
	}
	if err := m.check(was); err != nil {
		return err
	}
	if was != m.to {
		m.note(f.Common, m.ref, was)
	}
	if m.inPlace && (was != m.to || m.from.Ref != m.ref) {
		m.note(f.GitDir, "HEAD", m.from.Commit)
	}
	for i, path := range files {
		if data[i] != nil {
			if err := os.Rename(path+".lock", path); err != nil {
				return err
			}
		}
	}
	return nil
}

// check returns an error if the branch, or what is staged, is not what it was when the move was planned.
func (m move) check(was string) error {
	if is, err := m.fork.home().Commit(m.ref); err != nil || is != was {
		return cmp.Or(err, errMoved)
	}
	if !m.inPlace {
		return nil
	}
	here, err := m.fork.home().Head()
	if err != nil || here != m.from || !m.unmoved(here) || !m.keepIndex && !m.unstaged() {
		return cmp.Or(err, errMoved)
	}
	return nil
}

var errMoved = errors.New("the branch, or what is staged, has changed during this call")

// lockWith creates the file by which git locks another one. It is a hard link to the staged file, by which a later
// process recognises it as ours.
func lockWith(path, staged string, data []byte) error {
	perm := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		perm = info.Mode().Perm()
	}
	_ = os.Remove(staged)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { // as git does: others may read the repository
		return err
	}
	err := os.WriteFile(staged, data, perm)
	if err == nil {
		err = os.Link(staged, path+".lock")
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s.lock is there, so git is at work", path)
	}
	return err
}

// staged returns the path of the staged file for one of the files.
func (m move) staged(i int) string {
	return filepath.Join(m.fork.GitDir, m.stage+"-"+strconv.Itoa(i))
}

// tidy removes what is left of locks and staged files.
func (m move) tidy() {
	if m.stage == "" {
		return
	}
	for i, path := range m.files() {
		mine, err := os.Stat(m.staged(i))
		if err != nil {
			continue
		}
		if lock, err := os.Stat(path + ".lock"); err == nil && os.SameFile(lock, mine) {
			_ = os.Remove(path + ".lock")
		}
		_ = os.Remove(m.staged(i))
	}
}
