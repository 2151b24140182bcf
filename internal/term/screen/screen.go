// Package screen shows a conversation in a terminal without taking it over.
//
// Finished text is printed once, as logical lines, into the terminal's own scrollback, and never touched again: the
// terminal wraps, keeps and copies it. Below it is a live region of a few rows: text that still grows, a status, the
// prompt, candidates. Only the region is repainted, by the cells that differ; while nothing changes nothing is written.
// What is not text costs at most 2 KiB a second and three tenths of the text.
//
//	Print ─▶ finished lines ─┐
//	Set ───▶ live region ────┴─▶ frame, at most every 33 ms and within the budget; at once when the input changed
//	Resize ─▶ frame; where the cursor is in the input, not before the size rests
//
// A terminal wraps its lines again when its width changes, and a frame that is on its way then meets unexpected rows.
// Only the cursor keeps its place in the text. So while there are rows above the input, which is while a turn runs, the
// real cursor is hidden and parked at the beginning of the region, where every frame begins and ends, and a drawn one
// is shown in the input: no frame can hit what is above the region. Otherwise the cursor is the real one, for input
// methods that compose characters, and after a change of the size the terminal is asked where it is; then it stays
// parked for a second, since one change of the size is seldom the last.
//
// For a screen reader nothing moves and nothing is erased: finished lines and what is typed are appended, and the rest
// of the region is left out.
//
// It does not clean text: lines have styles and no other control sequence. It keeps no line after it was printed.
package screen

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"time"

	"omniagent/internal/term/cells"
	"omniagent/internal/term/lineedit"
)

// Options say what the terminal is.
type Options struct {
	Out    io.Writer
	Size   func() (columns, rows int)
	Reader bool // a screen reader reads what is written
	Plain  bool // styles are left out; see Colour
}

// Live is the region below the finished lines, from top to bottom. Its strings may have styles.
type Live struct {
	Tail  []string // text that still grows; its last rows are shown
	Above []string // status, todo list: a row each, cut where the window ends
	// Input is the prompt, in rows for the width that Width returns. The cursor stands in it.
	Input lineedit.View
	Below []string // hints: a row each, below the candidates of the input
}

// Screen is a terminal with finished lines and a live region. Its methods may be called from any goroutine.
type Screen struct {
	o Options

	mu      sync.Mutex
	done    []string // finished, and not printed yet
	waiting int      // bytes of these
	live    Live     // as it should be
	tail    []string // as it was painted last
	shown   []row    // the region on the screen; empty: the cursor stands where it will begin
	cursor  position // in shown
	size    position // of the window when it was painted
	begun   bool     // something was written
	parked  bool     // the cursor is hidden and stands at the beginning of the region
	anew    bool     // what stands in the region is not known any more, only where it begins
	closed  bool
	err     error

	frames frames
	resize resize
	spoken spoken
}

type row = []cells.Cell

type position struct{ row, column int }

// New returns a screen. Its first line begins where the cursor is, which is in the first column.
func New(o Options) *Screen {
	s := &Screen{o: o}
	s.size = s.measure()
	s.frames.earned, s.frames.at = burst, time.Now()
	return s
}

func (s *Screen) measure() position {
	columns, rows := s.o.Size()
	return position{max(rows, 2), max(columns, 8)}
}

// Width returns the width for which the rows of Live.Input are made.
func (s *Screen) Width() int { return s.measure().column - 1 }

// mostWaiting is the limit, in bytes, of finished lines that wait for the next frame.
const mostWaiting = 1 << 20

// Print prints finished lines, soon. A line has no newline in it.
func (s *Screen) Print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, lines...)
	for _, line := range lines {
		s.waiting += len(line)
	}
	switch {
	case s.waiting > mostWaiting: // a caller that prints more waits for the terminal
		s.paint(true)
	case len(lines) > 0:
		s.schedule()
	}
}

// Set changes the live region: at once if the input changed, else soon. The screen owns the slices in it afterwards.
func (s *Screen) Set(live Live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	typed := !equalView(live.Input, s.live.Input)
	s.live = live
	if s.live.Input.Rows == nil {
		s.live.Input.Rows = []string{""}
	}
	if typed || !s.begun {
		s.paint(false)
	}
	s.schedule()
}

func equalView(a, b lineedit.View) bool {
	return a.Row == b.Row && a.Column == b.Column && slices.Equal(a.Rows, b.Rows) && slices.Equal(a.Below, b.Below)
}

// Flush paints what waits, now.
func (s *Screen) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paint(true)
	return s.err
}

// Clear prints what is finished and removes the region, for a program that writes by itself. The next Set or Print
// begins a new region at the cursor, which must be in the first column.
func (s *Screen) Clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.err
}

func (s *Screen) clear() {
	if s.resize.waits() || s.measure() != s.size { // there is no time to ask
		s.resize.end()
		s.settle(s.measure(), -1)
	}
	live := s.live
	s.live = Live{Input: lineedit.View{Rows: []string{""}}}
	if s.begun {
		s.paint(true)
	}
	if s.o.Reader {
		s.spoken.newLine(s)
	}
	s.live = live
	s.forget()
}

// Restart begins a new region below everything, after other programs have written to the terminal.
func (s *Screen) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resize.end()
	s.forget()
	s.paint(true)
}

// forget begins a new region where the cursor is.
func (s *Screen) forget() {
	s.shown, s.cursor, s.tail = nil, position{}, nil
	s.begun, s.anew, s.parked = false, false, false
	s.resize.rests()
	s.size = s.measure()
}

// Close is Clear, after which nothing is written any more.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.clear()
		s.closed = true
		s.frames.stop()
	}
	return s.err
}

// write writes a frame.
func (s *Screen) write(b []byte, text int) {
	if s.err != nil || s.closed || len(b) == 0 {
		return
	}
	s.begun = true
	s.frames.spend(len(b), text)
	_, s.err = s.o.Out.Write(b)
}

// paint brings the screen up to date. all is false for what keys change alone.
func (s *Screen) paint(all bool) {
	if s.closed || s.err != nil || s.resize.waits() {
		return
	}
	if s.o.Reader {
		s.spoken.paint(s)
		return
	}
	if now := s.measure(); now != s.size {
		s.beginResize()
		return
	}
	live := s.live
	if live.Tail = s.tail; all {
		live.Tail = s.live.Tail
	}
	rows, cursor := layout(live, s.size)
	if s.o.Plain {
		for _, r := range rows {
			for i := range r {
				r[i].Style = cells.None
			}
		}
	}
	parks := len(live.Tail)+len(live.Above) > 0 || s.resize.restless
	if parks {
		drawCursor(rows, cursor)
		cursor = position{}
	}
	var b bytes.Buffer
	p := pen{b: &b, columns: s.size.column, at: s.cursor}
	if parks && !s.parked {
		b.WriteString(hideCursor)
	}
	text := 0
	switch {
	case !s.begun, s.anew, all && len(s.done) > 0, s.parked && !parks:
		text = s.paintAnew(&p, rows)
	case parks:
		s.paintParked(&p, rows)
	default:
		s.paintTyped(&p, rows)
	}
	p.move(cursor)
	if s.parked && !parks {
		b.WriteString(showCursor)
	}
	if all {
		s.tail = live.Tail
		s.frames.painted()
	}
	s.shown, s.cursor, s.parked, s.anew = rows, cursor, parks, false
	s.write(b.Bytes(), text)
}

// A terminal that supports these sequences shows what is between them at once. Others ignore them.
const (
	frameBegin = "\x1b[?2026h"
	frameEnd   = "\x1b[?2026l"
)

// paintAnew prints the finished lines over the region, and all of the region below them.
func (s *Screen) paintAnew(p *pen, rows []row) (text int) {
	p.b.WriteString(frameBegin)
	p.erase()
	for _, line := range s.done {
		if s.o.Plain {
			line = cells.Plain(line)
		}
		p.b.WriteString(line)
		p.b.WriteString("\r\n")
		text += len(line) + 2
	}
	s.done, s.waiting = nil, 0
	p.draw(rows)
	p.b.WriteString(frameEnd)
	return text
}

// paintTyped changes the rows that differ while the cursor is in the input. What is typed at its end is all that is
// written for it.
func (s *Screen) paintTyped(p *pen, rows []row) {
	if len(rows) <= 1 && len(s.shown) <= 1 {
		p.update(s.shown, rows)
		return
	}
	if len(rows) > len(s.shown) {
		p.move(position{0, 0})
		p.room(len(rows))
	}
	p.b.WriteString(wrapOff)
	p.joins = true
	p.update(s.shown, rows)
	p.b.WriteString(wrapOn)
}

// paintParked changes the rows that differ while the cursor is parked. It leaves from the cursor and comes back to it
// by position: if the window has changed meanwhile, the frame goes wrong within the region at most.
func (s *Screen) paintParked(p *pen, rows []row) {
	p.move(position{})
	if len(rows) > len(s.shown) {
		p.room(len(rows))
	}
	before := p.b.Len()
	p.b.WriteString(saveCursor + wrapOff)
	start := p.b.Len()
	p.update(s.shown, rows)
	if p.b.Len() == start {
		p.b.Truncate(before)
		return
	}
	p.b.WriteString(wrapOn + backToSaved)
	p.at = position{}
}

// drawCursor shows where the cursor would be, since the real one is parked.
func drawCursor(rows []row, at position) {
	r := rows[at.row]
	column := 0
	for i := range r {
		if column == at.column {
			r[i].Style = r[i].Style.With(cells.Reverse)
			return
		}
		column += r[i].Width
	}
	for ; column < at.column; column++ {
		r = append(r, cells.Cell{Text: " ", Width: 1})
	}
	rows[at.row] = append(r, cells.Cell{Text: " ", Width: 1, Style: cells.Reverse})
}
