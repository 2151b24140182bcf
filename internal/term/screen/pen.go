package screen

import (
	"bytes"
	"fmt"
	"strings"

	"omniagent/internal/term/cells"
)

// pen writes cells into the region. It tracks where the cursor is, relative to the first row of the region.
type pen struct {
	b       *bytes.Buffer
	columns int
	at      position // column -1: not known
	joins   bool     // a row whose end was erased is joined with the next again
}

const (
	wrapOff     = "\x1b[?7l"
	wrapOn      = "\x1b[?7h"
	saveCursor  = "\x1b7"
	backToSaved = "\x1b8"
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	lastColumn  = "\x1b[999G"
)

// move moves the cursor within the region.
func (p *pen) move(to position) {
	switch by := to.row - p.at.row; {
	case by < 0:
		p.step(-by, 'A')
	case by > 0:
		p.step(by, 'B')
	}
	switch {
	case to.column == p.at.column:
	case to.column == 0:
		p.b.WriteByte('\r')
	default:
		fmt.Fprintf(p.b, "\x1b[%dG", to.column+1)
	}
	p.at = to
}

func (p *pen) step(n int, direction byte) {
	if n == 1 {
		fmt.Fprintf(p.b, "\x1b[%c", direction)
		return
	}
	fmt.Fprintf(p.b, "\x1b[%d%c", n, direction)
}

// erase erases the region, and everything below it, and leaves the cursor at its beginning. What stands below the first
// row is erased from the second column on: tmux keeps a screen that is erased from its first cell in the scrollback.
func (p *pen) erase() {
	p.move(position{0, 0})
	p.b.WriteString("\r\x1b[K\x1b[C\x1b[J\r")
}

// room makes sure that the screen has that many rows from the first row of the region on, where the cursor is. IND
// moves down or scrolls, so the way back has the same length whatever the size of the window is now. A newline would
// separate the rows.
func (p *pen) room(rows int) {
	if rows > 1 {
		p.b.WriteString(strings.Repeat("\x1bD", rows-1))
		p.at.row = rows - 1
		p.move(position{0, 0})
	}
}

// draw writes all rows into an empty region, and leaves the cursor at its beginning. No row wraps: if the window is
// smaller now, the end of a row is missing until the next frame.
func (p *pen) draw(rows []row) {
	p.room(len(rows))
	p.b.WriteString(saveCursor + wrapOff)
	for i, r := range rows {
		if i > 0 {
			p.join(rows[i-1])
		}
		p.write(r, 0)
	}
	p.b.WriteString(wrapOn + backToSaved)
	p.at = position{}
}

// join goes to the next row, so that the terminal takes both for one line that it has wrapped. xterm.js leaves the line
// with the cursor alone when the width changes; of other lines it loses count of those below the cursor.
func (p *pen) join(above row) {
	last := cells.Cell{Text: " ", Width: 1}
	if width(above) >= p.columns {
		last = above[len(above)-1]
	}
	p.b.WriteString(lastColumn)
	if last.Width == 2 {
		p.step(1, 'D')
	}
	p.b.WriteString(wrapOn + last.Style.Of(last.Text) + " \r" + wrapOff)
	p.at = position{p.at.row + 1, 0}
}

// update changes the rows that differ, with wrapping switched off. Further rows have room.
func (p *pen) update(before, after []row) {
	for i, want := range after {
		if i < len(before) {
			if p.change(i, before[i], want) && p.joins && i+1 < len(after) {
				p.join(want)
			}
			continue
		}
		p.move(position{i - 1, p.at.column})
		p.join(after[i-1])
		p.write(want, 0)
	}
	if n := len(after); len(before) > n && n > 0 {
		p.move(position{n, 0})
		p.b.WriteString("\x1b[J")
	}
}

// change writes the part of a row that differs. It reports whether the end of the row was erased.
func (p *pen) change(i int, was, want row) (erased bool) {
	same, column := 0, 0
	for same < len(was) && same < len(want) && was[same] == want[same] {
		column += want[same].Width
		same++
	}
	if same == len(was) && same == len(want) {
		return false
	}
	end := len(want)
	if width(was) == width(want) && len(was) == len(want) { // what stands behind the change may stay
		for end > same && was[end-1] == want[end-1] {
			end--
		}
	}
	p.move(position{i, column})
	p.write(want[:end], same)
	used := width(want)
	if width(was) <= used {
		return false
	}
	p.move(position{i, used})
	if used == 0 { // to erase a row from its beginning would part it from the row above
		p.b.WriteByte(' ')
		p.at.column++
	}
	p.b.WriteString("\x1b[K")
	return true
}

func width(r row) int {
	sum := 0
	for _, c := range r {
		sum += c.Width
	}
	return sum
}

// write writes the cells of a row from an index on, beginning at the cursor.
func (p *pen) write(r row, from int) {
	now, column := cells.None, p.at.column
	for _, c := range r[from:] {
		if p.at.column < 0 {
			p.move(position{p.at.row, column})
		}
		if c.Style != now {
			if now != cells.None && c.Style != cells.None {
				p.b.WriteString("\x1b[0;" + string(c.Style) + "m")
			} else {
				p.b.WriteString("\x1b[" + string(c.Style) + "m")
			}
			now = c.Style
		}
		p.b.WriteString(c.Text)
		column += c.Width
		p.at.column = column
		if !cells.Sure(c.Text) || column >= p.columns { // in the last column, terminals differ in where they are
			p.at.column = -1
		}
	}
	if now != cells.None {
		p.b.WriteString("\x1b[m")
	}
}
