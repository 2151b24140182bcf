package screen

import "time"

const (
	interval = 33 * time.Millisecond // between two frames
	rate     = 1900                  // bytes a second that are not text; what keys change comes on top
	burst    = 1024
	share    = 0.28 // and per byte of text
)

// frames decides when the next frame is due.
type frames struct {
	timer   *time.Timer
	due     bool
	last    time.Time // of a frame with everything
	earned  float64   // bytes that may be spent
	at      time.Time // when that was counted
	cost    float64   // of a usual frame
	stopped bool
}

// schedule makes sure that a frame will be painted. The caller holds the lock.
func (s *Screen) schedule() {
	f := &s.frames
	if f.due || f.stopped || s.closed || s.resize.waits() {
		return
	}
	wait := interval - time.Since(f.last)
	if f.count(); f.earned < f.cost {
		wait = max(wait, time.Duration((f.cost-f.earned)/rate*float64(time.Second)))
	}
	if wait <= 0 && !s.o.Reader {
		s.paint(true)
		return
	}
	f.due = true
	f.timer = s.after(max(wait, 0), func() {
		f.due = false
		if !f.stopped {
			s.paint(true)
		}
	})
}

// after runs do under the lock, after wait.
func (s *Screen) after(wait time.Duration, do func()) *time.Timer {
	return time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		do()
	})
}

// count adds what was earned since the last count.
func (f *frames) count() {
	now := time.Now()
	f.earned = min(f.earned+rate*now.Sub(f.at).Seconds(), burst)
	f.at = now
}

// spend counts bytes that were written, of which so many are text.
func (f *frames) spend(bytes, text int) {
	f.count()
	overhead := float64(bytes - text)
	f.earned = max(f.earned+share*float64(text)-overhead, -burst)
	f.cost = f.cost*0.7 + max(overhead-share*float64(text), 0)*0.3
}

func (f *frames) painted() { f.last = time.Now() }

func (f *frames) stop() {
	f.stopped = true
	if f.timer != nil {
		f.timer.Stop()
	}
}
