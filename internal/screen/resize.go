package screen

import "time"

const (
	rest   = 60 * time.Millisecond  // how long a size has to stay
	answer = 200 * time.Millisecond // how long we wait for where the cursor is
)

// resize is a change of the window's size, until the region is painted for the new one.
type resize struct {
	step  int // 0: none; 1: the size may change again; 2: the terminal was asked where the cursor is
	timer *time.Timer
	size  position // when it was asked
}

func (r *resize) waits() bool { return r.step > 0 }

func (r *resize) end() {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.step = 0
}

// Resize tells that the window may have another size. The region is painted anew once the size rests: a window is drawn
// larger by hand in many steps.
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
	r.step = 1
	r.timer = time.AfterFunc(rest, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.step == 1 && !s.closed {
			s.ask()
		}
	})
}

// ask asks the terminal where the cursor is. The answer comes when it has done everything before.
func (s *Screen) ask() {
	r := &s.resize
	if r.size = s.measure(); s.parked || s.cursor.row == 0 && s.cursor.column < r.size.column {
		s.repaint(0)
		return
	}
	r.step = 2
	s.write([]byte("\x1b[6n"), 0)
	r.timer = time.AfterFunc(answer, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.step == 2 && !s.closed {
			s.repaint(0)
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
	if s.measure() != r.size {
		s.beginResize()
		return
	}
	// The row with the cursor is broken anew by some terminals and cut by others, which leave the cursor at its end.
	below, columns := 0, r.size.column
	if at := s.cursor.column; at >= columns && column < columns && column-1 == at%columns {
		below = at / columns
	}
	s.repaint(below)
}

// repaint paints the region for the new size. The cursor stands so many rows below the beginning of its own row.
func (s *Screen) repaint(below int) {
	r := &s.resize
	r.end()
	if s.parked {
		below = 0
	}
	up := below
	for _, row := range s.shown[:min(s.cursor.row, len(s.shown))] {
		up += s.height(row, r.size.column)
	}
	s.cursor = position{min(up, r.size.row-1), -1}
	s.size = r.size
	s.frames.earned = max(s.frames.earned, 0)
	s.anew = true
	s.paint(true)
	s.schedule()
}

// height returns how many rows a row of the region takes in a window of another width.
func (s *Screen) height(r row, columns int) int {
	if !s.o.Reflows {
		return 1
	}
	rows, used := 1, 0
	for _, c := range r {
		if used+c.Width > columns {
			rows, used = rows+1, 0
		}
		used += c.Width
	}
	return rows
}
