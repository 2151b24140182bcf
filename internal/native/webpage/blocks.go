package webpage

import (
	"slices"
	"strconv"
	"strings"
)

func (w *writer) push(b block) {
	if len(w.blocks) < maxDepth {
		w.blocks = append(w.blocks, b)
	}
}

// pop closes the innermost block of that name, and everything inside it.
func (w *writer) pop(name string) {
	for i := len(w.blocks) - 1; i >= 0; i-- {
		if w.blocks[i].name == name {
			w.blocks = w.blocks[:i]
			return
		}
	}
}

func (w *writer) inList() bool {
	return slices.ContainsFunc(w.blocks, func(b block) bool { return b.name != "blockquote" })
}

func (w *writer) startList(t token) {
	if w.inList() {
		w.breakLines(1)
	} else {
		w.breakLines(2)
	}
	number, err := strconv.Atoi(t.attributes["start"])
	if err != nil || number < 0 || number > 1_000_000 {
		number = 1
	}
	w.push(block{name: t.name, number: number})
}

// popItem closes the open item of the innermost list.
func (w *writer) popItem() {
	for i := len(w.blocks) - 1; i >= 0; i-- {
		switch w.blocks[i].name {
		case "li":
			w.blocks = w.blocks[:i]
			return
		case "ul", "ol", "menu":
			return
		}
	}
}

func (w *writer) startItem() {
	w.popItem()
	w.breakLines(1)
	mark := "- "
	for i := len(w.blocks) - 1; i >= 0; i-- {
		if b := &w.blocks[i]; b.name == "ol" {
			mark = strconv.Itoa(b.number) + ". "
			b.number++
		}
		if w.blocks[i].name != "blockquote" {
			break
		}
	}
	w.push(block{name: "li", first: mark, rest: strings.Repeat(" ", len(mark))})
}

func (w *writer) startRow() {
	w.endRow()
	if len(w.rows) == 0 {
		return
	}
	w.breakLines(1)
	w.rows[len(w.rows)-1] = row{heading: true}
}

func (w *writer) startCell(heading bool) {
	if len(w.rows) == 0 {
		w.space = true
		return
	}
	r := &w.rows[len(w.rows)-1]
	switch {
	case r.broken: // more than a line of a table
		w.breakLines(1)
		r.pending = 0
	case r.cells > 0:
		if r.wrote { // the cell before ended with a block
			w.breaks = 0
		}
		r.pending++
	}
	r.cells++
	r.heading = r.heading && heading
	r.empty = true
	w.space = false
}

// endRow ends a table row. A row of headings gets a line below it.
func (w *writer) endRow() {
	if len(w.rows) == 0 {
		return
	}
	r := &w.rows[len(w.rows)-1]
	cells, heading := r.cells, r.heading
	*r = row{}
	if cells == 0 {
		return
	}
	w.breakLines(1)
	if heading && cells > 1 && cells < 100 {
		w.word(strings.TrimSuffix(strings.Repeat("--- | ", cells), " | "))
		w.breakLines(1)
	}
}
