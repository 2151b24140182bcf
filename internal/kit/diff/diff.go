// Package diff compares two texts line by line, and writes what is different as git does.
//
// It promises that the difference is the smallest one, unless the texts were made to be slow: those are compared
// coarsely, and still rightly.
package diff

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
)

const around = 3 // unchanged lines before and after each change

// Split splits a text after each line break.
func Split(text []byte) [][]byte {
	if len(text) == 0 {
		return nil
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Quote writes a name as git does: in quotes if it has bytes that a line cannot show.
func Quote(name string) string {
	var b strings.Builder
	plain := true
	b.WriteByte('"')
	for i := range len(name) {
		c := name[i]
		short := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c)
		switch {
		case short >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr"\`[short])
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
			continue
		}
		plain = false
	}
	if plain {
		return name
	}
	b.WriteByte('"')
	return b.String()
}

// Count returns how many lines are in only one of two texts.
func Count(was, is []byte) (removed, added int) {
	out, in := Lines(Split(was), Split(is))
	count := func(marks []bool) (n int) {
		for _, marked := range marks {
			if marked {
				n++
			}
		}
		return n
	}
	return count(out), count(in)
}

// Names returns the two lines before the hunks. As git does, it ends a name that has a blank with a tab: for other
// readers the name would end at the blank.
func Names(from, to string) string {
	tabbed := func(name string) string {
		if strings.Contains(name, " ") {
			name += "\t"
		}
		return name
	}
	return "--- " + tabbed(from) + "\n+++ " + tabbed(to) + "\n"
}

// Write writes what differs between two texts as the hunks of a unified diff.
func Write(w io.Writer, was, is []byte) error {
	out := bufio.NewWriter(w)
	writeHunks(out, Split(was), Split(is))
	return out.Flush()
}

func writeHunks(out *bufio.Writer, before, after [][]byte) {
	removed, added := Lines(before, after)
	for i, j := 0, 0; ; {
		for i < len(before) && j < len(after) && !removed[i] && !added[j] {
			i, j = i+1, j+1
		}
		if i == len(before) && j == len(after) {
			return
		}
		lead := min(around, i, j)
		h := hunk{fromBefore: i - lead, fromAfter: j - lead}
		for _, line := range before[i-lead : i] {
			h.line(' ', line)
		}
		for same := 0; (i < len(before) || j < len(after)) && same <= 2*around; {
			switch {
			case i < len(before) && removed[i]:
				h.line('-', before[i])
				i, same = i+1, 0
			case j < len(after) && added[j]:
				h.line('+', after[j])
				j, same = j+1, 0
			default:
				h.line(' ', before[i])
				i, j, same = i+1, j+1, same+1
			}
		}
		h.end(out)
	}
}

// hunk is a changed part with the lines around it.
type hunk struct {
	fromBefore, fromAfter int
	signs                 []byte
	lines                 [][]byte
}

func (h *hunk) line(sign byte, line []byte) {
	h.signs, h.lines = append(h.signs, sign), append(h.lines, line)
}

// end writes the hunk, without the unchanged lines at its end that are too many.
func (h *hunk) end(out *bufio.Writer) {
	last := bytes.LastIndexAny(h.signs, "+-")
	n := min(len(h.signs), last+1+around)
	signs := h.signs[:n]
	same := bytes.Count(signs, []byte{' '})
	out.WriteString("@@ -")
	writeRange(out, h.fromBefore, same+bytes.Count(signs, []byte{'-'}))
	out.WriteString(" +")
	writeRange(out, h.fromAfter, same+bytes.Count(signs, []byte{'+'}))
	out.WriteString(" @@\n")
	for i, line := range h.lines[:n] {
		out.WriteByte(signs[i])
		out.Write(line)
		if !bytes.HasSuffix(line, []byte("\n")) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// writeRange writes the first line and the number of lines. Of no lines it is the line before.
func writeRange(out *bufio.Writer, from, n int) {
	if n > 0 {
		from++
	}
	if fmt.Fprintf(out, "%d", from); n != 1 {
		fmt.Fprintf(out, ",%d", n)
	}
}
