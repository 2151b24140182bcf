package screen

import (
	"slices"

	"omniagent/internal/term/cells"
)

const (
	// The end of the text that still grows: when a window becomes a third as wide, the region becomes three times as
	// high, and what does not fit then stays in the scrollback.
	mostTail  = 8   // rows
	tailCells = 400 // and so many cells, but three rows
	mostBelow = 10
)

// layout returns the rows of the region for a window, and where the cursor stands in them.
func layout(live Live, size position) (rows []row, cursor position) {
	room := size.row - 1
	columns := size.column - 1
	input, at := live.Input.Rows, live.Input.Row
	if most := max(room*2/3, 1); len(input) > most { // the part around the cursor
		from := min(max(at-most/2, 0), len(input)-most)
		input, at = input[from:from+most], at-from
	}
	room -= max(len(input), 1)
	below := slices.Concat(live.Input.Below, live.Below)
	below = below[:min(len(below), mostBelow, max(room/2, 0))]
	room -= len(below)
	above := live.Above[:min(len(live.Above), max(room*2/3, 0))]
	room -= len(above)
	add := func(lines []string) {
		for _, line := range lines {
			rows = append(rows, cells.Parse(cells.Cut(line, columns)))
		}
	}
	rows = tailRows(live.Tail, size.column, min(mostTail, max(tailCells/size.column, 3), max(size.row/3, 3), room))
	add(above)
	cursor = position{len(rows) + at, min(live.Input.Column, columns)}
	add(input)
	if len(input) == 0 {
		rows = append(rows, nil)
	}
	add(below)
	return rows, cursor
}

// tailRows returns the last rows of a text. It breaks lines where the terminal will when they are finished, so that
// nothing jumps then.
func tailRows(lines []string, columns, most int) []row {
	var rows []row
	for i := len(lines) - 1; i >= 0 && len(rows) < most; i-- {
		broken := cells.Break(lines[i], columns)
		for j := len(broken) - 1; j >= 0 && len(rows) < most; j-- {
			r := cells.Parse(broken[j])
			if width(r) >= columns && slices.ContainsFunc(r, func(c cells.Cell) bool { return !cells.Sure(c.Text) }) {
				r = r[:len(r)-1] // a terminal that counts otherwise would break the row
			}
			rows = append(rows, r)
		}
	}
	slices.Reverse(rows)
	return rows
}
