package markdown

import (
	"slices"
	"strings"

	"omniagent/internal/term/cells"
)

// table is a table whose end has not come. After mostRows its columns are as wide as they are then.
type table struct {
	head   []string
	align  []byte // 'l', 'r', 'c'
	rows   [][]string
	source []string
	size   int
	fixed  []int // widths, once the first rows are printed; nil: they are not
}

const (
	mostRows    = 100
	mostTable   = 64 << 10 // bytes
	mostColumns = 64
	gap         = "  "
	narrowest   = 4 // what a column has at least
)

func (t *table) copy() *table {
	c := *t
	c.rows, c.source = slices.Clip(t.rows), slices.Clip(t.source)
	return &c
}

// row takes a row of the table.
func (r *Renderer) row(line string) {
	t := r.table
	t.rows = append(t.rows, divide(line))
	t.source = append(t.source, line)
	if t.size += len(line); len(t.rows) < mostRows && t.size < mostTable {
		return
	}
	r.out = append(r.out, t.lines(r.options)...)
	t.rows, t.source, t.size = nil, nil, 0
}

// divide returns the cells of a row. A pipe behind a backslash is text, and so is one within code.
func divide(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	var list []string
	var cell strings.Builder
	code := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !code && len(list) < mostColumns:
			list = append(list, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			if c == '`' {
				code = !code
			}
			cell.WriteByte(c)
		}
	}
	if last := strings.TrimSpace(cell.String()); last != "" || !strings.HasSuffix(line, "|") {
		list = append(list, last)
	}
	return list
}

// delimiters reports whether a line separates the head of a table with so many columns from its rows.
func delimiters(line string, columns int) bool {
	list := divide(line)
	if len(list) != columns || !strings.Contains(line, "-") {
		return false
	}
	return !slices.ContainsFunc(list, func(s string) bool {
		return !strings.Contains(s, "-") || strings.Trim(strings.Trim(s, ":"), "-") != ""
	})
}

func alignments(line string) []byte {
	var list []byte
	for _, s := range divide(line) {
		switch left, right := strings.HasPrefix(s, ":"), strings.HasSuffix(s, ":"); {
		case left && right:
			list = append(list, 'c')
		case right:
			list = append(list, 'r')
		default:
			list = append(list, 'l')
		}
	}
	return list
}

// lines renders what the table has, and its head if that was not printed yet.
func (t *table) lines(o Options) []string {
	columns := len(t.head)
	render := func(s string, base cells.Style) string {
		if !o.Styled {
			return s
		}
		return inline(s, base, false)
	}
	var body [][]string
	for _, row := range t.rows {
		var list []string
		for i := range max(columns, len(row)) {
			if i >= columns { // more cells than the head has: they are shown all the same
				list[columns-1] += " | " + render(row[i], cells.None)
				continue
			}
			cell := ""
			if i < len(row) {
				cell = render(row[i], cells.None)
			}
			list = append(list, cell)
		}
		body = append(body, list)
	}
	var head []string
	for _, cell := range t.head {
		head = append(head, render(cell, cells.Bold))
	}
	first := t.fixed == nil
	if first {
		t.fixed = widths(append([][]string{head}, body...), o.Width)
	}
	if len(t.fixed) == 0 { // too many columns for the window
		return t.source
	}
	var out []string
	if first {
		out = append(out, t.fill(head)...)
		var rule []string
		for _, w := range t.fixed {
			rule = append(rule, strings.Repeat("─", w))
		}
		line := strings.Join(rule, gap)
		if o.Styled {
			line = cells.Faint.Of(line)
		}
		out = append(out, line)
	}
	for _, row := range body {
		out = append(out, t.fill(row)...)
	}
	return out
}

// fill returns the lines of a row: as many as its highest cell needs.
func (t *table) fill(row []string) []string {
	var wrapped [][]string
	height := 1
	for i, cell := range row {
		list := cells.Wrap(cell, t.fixed[i])
		wrapped = append(wrapped, list)
		height = max(height, len(list))
	}
	var out []string
	for y := range height {
		var line strings.Builder
		for i, list := range wrapped {
			piece := ""
			if y < len(list) {
				piece = strings.TrimRight(list[y], " ")
			}
			space := max(t.fixed[i]-cells.Width(piece), 0)
			left := 0
			switch t.align[i] {
			case 'r':
				left = space
			case 'c':
				left = space / 2
			}
			line.WriteString(strings.Repeat(" ", left) + piece + strings.Repeat(" ", space-left))
			if i+1 < len(wrapped) {
				line.WriteString(gap)
			}
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}

// widths returns how wide the columns are, so that they fit together; none if they cannot.
func widths(rows [][]string, width int) []int {
	list := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			list[i] = max(list[i], cells.Width(cell), 1)
		}
	}
	room := width - 1 - len(gap)*(len(list)-1)
	if room < narrowest*len(list) {
		return []int{}
	}
	sum := 0
	for _, w := range list {
		sum += w
	}
	for sum > room { // the widest gives, down to the next
		widest, next := 0, 0
		for i, w := range list {
			if w > list[widest] {
				widest = i
			}
		}
		for i, w := range list {
			if i != widest && w < list[widest] {
				next = max(next, w)
			}
		}
		give := min(max(list[widest]-max(next, narrowest), 1), sum-room)
		list[widest] -= give
		sum -= give
	}
	return list
}
