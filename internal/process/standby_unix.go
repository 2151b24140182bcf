//go:build unix

package process

import "sync"

// Standby is a guard that has no child yet. To start one takes about as long as to find out what it will guard, so both
// can be done at the same time.
type Standby struct {
	mark  string
	ready chan struct{} // closed when guard and err are set
	guard *guardian
	err   error
	taken sync.Once
}

// Prepare begins to start a guard, and returns at once. Dismiss has to be called, whether a child is started with it or
// not.
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

// take gives the guard away, once. Nil without an error: there is none any more.
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

// guardFor takes the guard that waits, or starts one.
func guardFor(s *Standby) (*guardian, error) {
	if guard, err := s.take(); guard != nil || err != nil {
		return guard, err
	}
	return startGuard(newMark())
}
