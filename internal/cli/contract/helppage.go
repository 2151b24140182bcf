package contract

import (
	"cmp"
	"strings"

	"omniagent/internal/term/cells"
)

// pageWidth is the width of help that no terminal shows, and widest that of help on a wide terminal: longer lines are
// hard to read.
const (
	pageWidth = 80
	widest    = 100
)

// helpPage is a page of the help while it is written: headings, paragraphs and lists that fit the width.
type helpPage struct {
	strings.Builder
	width  int // 0: lines are not wrapped
	styled bool
}

// heading begins a part of the page.
func (h *helpPage) heading(title string) {
	if h.styled {
		title = cells.Bold.Of(title)
	}
	if h.Len() > 0 {
		h.WriteString("\n")
	}
	h.WriteString(title + "\n")
}

// text writes paragraphs, which empty lines separate. Lines of a paragraph are joined, except those that begin with
// a space: they stay as they are.
func (h *helpPage) text(s string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(s), "\n\n") {
		if h.Len() > 0 || i > 0 {
			h.WriteString("\n")
		}
		joined := ""
		for _, line := range strings.Split(paragraph, "\n") {
			if strings.HasPrefix(line, " ") {
				h.wrapped("", joined)
				joined = ""
				h.WriteString(line + "\n")
				continue
			}
			joined = strings.TrimSpace(joined + " " + line)
		}
		h.wrapped("", joined)
	}
}

// wrapped writes lead and a line, wrapped between words. Further rows are indented by the width of lead.
func (h *helpPage) wrapped(lead, s string) {
	if s == "" {
		return
	}
	indent := cells.Width(lead)
	rows := []string{s}
	if h.width > 0 {
		rows = cells.Wrap(s, max(h.width-indent, 20))
	}
	for i, row := range rows {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		h.WriteString(strings.TrimRight(lead+row, " ") + "\n")
	}
}

// list writes words and what they mean in two columns. If a word is too long for its column, the meaning is on the next
// row.
func (h *helpPage) list(rows [][2]string) {
	most := 0
	for _, row := range rows {
		if w := cells.Width(row[0]); w <= h.column() {
			most = max(most, w)
		}
	}
	most = cmp.Or(most, h.column())
	for _, row := range rows {
		lead := "  " + row[0] + strings.Repeat(" ", max(0, most-cells.Width(row[0]))) + "  "
		if cells.Width(row[0]) > most {
			h.WriteString("  " + row[0] + "\n")
			lead = strings.Repeat(" ", most+4)
		}
		if row[1] == "" {
			h.WriteString(strings.TrimRight(lead, " ") + "\n")
		}
		h.wrapped(lead, row[1])
	}
}

// column returns how wide the first column of a list may be.
func (h *helpPage) column() int {
	if h.width == 0 {
		return pageWidth
	}
	return h.width * 2 / 5
}

// params lists flags under a heading, if there are any.
func (h *helpPage) params(title string, params []Param) {
	if len(params) == 0 {
		return
	}
	h.heading(title)
	rows := [][2]string{}
	for _, p := range params {
		rows = append(rows, [2]string{p.form(), p.explain()})
	}
	h.list(rows)
}

func (h *helpPage) examples(examples []Example) {
	if len(examples) == 0 {
		return
	}
	h.heading("Examples:")
	for _, e := range examples {
		h.WriteString("  # " + e.Description + "\n  " + e.Command + "\n")
	}
}
