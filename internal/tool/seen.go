package tool

import (
	"sync"

	"omniagent/internal/fault"
	"omniagent/internal/workspace"
)

// Seen is what a conversation knows of the files that it has read or written. It may be used from several goroutines,
// and by the sub-agents of a conversation. The zero value, and nil, know nothing.
type Seen struct {
	mu    sync.Mutex
	files map[string]workspace.Fingerprint
}

// Record keeps what name was like when it was read or written.
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

// Lookup tells what name was like, and whether it was seen at all.
func (s *Seen) Lookup(name string) (workspace.Fingerprint, bool) {
	if s == nil {
		return workspace.Fingerprint{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	print, ok := s.files[name]
	return print, ok
}

// check refuses a file that is not as the conversation knows it. One that it has never seen may be anything.
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
