package tool

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	linesAround = 3
	linesOfSpot = 8   // lines to show of one change
	spotsShown  = 3   // changes to show
	shownLine   = 200 // characters of a line in a message
)

// lineOf returns the number of the line that contains text[at].
func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

// linesOf lists the lines of the hits.
func linesOf(text []byte, hits []spot) string {
	const most = 10
	var numbers []string
	line, at := 1, 0
	for i, h := range hits {
		if i == most {
			numbers = append(numbers, "…")
			break
		}
		line += bytes.Count(text[at:h.start], []byte("\n"))
		at = h.start
		numbers = append(numbers, fmt.Sprint(line))
	}
	return "lines " + strings.Join(numbers, ", ")
}

// around shows the lines at each of the first spots, numbered.
func around(text []byte, spots occurrences) string {
	var b strings.Builder
	if spots.count > 1 {
		fmt.Fprintf(&b, " in %d places", spots.count)
	}
	if len(text) == 0 {
		return b.String() + "; it is empty now"
	}
	b.WriteString(":")
	last := 0 // last line that was shown
	for _, s := range spots.first[:min(len(spots.first), spotsShown)] {
		first := lineOf(text, s.start)
		if first <= last {
			continue
		}
		at, from := bytes.LastIndexByte(text[:s.start], '\n')+1, first
		for ; from > max(first-linesAround, last+1, 1); from-- {
			at = bytes.LastIndexByte(text[:at-1], '\n') + 1
		}
		if last > 0 && from > last+1 {
			b.WriteString("\n   ...")
		}
		changed := min(bytes.Count(bytes.TrimSuffix(text[s.start:s.end], []byte("\n")), []byte("\n")), linesOfSpot)
		last = showLines(&b, text[at:], from, first+changed+linesAround)
	}
	return b.String()
}

// showLines writes the lines of text from number from, which is its first, to number to, and returns the last one.
func showLines(b *strings.Builder, text []byte, from, to int) int {
	line := from
	for ; line <= to && len(text) > 0; line++ {
		var current []byte
		current, text = nextLine(text)
		fmt.Fprintf(b, "\n%6d\t%s", line, shorten(current))
	}
	return line - 1
}

// nextLine cuts off the first line, without its ending.
func nextLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), rest
}

func shorten(line []byte) string {
	s := strings.ToValidUTF8(string(line[:min(len(line), shownLine*4+4)]), "\uFFFD")
	if at := runes(s, shownLine); at < len(s) {
		return s[:at] + "…"
	}
	return s
}
