//go:build unix

package process

import "sync"

// Standby is a guard without a child. Starting a guard takes about as long as finding out what it will guard, so both
// can happen at the same time.
type Standby struct {
	mark  string
	ready chan struct{} // closed when guard and err are set
	guard *guardian
	err   error
	taken sync.Once
}

// Prepare begins to start a guard, and returns at once. The caller has to call Dismiss, whether a child uses the guard
// or not.
func Prepare() *Standby {
	s := &Standby{mark: newMark(), ready: make(chan struct{})}
	go func() {
		s.guard, s.err = startGuard(s.mark)
		close(s.ready)
	}()
	return s
}

// Dismiss ends a guard that no child has taken.
func (s *Standby) Dismiss() {
	if guard, _ := s.take(); guard != nil {
		guard.dismiss()
	}
}

// take hands over the guard, once. Later it returns nil without an error.
func (s *Standby) take() (guard *guardian, err error) {
	if s == nil {
		return nil, nil
	}
	s.taken.Do(func() {
		<-s.ready
		guard, err = s.guard, s.err
	})
	return guard, err
}

// guardFor returns the waiting guard, or starts one.
func guardFor(s *Standby) (*guardian, error) {
	if guard, err := s.take(); guard != nil || err != nil {
		return guard, err
	}
	return startGuard(newMark())
}
