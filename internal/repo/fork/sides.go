package fork

import (
	"bytes"
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// mergeLimit is the size of the largest text that is merged.
const mergeLimit = 16 << 20

// theirs examines a file of the fork. It returns nil for an empty path.
func theirs(path string) (*side, error) {
	if path == "" {
		return nil, nil
	}
	return examine(path, os.Lstat, os.OpenFile, os.Readlink)
}

// mine examines a file of the workspace.
func mine(root *os.Root, name string) (*side, error) {
	return examine(filepath.FromSlash(name), root.Lstat, root.OpenFile, root.Readlink)
}

// examine looks at a file with the functions of package os, or those of a root. It returns nil if there is no file.
func examine(path string, lstat func(string) (fs.FileInfo, error),
	open func(string, int, fs.FileMode) (*os.File, error), readlink func(string) (string, error),
) (*side, error) {
	info, err := lstat(path)
	if err != nil {
		return nil, unlessMissing(err)
	}
	s := &side{status: workspace.StatusOf(info), open: func() (*os.File, error) {
		return open(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}}
	if s.isLink() {
		s.target, err = readlink(path)
	}
	return s, err
}

func unlessMissing(err error) error {
	if workspace.Absent(err) {
		return nil
	}
	return err
}

// digest returns the hash of the content of a file.
func (s *side) digest() ([32]byte, error) {
	if s.sum == nil {
		f, err := s.open()
		if err != nil {
			return [32]byte{}, err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return [32]byte{}, err
		}
		sum := [32]byte(h.Sum(nil))
		s.sum = &sum
	}
	return *s.sum, nil
}

// content returns the content of a file, unless it is too large to be merged.
func (s *side) content() ([]byte, error) {
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mergeLimit+1))
	if err == nil && len(data) > mergeLimit {
		err = fault.New(fault.FieldTooLarge, "it is too large to be merged")
	}
	return data, err
}

// same reports whether two sides are equal: in type, permissions, and content or target.
func same(a, b *side) (bool, error) {
	switch {
	case a == nil || b == nil:
		return a == nil && b == nil, nil
	case a.status.Mode.Type() != b.status.Mode.Type():
		return false, nil
	case a.isLink():
		return a.target == b.target, nil
	case a.isDir():
		return true, nil
	case a.status.Mode.Perm() != b.status.Mode.Perm():
		return false, nil
	}
	return sameContent(a, b)
}

func sameContent(a, b *side) (bool, error) {
	if a.status.Size != b.status.Size {
		return false, nil
	}
	one, err := a.digest()
	if err != nil {
		return false, err
	}
	two, err := b.digest()
	return one == two, err
}

// is reports whether a side equals the base. It compares permissions if those of the base are known.
func (b base) is(s *side) (bool, error) {
	switch {
	case !b.known:
		return false, nil
	case !b.there || s == nil:
		return !b.there && s == nil, nil
	case b.mine == s:
		return true, nil
	case b.mine != nil:
		return same(b.mine, s)
	case b.dir || s.isDir():
		return b.dir == s.isDir(), nil
	case b.link || s.isLink():
		if b.link && s.isLink() && b.read != nil {
			was, err := b.read()
			return string(was) == s.target, err
		}
		return false, nil
	case !s.isFile() || b.perm != 0 && b.perm != s.status.Mode.Perm() || b.exec != nil && *b.exec != s.isExec():
		return false, nil
	}
	if b.sum != [32]byte{} {
		sum, err := s.digest()
		return sum == b.sum, err
	}
	if b.read == nil {
		return false, nil
	}
	was, err := b.read()
	if err != nil {
		return false, nil // count it as changed; lines are compared later
	}
	sum, err := s.digest()
	return sha256.Sum256(was) == sum, err
}

func (s *side) isExec() bool { return s.status.Mode&0o100 != 0 }

// permOf returns the permissions of a file that both have changed: those of the workspace, with the fork's changes.
func (b base) permOf(m, t *side) fs.FileMode {
	mine, theirs := m.status.Mode.Perm(), t.status.Mode.Perm()
	switch exec := b.exec; {
	case b.perm == mine, b.perm == 0 && exec == nil:
		return theirs
	case b.perm != 0 && b.perm&0o100 == theirs&0o100, exec != nil && *exec == t.isExec():
		return mine
	case t.isExec():
		return mine | mine&0o444>>2
	}
	return mine &^ 0o111
}

// text returns the base content of a regular file. known is false if it is unknown.
func (b base) text() (data []byte, known bool) {
	switch {
	case b.mine.isFile():
		data, err := b.mine.content()
		return data, err == nil
	case !b.known || !b.there || b.link || b.dir || b.read == nil:
		return nil, b.known && !b.there
	}
	data, err := b.read()
	return data, err == nil
}

// isText reports whether a content can be merged by lines.
func isText(data []byte) bool { return bytes.IndexByte(data[:min(len(data), 8000)], 0) < 0 }

// marks reports whether a file has the markers of a conflict with this fork.
func (a *applying) marks(s *side) bool {
	if s == nil || !s.isFile() {
		return false
	}
	data, err := s.content()
	return err == nil && bytes.Contains(data, []byte("<<<<<<< workspace\n")) &&
		bytes.Contains(data, []byte(">>>>>>> fork "+a.Name+"\n"))
}
