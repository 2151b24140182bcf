package lineedit

import (
	"unicode"
	"unicode/utf8"

	"omniagent/internal/term/cells"
)

// isWord reports whether a cluster belongs to a word.
func isWord(a atom) bool {
	r, _ := utf8.DecodeRuneInString(a.text)
	return a.shown != "" || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// notSpace reports whether a cluster belongs to a word as a shell counts.
func notSpace(a atom) bool {
	r, _ := utf8.DecodeRuneInString(a.text)
	return !unicode.IsSpace(r)
}

// wordLeft returns where the word before the cursor begins.
func (e *Editor) wordLeft(in func(atom) bool) int {
	at := e.cursor
	for at > 0 && !in(e.buffer[at-1]) {
		at--
	}
	for at > 0 && in(e.buffer[at-1]) {
		at--
	}
	return at
}

// wordRight returns where the word behind the cursor ends.
func (e *Editor) wordRight() int {
	at := e.cursor
	for at < len(e.buffer) && !isWord(e.buffer[at]) {
		at++
	}
	for at < len(e.buffer) && isWord(e.buffer[at]) {
		at++
	}
	return at
}

func (e *Editor) lineStart(at int) int {
	for at > 0 && e.buffer[at-1].text != "\n" {
		at--
	}
	return at
}

func (e *Editor) lineEnd(at int) int {
	for at < len(e.buffer) && e.buffer[at].text != "\n" {
		at++
	}
	return at
}

// vertical moves the cursor by lines, and through the history where there is no further line.
func (e *Editor) vertical(by, wanted int) {
	start := e.lineStart(e.cursor)
	if by < 0 && start == 0 || by > 0 && e.lineEnd(e.cursor) == len(e.buffer) {
		e.fromHistory(by)
		return
	}
	if wanted < 0 {
		wanted = 0
		for _, a := range e.buffer[start:e.cursor] {
			wanted += a.width()
		}
	}
	if by < 0 {
		start = e.lineStart(start - 1)
	} else {
		start = e.lineEnd(start) + 1
	}
	used, end := 0, e.lineEnd(start)
	for e.cursor = start; e.cursor < end && used < wanted; e.cursor++ {
		used += e.buffer[e.cursor].width()
	}
	e.wanted = wanted
}

// display returns an atom as it is shown.
func (a atom) display() string {
	if a.shown != "" {
		return a.shown
	}
	return a.text
}

func (a atom) width() int { return cells.Width(a.display()) }
