package rehearsal

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// places limits the number of parallel runs. Of the waiting runs, that of the slowest agent is first, because it would
// end last.
type places struct {
	mu      sync.Mutex
	free    int
	waiting []*waiter
	made    int // temporary directories
}

type waiter struct {
	weight time.Duration
	turn   chan struct{} // closed when it has a place
}

func newPlaces(n int) *places { return &places{free: n} }

// take waits for a place. It returns false if the context ends first.
func (p *places) take(ctx context.Context, weight time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return true
	}
	w := &waiter{weight, make(chan struct{})}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	select {
	case <-w.turn:
		return true
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return false
	}
	p.next() // w got a place at the same moment: pass it on
	return false
}

// give passes a place on.
func (p *places) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next()
}

// next wakes the next run. The caller holds the lock.
func (p *places) next() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	best := 0
	for i, w := range p.waiting {
		if w.weight > p.waiting[best].weight {
			best = i
		}
	}
	close(p.waiting[best].turn)
	p.waiting = slices.Delete(p.waiting, best, best+1)
}

// temp returns a path of its own below dir, which is not created.
func (p *places) temp(dir string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	return filepath.Join(dir, strconv.Itoa(p.made))
}
