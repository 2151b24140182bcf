// Package markdown renders Markdown for a terminal while it streams.
//
// A Renderer takes pieces and returns finished lines, which never change later, and what is still open as a tail. It
// promises that the lines are the same however the text was cut; that a line break of the source stays one; that a line
// of code is never broken, and prose between words only; that what is copied from the screen has no frame or gutter;
// that every letter of the source is shown, in its order; that control characters are shown and never obeyed; that its
// memory is bounded and its time linear. Without styles the source is printed as it is, except that tables are aligned.
//
// It is a renderer for reading, not for HTML: a span ends in the line in which it began, and references, HTML and
// entities stay as they are written.
package markdown

import (
	"slices"
	"strings"
	"unicode/utf8"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
)

// Options say how the text is shown.
type Options struct {
	Width  int  // of the window; 0: 80
	Wraps  bool // prose that is wider is broken; tables always are
	Styled bool // colours and other styles; without them the markers stay
}

// Renderer renders one text. New returns one.
type Renderer struct {
	options Options
	line    []byte // the last line, whose end has not come
	cut     bool   // that line was printed already, and its end has not come
	out     []string

	fence fence
	held  string // a line that may be the head of a table
	holds bool
	table *table
}

const (
	mostLine  = 64 << 10
	mostShown = 4 << 10 // of a line in the tail
)

// New returns a renderer at the beginning of a text.
func New(o Options) *Renderer {
	if o.Width <= 0 {
		o.Width = 80
	}
	return &Renderer{options: o}
}

// SetWidth changes the width of the window. It counts for what is not finished.
func (r *Renderer) SetWidth(columns int) { r.options.Width = max(columns, 20) }

// Write takes a piece of the text and returns the lines that are finished with it.
func (r *Renderer) Write(piece string) []string {
	if r.cut && piece != "" {
		r.cut = false
		piece = strings.TrimPrefix(piece, "\n")
	}
	for piece != "" {
		room := mostLine - len(r.line)
		end := strings.IndexByte(piece, '\n')
		switch {
		case end >= 0 && end <= room:
			r.line = append(r.line, piece[:end]...)
			piece = piece[end+1:]
			r.end()
		case len(piece) <= room:
			r.line = append(r.line, piece...)
			piece = ""
		default:
			r.line = append(r.line, piece[:room]...)
			piece = piece[room:]
			r.endLong()
		}
	}
	return r.take()
}

// endLong ends a line that is too long, at a character.
func (r *Renderer) endLong() {
	rest := 0
	for n := 1; n < utf8.UTFMax; n++ {
		if end := r.line[len(r.line)-n:]; utf8.RuneStart(end[0]) {
			if !utf8.FullRune(end) {
				rest = n
			}
			break
		}
	}
	kept := string(r.line[len(r.line)-rest:])
	r.line = r.line[:len(r.line)-rest]
	r.end()
	r.line = append(r.line, kept...)
}

// end handles a complete line.
func (r *Renderer) end() {
	line := text.Visible(strings.TrimSuffix(string(r.line), "\r"))
	r.line = r.line[:0]
	r.handle(line)
}

// take returns the lines that are finished.
func (r *Renderer) take() []string {
	out := r.out
	r.out = nil
	return out
}

// Flush returns the unfinished line, so that something can be printed below it. The text goes on after that, in the
// same block of code.
func (r *Renderer) Flush() []string {
	if len(r.line) > 0 {
		r.end()
		r.cut = true
	}
	r.release()
	return r.take()
}

// Close ends the text and returns its last lines.
func (r *Renderer) Close() []string {
	if len(r.line) > 0 {
		r.end()
	}
	r.release()
	r.fence = fence{}
	return r.take()
}

// Tail returns how what is not finished would look if the text ended here. Of a long line it is the end, so that it can
// be called for every piece.
func (r *Renderer) Tail() []string {
	if len(r.line) == 0 && !r.holds && r.table == nil {
		return nil
	}
	now := *r
	now.line, now.out = r.line[max(len(r.line)-mostShown, 0):], nil
	for len(now.line) > 0 && !utf8.RuneStart(now.line[0]) {
		now.line = now.line[1:]
	}
	now.line = slices.Clone(now.line)
	if r.table != nil {
		now.table = r.table.copy()
	}
	if n := len(now.line); n > 0 && !utf8.Valid(now.line[max(n-utf8.UTFMax, 0):]) { // the beginning of a character
		now.line = []byte(strings.ToValidUTF8(string(now.line), ""))
	}
	if len(now.line) > 0 {
		line := text.Visible(string(now.line))
		if now.fence.open || now.table != nil || now.holds {
			now.handle(line)
		} else {
			now.prose(line, true)
		}
	}
	now.release()
	return now.out
}

func (r *Renderer) print(line string) { r.out = append(r.out, line) }

// handle decides what a line is.
func (r *Renderer) handle(line string) {
	if r.fence.open {
		r.code(line)
		return
	}
	if r.table != nil {
		if strings.Contains(line, "|") {
			r.row(line)
			return
		}
		r.release()
	}
	if r.holds {
		if head := r.held; delimiters(line, len(divide(head))) {
			r.holds = false
			r.table = &table{head: divide(head), align: alignments(line), source: []string{head, line}}
			return
		}
		r.release()
	}
	if f, ok := fenceOf(line); ok {
		r.fence = f
		r.print(r.faint(line))
		return
	}
	if strings.Contains(line, "|") {
		r.held, r.holds = line, true
		return
	}
	r.prose(line, false)
}

// release prints what was held back.
func (r *Renderer) release() {
	if r.holds {
		r.holds = false
		r.prose(r.held, false)
	}
	if t := r.table; t != nil {
		r.table = nil
		r.out = append(r.out, t.lines(r.options)...)
	}
}

func (r *Renderer) faint(s string) string {
	if !r.options.Styled {
		return s
	}
	return cells.Faint.Of(s)
}

// prose prints a line that is not code and not of a table. What follows in the same item or quotation stands below its
// text.
func (r *Renderer) prose(line string, open bool) {
	shown := r.block(line, open)
	if !r.options.Wraps {
		r.print(shown)
		return
	}
	text := strings.TrimLeft(line, " \t>")
	text = text[listMarker(text):]
	hang := cells.Width(line[:len(line)-len(strings.TrimLeft(text, " "))])
	r.out = append(r.out, cells.Prose(shown, hang, r.options.Width-1)...)
}

// block renders a line that is not code and not of a table. open says that its end has not come.
func (r *Renderer) block(line string, open bool) string {
	if !r.options.Styled {
		return line
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	rest := line[len(indent):]
	switch marker, words := heading(rest); {
	case isRule(rest):
		return indent + cells.Faint.Of(rest)
	case marker == 1:
		return indent + inline(words, cells.Bold.With(cells.Underline), open)
	case marker > 1:
		return indent + inline(words, cells.Bold, open)
	}
	prefix := ""
	base := cells.None
	for strings.HasPrefix(rest, ">") {
		n := 1
		for n < len(rest) && rest[n] == ' ' {
			n++
		}
		prefix += rest[:n]
		rest = rest[n:]
		base = cells.Italic
	}
	marker := listMarker(rest)
	return indent + cells.Faint.Of(prefix) + cells.Cyan.Of(rest[:marker]) + inline(rest[marker:], base, open)
}

// heading returns the level of a heading and its words; 0: the line is another block.
func heading(s string) (level int, words string) {
	for level < len(s) && s[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level < len(s) && s[level] != ' ' {
		return 0, s
	}
	words = strings.TrimSpace(s[level:])
	if trimmed := strings.TrimRight(words, "#"); trimmed == "" || strings.HasSuffix(trimmed, " ") {
		words = strings.TrimSpace(trimmed)
	}
	return level, words
}

// isRule reports whether a line is a rule: three or more of one of - * _.
func isRule(s string) bool {
	s = strings.ReplaceAll(strings.TrimRight(s, " "), " ", "")
	return len(s) >= 3 && strings.Contains("-*_", s[:1]) && strings.Trim(s, s[:1]) == ""
}

// listMarker returns the length of the marker that an item of a list begins with.
func listMarker(s string) int {
	n := 0
	for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	switch {
	case n > 0 && n < len(s) && (s[n] == '.' || s[n] == ')'), n == 0 && s != "" && strings.Contains("-*+", s[:1]):
		if n++; n < len(s) && s[n] == ' ' {
			return n
		}
	}
	return 0
}
