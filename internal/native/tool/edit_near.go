package tool

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
)

// searchTime limits the search for the nearest place, which then uses the best result so far.
const searchTime = 300 * time.Millisecond

// enoughVotes is how many votes a similar place needs. Each equal line votes with its length, so that a single equal
// brace is not enough.
const enoughVotes = 4

// notFound returns an error that shows the text that old most likely meant, and how it differs.
func notFound(ctx context.Context, text []byte, ends endings, old, written string) error {
	f := fault.New(fault.ArgError, "old_string was not found in %s", written)
	if len(text) == 0 {
		return f.Hint("The file is empty; give an empty old_string to fill it.")
	}
	if stripped := withoutNumbers(old); stripped != old && has(text, ends, stripped) {
		return f.Hint(
			"It begins its lines with the line numbers that Read shows; leave them and the tab after them out.")
	}
	if plain := unescape(old); plain != old && has(text, ends, plain) {
		return f.Hint(
			"It is escaped once too often: the file has the characters themselves, such as line feeds, quotes and " +
				"<, where " +
				"old_string has a backslash or an entity.")
	}
	n := newNear(ctx, old)
	n.search(text)
	if n.at < 0 {
		return f.Hint("Nothing in the file is similar. Read the file again.")
	}
	var b strings.Builder
	showLines(&b, text[n.at:], n.line, n.line+min(len(n.lines), linesOfSpot)-1)
	return f.Hint("The nearest place is line %d:%s\n%s", n.line, b.String(), n.difference(text[n.at:]))
}

// withoutNumbers removes the line numbers of Read, if all lines have one.
func withoutNumbers(old string) string {
	number := regexp.MustCompile(`^ *\d+(\t|→)`)
	lines := strings.Split(old, "\n")
	for i, l := range lines {
		if l == "" && i > 0 && i == len(lines)-1 {
			continue
		}
		m := number.FindString(l)
		if m == "" {
			return old
		}
		lines[i] = l[len(m):]
	}
	return strings.Join(lines, "\n")
}

func unescape(old string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, "'", `\\`, `\`,
		"&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(old)
}

// near finds the lines of a text that are most similar to the wanted ones. It compares lines without blanks and with
// unified quotes; if none is equal, it compares pairs of letters.
type near struct {
	ctx    context.Context
	until  time.Time
	seed   maphash.Seed
	lines  []string
	hashes map[uint64][]int // indexes in lines, by the hash of a line
	pairs  [1 << 16]bool    // pairs of letters in the longest line
	count  int              // number of pairs
	anchor int              // index of that line

	at, line int // the start of the nearest place; at is -1 if there is none
}

func newNear(ctx context.Context, old string) *near {
	const most = 200 // lines of old to compare
	n := &near{
		ctx: ctx, until: time.Now().Add(searchTime), seed: maphash.MakeSeed(), hashes: map[uint64][]int{}, at: -1,
	}
	n.lines = strings.Split(strings.ReplaceAll(strings.Trim(old, "\n"), "\r\n", "\n"), "\n")
	n.lines = n.lines[:min(len(n.lines), most)]
	var buffer []byte
	for i, l := range n.lines {
		if buffer = fold(buffer[:0], []byte(l)); len(buffer) > 0 {
			sum := maphash.Bytes(n.seed, buffer)
			n.hashes[sum] = append(n.hashes[sum], i)
		}
		if len(l) > len(n.lines[n.anchor]) {
			n.anchor = i
		}
	}
	buffer = fold(buffer[:0], []byte(n.lines[n.anchor]))
	for i := 1; i < len(buffer); i++ {
		if pair := &n.pairs[pairAt(buffer, i)]; !*pair {
			*pair = true
			n.count++
		}
	}
	return n
}

// search finds the place with most equal lines, or else the line with most pairs in common.
func (n *near) search(text []byte) {
	type place struct{ votes, at int }
	votes := map[int]*place{}
	best, bestLine := place{}, 0
	likest, likestAt, likestLine := 0.35, -1, 0 // lower scores are not similar
	starts := make([]int, len(n.lines))         // starts of the last lines, in a ring
	var buffer []byte
	line := 0
	for at, rest := 0, text; len(rest) > 0; line++ {
		if line%1024 == 0 && (time.Now().After(n.until) || n.ctx.Err() != nil) {
			break
		}
		current, after := nextLine(rest)
		starts[line%len(starts)] = at
		buffer = fold(buffer[:0], current)
		if len(buffer) > 0 {
			for _, i := range n.hashes[maphash.Bytes(n.seed, buffer)] {
				first := line - i
				if first < 0 {
					continue
				}
				p := votes[first]
				if p == nil {
					p = &place{0, starts[first%len(starts)]}
					votes[first] = p
				}
				if p.votes += len(n.lines[i]); p.votes > best.votes {
					best, bestLine = *p, first
				}
			}
			if best.votes < enoughVotes {
				if like := n.likeness(buffer); like > likest && line >= n.anchor {
					first := line - n.anchor
					likest, likestAt, likestLine = like, starts[first%len(starts)], first
				}
			}
			delete(votes, line-len(n.lines)) // no later line can vote for it
		}
		at += len(rest) - len(after)
		rest = after
	}
	switch {
	case best.votes > 0 && (best.votes >= enoughVotes || likestAt < 0):
		n.at, n.line = best.at, bestLine+1
	case likestAt >= 0:
		n.at, n.line = likestAt, likestLine+1
	}
}

// likeness returns how many of the wanted line's pairs a line has, from 0 to 1; a much longer line scores less.
func (n *near) likeness(line []byte) float64 {
	if n.count == 0 || len(line) < 2 || len(line) > 5*n.count+5 {
		return 0
	}
	common := 0
	for i := 1; i < len(line); i++ {
		if n.pairs[pairAt(line, i)] {
			common++
		}
	}
	return float64(min(common, n.count)) / float64(max(len(line)-1, n.count))
}

func pairAt(line []byte, i int) int { return int(line[i-1])<<8 | int(line[i]) }

// fold appends line to b in lower case, without blanks, with one kind of quotes and dashes.
func fold(b, line []byte) []byte {
	for i := 0; i < len(line); {
		c := line[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == ' ' || c == '\t' || c == '\r':
			case 'A' <= c && c <= 'Z':
				b = append(b, c|0x20)
			case c == '"' || c == '`':
				b = append(b, '\'')
			default:
				b = append(b, c)
			}
			continue
		}
		r, size := utf8.DecodeRune(line[i:])
		i += size
		if like := asciiLike(r); like != 0 {
			if like != ' ' {
				b = append(b, like)
			}
			continue
		}
		b = utf8.AppendRune(b, unicode.ToLower(r))
	}
	return b
}

// asciiLike returns the ASCII character that looks like r, or 0.
func asciiLike(r rune) byte {
	switch r {
	case '‘', '’', '‚', '“', '”', '„', '«', '»', '′', '″':
		return '\''
	case '‐', '‑', '‒', '–', '—', '−':
		return '-'
	case '\u00a0', '\u2007', '\u202f', '\u3000', '\u200b', '\ufeff':
		return ' '
	}
	return 0
}

// difference describes the first line that differs.
func (n *near) difference(text []byte) string {
	for i, want := range n.lines {
		if len(text) == 0 {
			return fmt.Sprintf("The file ends where old_string continues with %q.", shorten([]byte(want)))
		}
		var have []byte
		have, text = nextLine(text)
		have = have[:min(len(have), len(want)+1024)]
		if !bytes.Equal(have, []byte(want)) {
			return fmt.Sprintf("Line %d differs: %s.", n.line+i, differs(string(have), want))
		}
	}
	return "The lines are equal; what differs is the end of the last one or the blank lines around them."
}

// differs describes how two lines differ.
func differs(have, want string) string {
	blanks := func(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }
	trailing := func(s string) string { return s[len(strings.TrimRight(s, " \t\r")):] }
	folded := func(s string) string { return string(fold(nil, []byte(s))) }
	switch {
	case strings.TrimRight(have, " \t\r") == strings.TrimRight(want, " \t\r"):
		return fmt.Sprintf("the file ends it with %s, old_string with %s", spelled(trailing(have)),
			spelled(trailing(want)))
	case strings.TrimSpace(have) == strings.TrimSpace(want):
		return fmt.Sprintf("the file indents it with %s, old_string with %s", spelled(blanks(have)),
			spelled(blanks(want)))
	case strings.EqualFold(have, want):
		return "capital and small letters"
	case strings.Join(strings.Fields(have), " ") == strings.Join(strings.Fields(want), " "):
		return "the blanks inside the line: " + firstDifference(have, want)
	case folded(have) == folded(want):
		return "quotes, dashes or blanks that look alike: " + firstDifference(have, want)
	}
	return firstDifference(have, want)
}

// spelled names blanks.
func spelled(s string) string {
	if s == "" {
		return "nothing"
	}
	var parts []string
	for len(s) > 0 {
		run := len(s) - len(strings.TrimLeft(s, s[:1]))
		name := map[byte]string{' ': "space", '\t': "tab", '\r': "carriage return"}[s[0]]
		if run > 1 {
			name += "s"
		}
		parts = append(parts, fmt.Sprintf("%d %s", run, name))
		s = s[run:]
	}
	return strings.Join(parts, " and ")
}

// firstDifference shows both lines from where they differ.
func firstDifference(have, want string) string {
	a, b := []rune(have), []rune(want)
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	const most = 40
	part := func(r []rune) string {
		if i >= len(r) {
			return "the end of the line"
		}
		return fmt.Sprintf("%+q", string(r[i:min(i+most, len(r))]))
	}
	return fmt.Sprintf("at column %d the file has %s, old_string has %s", i+1, part(a), part(b))
}
