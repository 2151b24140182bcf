package tool

import (
	"os"
	"sync"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// Seen holds the fingerprints of the files that a conversation has read or written. It is safe for concurrent use, and
// shared with sub-agents. The zero value and nil are empty.
type Seen struct {
	mu    sync.Mutex
	files map[string]workspace.Fingerprint
}

// Record stores the fingerprint of name.
func (s *Seen) Record(name string, print workspace.Fingerprint) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil {
		s.files = map[string]workspace.Fingerprint{}
	}
	s.files[name] = print
}

// Lookup returns the fingerprint of name, and whether it was recorded.
func (s *Seen) Lookup(name string) (workspace.Fingerprint, bool) {
	if s == nil {
		return workspace.Fingerprint{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	print, ok := s.files[name]
	return print, ok
}

// check refuses a file that has changed since it was recorded. It accepts a file that was never recorded.
func (s *Seen) check(name, shown string, now workspace.Fingerprint) error {
	if was, ok := s.Lookup(name); ok && !was.Same(now) {
		return changed(shown)
	}
	return nil
}

func changed(shown string) error {
	return fault.New(fault.ConcurrentModification, "%s has changed on disk since it was read; nothing was written",
		shown).
		Hint("Read it again, then repeat the change on what it holds now.")
}

// FileState is the state of a file when a person was asked about a call. A file that is too large or cannot be read is
// identified by its size and time.
type FileState struct {
	name  string
	print workspace.Fingerprint
	info  os.FileInfo // nil: there was no file
}

// same reports whether the file is unchanged.
func (was *FileState) same(is *FileState) bool {
	switch {
	case !was.print.Same(is.print) || (was.info == nil) != (is.info == nil):
		return false
	case was.info == nil || was.print.Exists():
		return true
	}
	return was.info.Size() == is.info.Size() && was.info.ModTime().Equal(is.info.ModTime()) &&
		os.SameFile(was.info, is.info)
}

// sight returns the current state of the file, given its fingerprint.
func (s *subject) sight(print workspace.Fingerprint) *FileState {
	info, _ := s.files.Stat(s.name)
	return &FileState{s.name, print, info}
}

// print returns the fingerprint of the file, or the zero value without one.
func (s *subject) print() workspace.Fingerprint {
	_, print, _ := s.files.Load(s.name, largestFile)
	return print
}

// note implements Action.Asked for a call that changes the file.
func (s *subject) note(seen *FileState) *FileState {
	if seen == nil {
		seen = s.sight(s.print())
	}
	if seen.name == s.name {
		s.asked = seen
	}
	return seen
}

// still refuses a file that has changed since a person was asked. If nobody was asked, it reads nothing.
func (s *subject) still() error {
	if s.asked == nil {
		return nil
	}
	return s.unseen(s.print())
}

// unseen refuses a file whose fingerprint differs from when a person was asked.
func (s *subject) unseen(now workspace.Fingerprint) error {
	if s.asked == nil || s.asked.same(s.sight(now)) {
		return nil
	}
	return fault.New(fault.ConcurrentModification, "%s has changed since the person was asked; nothing was written",
		s.shown).
		Hint("Read it, then make the call that suits what it holds now.")
}
