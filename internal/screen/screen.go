// Package screen shows a conversation in a terminal without taking it over.
//
// What is finished is printed once, as logical lines, into the terminal's own scrollback, and never touched again: the
// terminal wraps it, keeps it and copies it. Below it stands a live region of a few rows: text that still grows, a
// status, the prompt, candidates. Only the region is repainted, by the cells that differ; while nothing changes nothing
// is written. What is not text costs at most 2 KiB a second and three tenths of the text, apart from what keys change.
//
//	Print ─▶ finished lines ─┐
//	Set ───▶ live region ────┴─▶ frame, at most every 33 ms and within the budget; at once when the input changed
//	Resize ─▶ no frame until the size rests and the terminal has said where the cursor is ─▶ frame
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

	"omniagent/internal/cells"
	"omniagent/internal/lineedit"
)

// Options say what the terminal is.
type Options struct {
	Out    io.Writer
	Size   func() (columns, rows int)
	Reader bool // a screen reader reads what is written
	// Reflows says that the terminal breaks its lines anew when its width changes, as most do.
	Reflows bool
}

// Live is what stands below the finished lines, from top to bottom. Its strings may have styles.
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

	mu     sync.Mutex
	done   []string // finished, and not printed yet
	live   Live     // as it should be
	tail   []string // as it was painted last
	shown  []row    // the region on the screen; empty: the cursor stands where it will begin
	cursor position // in shown
	size   position // of the window when it was painted
	begun  bool     // something was written
	anew   bool     // what stands in the region is not known any more, only where it begins
	closed bool
	err    error

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

// Print prints finished lines, soon. A line has no newline in it.
func (s *Screen) Print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done = append(s.done, lines...); len(lines) > 0 {
		s.schedule()
	}
}

// Set changes the live region: at once where the input changed, else soon.
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

// Clear prints what is finished and takes the region away, for a program that writes by itself. The next Set or Print
// begins a new region where the cursor is then, which must be in the first column.
func (s *Screen) Clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.err
}

func (s *Screen) clear() {
	s.resize.end()
	live := s.live
	s.live = Live{Input: lineedit.View{Rows: []string{""}}}
	if s.begun {
		s.paint(true)
	}
	if s.o.Reader {
		s.spoken.newLine(s)
	}
	s.live, s.shown, s.cursor, s.tail, s.begun = live, nil, position{}, nil, false
	s.anew = false
}

// Restart begins a new region below everything, after other programs have written to the terminal.
func (s *Screen) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resize.end()
	s.shown, s.cursor, s.tail, s.begun = nil, position{}, nil, false
	s.size, s.anew = s.measure(), false
	s.paint(true)
}

// Close is Clear, and nothing is written any more.
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
	var b bytes.Buffer
	text := 0
	if s.anew || all && len(s.done) > 0 {
		s.anew = false
		text = s.printDone(&b, rows, cursor)
	} else {
		p := pen{b: &b, columns: s.size.column, at: s.cursor}
		p.update(s.shown, rows, !s.begun)
		p.move(cursor)
	}
	if all {
		s.tail = live.Tail
		s.frames.painted()
	}
	s.shown, s.cursor = rows, cursor
	s.write(b.Bytes(), text)
}

// A terminal that knows them shows what stands between these at once. Others pass them over.
const (
	frameBegin = "\x1b[?2026h"
	frameEnd   = "\x1b[?2026l"
)

// printDone prints the finished lines over the region, and the region below them.
func (s *Screen) printDone(b *bytes.Buffer, rows []row, cursor position) (text int) {
	b.WriteString(frameBegin)
	p := pen{b: b, columns: s.size.column, at: s.cursor}
	p.erase(len(s.shown) == 0 && !s.begun)
	for _, line := range s.done {
		b.WriteString(line)
		b.WriteString("\r\n")
		text += len(line) + 2
	}
	s.done = nil
	p.update(nil, rows, false)
	p.move(cursor)
	b.WriteString(frameEnd)
	return text
}
