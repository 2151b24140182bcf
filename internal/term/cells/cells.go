// Package cells measures, cuts and breaks text as a terminal shows it: in cells, by grapheme clusters.
//
// A string may have styles: SGR sequences, ESC [ … m, which take no cells. Package cells promises that no cluster and
// no style is ever cut, that a cut string ends without a style, and that every string takes linear time. It does not
// make text fit to print: a control character has no width, so clean the text first, with package text.
package cells

import (
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

const (
	tab   = 8 // columns between the stops of a terminal
	reset = "\x1b[m"

	mostOpen = 64 // bytes of styles that go on in the next row; more are not ours, and each row would repeat them
)

// First returns the first cluster of s, or the style before it, the rest of s, and the width in cells. A style has the
// width 0.
func First(s string) (piece, rest string, width int) {
	if s == "" {
		return "", "", 0
	}
	if c := s[0]; c < utf8.RuneSelf && (len(s) == 1 || s[1] < utf8.RuneSelf) {
		switch {
		case c >= ' ' && c < 0x7f:
			return s[:1], s[1:], 1
		case c == 0x1b:
			if n := style(s); n > 0 {
				return s[:n], s[n:], 0
			}
		}
		if c != '\r' {
			return s[:1], s[1:], 0
		}
	}
	piece, rest, width, _ = uniseg.FirstGraphemeClusterInString(s, -1)
	return piece, rest, width
}

// style returns the length of the SGR sequence that s begins with, or 0.
func style(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == 'm':
			return i + 1
		case (c < '0' || c > '9') && c != ';' && c != ':':
			return 0
		}
	}
	return 0
}

// IsStyle reports whether a piece that First returned is a style.
func IsStyle(piece string) bool { return len(piece) > 2 && piece[0] == 0x1b }

// Width returns the number of cells that s takes on one line. A tab leads to the next stop.
func Width(s string) int {
	sum := 0
	for s != "" {
		piece, rest, width := First(s)
		if piece == "\t" {
			width = tab - sum%tab
		}
		sum, s = sum+width, rest
	}
	return sum
}

// Untabbed returns a line with spaces in place of its tabs, up to the next stop.
func Untabbed(line string) string {
	parts := strings.Split(line, "\t")
	var b strings.Builder
	used := 0
	for i, part := range parts {
		b.WriteString(part)
		if used += Width(part); i < len(parts)-1 {
			blanks := tab - used%tab
			b.WriteString(strings.Repeat(" ", blanks))
			used += blanks
		}
	}
	return b.String()
}

// Plain returns s without its styles.
func Plain(s string) string {
	if !strings.Contains(s, "\x1b[") {
		return s
	}
	var b strings.Builder
	for s != "" {
		piece, rest, _ := First(s)
		if !IsStyle(piece) {
			b.WriteString(piece)
		}
		s = rest
	}
	return b.String()
}

// Cut returns the beginning of s, at most that many cells wide, with … if anything was left out.
func Cut(s string, most int) string {
	if Width(s) <= most {
		return s
	}
	var b strings.Builder
	used, styled := 0, false
	for s != "" {
		piece, rest, width := First(s)
		if piece == "\t" {
			piece, width = " ", 1
		}
		if used+width > most-1 {
			break
		}
		styled = styled || IsStyle(piece)
		b.WriteString(piece)
		used, s = used+width, rest
	}
	if most > 0 {
		b.WriteString("…")
	}
	if styled {
		b.WriteString(reset)
	}
	return b.String()
}

// breaker collects rows. Styles go on in the next row, and no row ends with one.
type breaker struct {
	rows []string
	row  strings.Builder
	used int    // columns of the row
	open string // the styles
}

func (b *breaker) put(piece string, width int) {
	b.row.WriteString(piece)
	b.used += width
}

func (b *breaker) end() {
	if b.open != "" {
		b.row.WriteString(reset)
	}
	b.rows = append(b.rows, b.row.String())
	b.row.Reset()
	b.row.WriteString(b.open)
	b.used = 0
}

// Break breaks s into rows where a terminal of that width would, which is at any cluster. A style continues in the next
// row, and no row ends with one. Tabs become spaces. The result has at least one row.
func Break(s string, width int) []string {
	width = max(width, 2) // room for the widest cluster
	var b breaker
	for s != "" {
		piece, rest, w := First(s)
		switch {
		case IsStyle(piece):
			b.open = goOn(b.open, piece)
		case piece == "\t":
			w = min(tab-b.used%tab, width-b.used)
			piece = strings.Repeat(" ", w)
		case b.used+w > width:
			b.end()
		}
		b.put(piece, w)
		s = rest
	}
	b.end()
	return b.rows
}

// Wrap breaks s into rows between words, and within a word that is wider than a row. Tabs become spaces.
func Wrap(s string, width int) []string {
	var b breaker
	for s = strings.ReplaceAll(s, "\t", " "); s != ""; {
		word, rest, blank := strings.Cut(s, " ")
		s = rest
		w := Width(word)
		if b.used > 0 && b.used+w > width {
			b.end()
		}
		pieces := []string{word}
		if w > width {
			pieces = Break(word, width)
		}
		for i, piece := range pieces {
			if i > 0 {
				b.end()
			}
			b.put(piece, Width(piece))
		}
		for _, piece := range styles(word) {
			b.open = goOn(b.open, piece)
		}
		if blank && b.used < width {
			b.put(" ", 1)
		}
	}
	b.end()
	return b.rows
}

// Prose breaks a line that is wider than width between words and between wide characters, which have no blanks between
// them. Rows after the first begin with hang blanks. A word that is wider than a row gets a row of its own and is left
// whole, so that a terminal wraps it and copies it as one piece.
func Prose(s string, hang, width int) []string {
	if Width(s) <= width {
		return []string{s}
	}
	if hang > width/2 {
		hang = 0
	}
	p := prose{hang: hang, width: width}
	for s = Untabbed(s); s != ""; {
		piece, rest, w := First(s)
		s = rest
		if piece == " " {
			p.endWord()
			p.blanks++
			continue
		}
		if w > 1 {
			p.endWord()
		}
		p.word.WriteString(piece)
		p.wide += w
		if IsStyle(piece) {
			p.styles = append(p.styles, piece)
		}
		if w > 1 {
			p.endWord()
		}
	}
	p.endWord()
	p.end()
	return p.rows
}

// prose collects words.
type prose struct {
	breaker
	hang, width int
	filled      bool // the row has a word
	blanks      int  // since the last word
	word        strings.Builder
	wide        int
	styles      []string // in the word
}

func (p *prose) endWord() {
	if p.word.Len() == 0 {
		return
	}
	if p.filled && p.wide > 0 && p.used+p.blanks+p.wide > p.width {
		p.end()
		p.blanks, p.filled = p.hang, false
	}
	p.put(strings.Repeat(" ", p.blanks)+p.word.String(), p.blanks+p.wide)
	for _, piece := range p.styles {
		p.open = goOn(p.open, piece)
	}
	p.filled = p.filled || p.wide > 0
	p.blanks, p.wide, p.styles = 0, 0, p.styles[:0]
	p.word.Reset()
}

// Rows is Wrap for a line of our own: a command of ours in it is not broken if it fits into a row, and no row ends with
// a blank.
func Rows(s string, width int) []string {
	const joint = "\u00a0"
	if start := strings.Index(s, "omniagent "); start >= 0 {
		command := s[start:]
		if end := strings.IndexAny(command, ";,"); end >= 0 {
			command = command[:end]
		}
		if Width(command) < width {
			s = s[:start] + strings.ReplaceAll(command, " ", joint) + s[start+len(command):]
		}
	}
	rows := Wrap(s, width)
	for i, row := range rows {
		rows[i] = strings.TrimRight(strings.ReplaceAll(row, joint, " "), " ")
	}
	return rows
}

// goOn returns the styles that are active after one more.
func goOn(open, piece string) string {
	switch {
	case piece == reset, piece == "\x1b[0m":
		return ""
	case len(open)+len(piece) > mostOpen:
		return piece
	}
	return open + piece
}

// styles returns the styles in s.
func styles(s string) []string {
	var list []string
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			return list
		}
		piece, rest, _ := First(s[at:])
		if IsStyle(piece) {
			list = append(list, piece)
		}
		s = rest
	}
}

// Fill returns s padded with spaces to width, or cut to it.
func Fill(s string, width int) string {
	s = Cut(s, width)
	return s + strings.Repeat(" ", max(width-Width(s), 0))
}
