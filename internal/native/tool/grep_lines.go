package tool

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	lineShown  = 500 // characters of a line
	lineBefore = 100 // characters of a long line before the match
)

// grepMode is the kind of answer.
type grepMode string

const (
	grepContent grepMode = "content"
	grepFiles   grepMode = "files_with_matches"
	grepCount   grepMode = "count"
)

// grepShow controls the answer.
type grepShow struct {
	mode          grepMode
	numbers       bool
	before, after int
	offset, limit int // lines of the answer to skip, then to return
}

// enough reports whether one file has more lines than the answer can hold, whatever precedes it.
func (o *grepShow) enough(lines, bytes int) bool {
	return lines > o.offset+o.limit || bytes > resultLimit
}

// grepLines holds the results of one file.
type grepLines struct {
	show   *grepShow
	path   string
	count  int      // lines that match
	lines  []string // as shown
	size   int      // bytes of those lines, except lines that are certainly skipped
	cut    bool     // there are more lines
	binary bool     // it has a zero byte; later matches are not shown
	hit    bool     // a binary file has a match
	number int      // number of lines before counted
	// Places in the window:
	counted int // lines are counted up to this position
	shown   int // lines up to this position are shown, or out of context
	last    int // number of the last shown line
	left    int // lines still to be shown after a match
	earlier []earlierLine
}

// earlierLine is a line of an earlier window that may have to be shown before a match.
type earlierLine struct {
	number int
	text   string
}

// match handles a matching line of the window. It reports whether to continue.
func (l *grepLines) match(text []byte, begin, end, at int) bool {
	if l.binary {
		l.hit = true
		return false
	}
	l.count++
	if l.show.mode != grepContent {
		return l.show.mode == grepCount
	}
	l.number += bytes.Count(text[l.counted:begin], []byte("\n"))
	l.counted = begin
	l.following(text, begin)
	l.preceding(text, begin)
	l.add(l.number+1, ':', clipLine(text[begin:end], at))
	l.shown, l.left = min(end+1, len(text)), l.show.after
	return !l.cut
}

// following shows the lines after an earlier match, up to stop.
func (l *grepLines) following(text []byte, stop int) {
	for ; l.left > 0 && l.shown < stop && !l.cut; l.left-- {
		_, end := lineAround(text, l.shown, l.shown)
		l.add(l.last+1, '-', clipLine(text[l.shown:end], 0))
		l.shown = min(end+1, len(text))
	}
}

// preceding shows the lines before a match that begins at begin.
func (l *grepLines) preceding(text []byte, begin int) {
	starts := lastLines(text[l.shown:begin], l.show.before)
	if missing := l.show.before - len(starts); missing > 0 && l.shown == 0 {
		for _, h := range l.earlier[max(0, len(l.earlier)-missing):] {
			if h.number > l.last {
				l.add(h.number, '-', h.text)
			}
		}
	}
	for i, start := range starts {
		_, end := lineAround(text, l.shown+start, l.shown+start)
		l.add(l.number+1-len(starts)+i, '-', clipLine(text[l.shown+start:end], 0))
	}
}

// lastLines returns where the last n lines of text begin.
func lastLines(text []byte, n int) []int {
	var starts []int
	for end := len(text); end > 0 && len(starts) < n; {
		end = bytes.LastIndexByte(text[:end-1], '\n') + 1
		starts = append(starts, end)
	}
	slices.Reverse(starts)
	return starts
}

// next is called when the window moves on past text.
func (l *grepLines) next(text []byte) {
	if l.show.mode != grepContent {
		return
	}
	l.following(text, len(text))
	l.number += bytes.Count(text[l.counted:], []byte("\n"))
	if l.show.before > 0 {
		starts := lastLines(text[l.shown:], l.show.before)
		l.earlier = l.earlier[min(len(l.earlier), max(0, len(l.earlier)+len(starts)-l.show.before)):]
		for i, start := range starts {
			_, end := lineAround(text, l.shown+start, l.shown+start)
			l.earlier = append(l.earlier,
				earlierLine{l.number + 1 - len(starts) + i, clipLine(text[l.shown+start:end], 0)})
		}
	}
	l.counted, l.shown = 0, 0
}

// finish is called with the last window.
func (l *grepLines) finish(text []byte) {
	if l.show.mode == grepContent {
		l.following(text, len(text))
	}
}

// add adds one line to the answer.
func (l *grepLines) add(number int, mark byte, text string) {
	if l.cut {
		return
	}
	if l.last > 0 && number > l.last+1 && l.show.before+l.show.after > 0 {
		l.put("--")
	}
	l.last = number
	line := make([]byte, 0, len(l.path)+len(text)+12)
	line = append(append(line, l.path...), mark)
	if l.show.numbers {
		line = append(strconv.AppendInt(line, int64(number), 10), mark)
	}
	l.put(string(append(line, text...)))
}

func (l *grepLines) put(line string) {
	if l.lines = append(l.lines, line); len(l.lines) > l.show.offset {
		l.size += len(line) + 1
	}
	l.cut = l.show.enough(len(l.lines), l.size)
}

// clipLine returns a line for display. Of a long line, it returns the part where the match begins.
func clipLine(line []byte, at int) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) <= lineShown {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	from := 0
	if before := line[:min(at,
		len(line))]; utf8.RuneCount(before[max(0, len(before)-4*lineShown):]) > lineShown-lineBefore {
		from = len(before)
		for range lineBefore {
			_, n := utf8.DecodeLastRune(before[:from])
			from -= n
		}
	}
	to := from
	for n := 0; n < lineShown && to < len(line); n++ {
		_, size := utf8.DecodeRune(line[to:])
		to += size
	}
	shown := strings.ToValidUTF8(string(line[from:to]), "\uFFFD")
	if from > 0 {
		shown = "… " + shown
	}
	if from > 0 || to < len(line) {
		shown += " … (a line of " + strconv.Itoa(len(line)) + " bytes)"
	}
	return shown
}
