package tool

import (
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
