package lineedit

import (
	"fmt"
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/term/cells"
)

// View is how an editor looks in a window of some width.
type View struct {
	Rows        []string // each fits into the width, and has its own styles
	Row, Column int      // where the cursor stands, from 0
	Below       []string // candidates; they may be wider, and are to be cut
}

const (
	tabWidth  = 8
	mostBelow = 8 // candidates that are shown at once
)

// View returns how the editor looks now.
func (e *Editor) View(width int) View {
	e.late()
	width = max(width, 4)
	prompt := e.options.Prompt
	list, cursor := e.buffer, e.cursor
	if s := e.search; s != nil {
		prompt, list, cursor = s.view()
	}
	if cells.Width(prompt) > width-4 {
		prompt = cells.Cut(prompt, width-4)
	}
	p := painter{width: width, indent: cells.Width(prompt)}
	p.row.WriteString(prompt)
	p.used = p.indent
	for i, a := range list {
		if i == cursor {
			p.mark()
		}
		switch {
		case a.text == "\n" && a.shown == "":
			p.end()
			p.row.WriteString(strings.Repeat(" ", p.indent))
			p.used = p.indent
		case a.text == "\t":
			n := tabWidth - p.used%tabWidth
			for range n {
				p.put(" ", 1)
			}
		case a.shown != "":
			p.special(a.shown)
		default:
			p.put(a.text, cells.Width(a.text))
		}
	}
	if cursor >= len(list) {
		p.mark()
	}
	if len(list) == 0 && e.search == nil {
		p.row.WriteString(cells.Faint.Of(cells.Cut(e.options.Hint, width-p.used-1)))
	}
	p.end()
	return View{p.rows, p.cursorRow, p.cursorColumn, e.completion.view(width)}
}

// painter puts clusters into rows.
type painter struct {
	width, indent           int
	rows                    []string
	row                     strings.Builder
	used                    int
	cursorRow, cursorColumn int
}

func (p *painter) end() {
	p.rows = append(p.rows, p.row.String())
	p.row.Reset()
	p.used = 0
}

func (p *painter) put(s string, width int) {
	if p.used+width > p.width {
		p.end()
	}
	p.row.WriteString(s)
	p.used += width
}

// special draws a placeholder, such as that of a folded paste.
func (p *painter) special(s string) {
	for s != "" {
		piece, rest, width := cells.First(s)
		p.put(cells.Reverse.Of(piece), width)
		s = rest
	}
}

// mark records that the cursor is here. After the last column it is in the next row.
func (p *painter) mark() {
	if p.used >= p.width {
		p.end()
	}
	p.cursorRow, p.cursorColumn = len(p.rows), p.used
}

// folded returns how a long paste is shown.
func folded(s string, lines int) string {
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	what := fmt.Sprintf("%d lines", lines)
	if lines == 1 {
		what = fmt.Sprintf("%d bytes", len(s))
	}
	return "[pasted " + what + ": " + cells.Cut(text.Name(text.OneLine(first, 80)), 24) + "]"
}
