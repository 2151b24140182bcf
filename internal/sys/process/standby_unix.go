//go:build unix

package process

import "sync"

// Standby is a guard or a namespace that waits for a child. Starting one takes about as long as preparing the child, so
// both can happen at the same time.
type Standby struct {
	apart bool
	ready chan struct{} // closed when the rest is set
	guard *guardian
	space *namespace
	err   error
	taken sync.Once
}

// Prepare starts a guard in the background, or a namespace if apart is true and the system allows it, and returns at
// once. The caller has to call Dismiss, whether a child uses it or not.
func Prepare(apart bool) *Standby {
	s := &Standby{apart: apart, ready: make(chan struct{})}
	go func() {
		s.guard, s.space, s.err = newGuard(apart)
		close(s.ready)
	}()
	return s
}

// Dismiss ends a guard or namespace that no child has taken. A nil Standby has none.
func (s *Standby) Dismiss() {
	if s == nil {
		return
	}
	guard, space, _ := s.take()
	if guard != nil {
		guard.dismiss()
	}
	if space != nil {
		space.dismiss()
	}
}

// take hands over the guard or the namespace, once. Later it returns nil without an error.
func (s *Standby) take() (guard *guardian, space *namespace, err error) {
	s.taken.Do(func() {
		<-s.ready
		guard, space, err = s.guard, s.space, s.err
	})
	return guard, space, err
}

// guardFor returns the waiting guard or namespace, or starts one.
func guardFor(p Plan) (*guardian, *namespace, error) {
	if p.Bound {
		return nil, nil, nil
	}
	apart := p.apart()
	if p.Standby != nil && p.Standby.apart == apart {
		if guard, space, err := p.Standby.take(); guard != nil || space != nil || err != nil {
			return guard, space, err
		}
	}
	return newGuard(apart)
}

func newGuard(apart bool) (guard *guardian, space *namespace, err error) {
	if apart {
		if space, err = newNamespace(); err == nil {
			return nil, space, nil
		}
	}
	guard, err = startGuard(newMark())
	return guard, nil, err
}
