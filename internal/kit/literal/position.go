package literal

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

const byteOrderMark = "\uFEFF"

// locator converts offsets to places. It knows where lines begin and remembers its last place, so that a lookup in a
// large text is cheap in any order.
type locator struct {
	data  []byte
	lines []int // offset of the first byte of each line
	last  Pos
}

func newLocator(data []byte) *locator {
	l := &locator{data: data, lines: []int{0}, last: Pos{Line: 1, Col: 1}}
	for i, c := range data {
		if c == '\n' {
			l.lines = append(l.lines, i+1)
		}
	}
	return l
}

func (l *locator) pos(offset int) Pos {
	offset = min(offset, len(l.data))
	line, starts := slices.BinarySearch(l.lines, offset)
	if starts {
		line++
	}
	p := l.last
	if p.Line != line || offset < p.Offset {
		p = Pos{Line: line, Col: 1, Offset: l.lines[line-1]}
	}
	for p.Offset < offset {
		_, size := utf8.DecodeRune(l.data[p.Offset:])
		// editors do not show the mark, so it has no column
		if p.Offset > 0 || string(l.data[:size]) != byteOrderMark {
			p.Col++
		}
		p.Offset += size
	}
	p.Offset = offset
	l.last = p
	return p
}

// found names what is at the offset, for "expected …, found …".
func found(data []byte, offset int) string {
	if offset >= len(data) {
		return "end of input"
	}
	r, size := utf8.DecodeRune(data[offset:])
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("byte 0x%02X, which is not UTF-8", data[offset])
	case r == '\n' || r == '\r':
		return "end of line"
	case unicode.IsPrint(r):
		return "'" + string(r) + "'"
	}
	return fmt.Sprintf("%U", r)
}
