package screen

import "time"

const (
	rest   = 60 * time.Millisecond // how long a size has to stay
	answer = time.Second           // how long we wait for where the cursor is
	calm   = time.Second           // how long a size has to stay until the cursor goes back to the input
)

// resize is a change of the window's size, until the region is painted for the new one.
type resize struct {
	step  int // 0: none; 1: the size may change again; 2: the terminal was asked where the cursor is
	timer *time.Timer
	size  position // when it was asked
	talks bool     // the terminal has answered once
	mute  bool     // it never did, and is not asked again

	restless bool        // sizes have changed a moment ago: the cursor is parked, so the next need not be guessed
	calm     *time.Timer // ends that
}

func (r *resize) waits() bool { return r.step > 0 }

func (r *resize) end() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.step = 0
}

// rests ends the time in which the cursor is parked.
func (r *resize) rests() {
	if r.calm != nil {
		r.calm.Stop()
	}
	r.restless = false
}

// Resize tells that the window may have another size. While the cursor is parked the region is painted again at once:
// between a frame that met another window and one that fits, a second change could still go wrong. Otherwise it waits
// until the size rests, and for the terminal to say where the cursor is.
func (s *Screen) Resize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && !s.o.Reader { // also where the size is as before: it may have been another in between
		s.beginResize()
	}
}

func (s *Screen) beginResize() {
	r := &s.resize
	r.end()
	if r.size = s.measure(); s.parked {
		s.repaint(-1)
		return
	}
	r.step = 1
	r.timer = s.after(rest, func() {
		if r.step == 1 && !s.closed {
			s.ask()
		}
	})
}

// ask asks the terminal where the cursor is. The answer comes when it has done everything before.
func (s *Screen) ask() {
	r := &s.resize
	if r.size = s.measure(); r.mute || s.cursor.row == 0 && s.cursor.column < r.size.column {
		s.repaint(-1)
		return
	}
	r.step = 2
	s.write([]byte("\x1b[6n"), 0)
	r.timer = s.after(answer, func() {
		if r.step == 2 && !s.closed {
			r.mute = !r.talks
			s.repaint(-1)
		}
	})
}

// Position tells where the cursor is, from 1, as the terminal answered.
func (s *Screen) Position(row, column int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.resize
	if r.step != 2 || s.closed {
		return
	}
	r.talks = true
	if s.measure() != r.size {
		s.beginResize()
		return
	}
	s.repaint(column - 1)
}

// above returns how many rows of the region now stand above the cursor, which is in a column that the terminal has
// told; -1: it has not. The rows are one line to the terminal. If it breaks lines again, the cursor is where its
// character went; if not, it is where it was, or in the last column. Where that does not decide, the smaller number is
// safe.
func (s *Screen) above(columns, column int) int {
	at := s.cursor
	stayed := at.row
	offset := at.row*s.size.column + at.column
	moved := offset / columns
	hasMoved, hasStayed := column == offset%columns, column == min(at.column, columns-1)
	switch {
	case hasMoved && !hasStayed:
		return moved
	case hasStayed && !hasMoved:
		return stayed
	}
	return min(moved, stayed)
}

// settle takes a new size. The terminal has told the column of the cursor, or -1.
func (s *Screen) settle(size position, column int) {
	s.cursor = position{min(s.above(size.column, column), size.row-1), -1}
	s.size, s.anew = size, true
}

// repaint paints the region for the new size.
func (s *Screen) repaint(column int) {
	s.settle(s.resize.size, column)
	s.resize.end()
	s.resize.rests()
	s.resize.restless = true
	s.resize.calm = s.after(calm, func() {
		if s.resize.restless {
			s.resize.restless = false
			s.paint(true)
		}
	})
	s.frames.earned = max(s.frames.earned, 0)
	s.paint(true)
	s.schedule()
}
