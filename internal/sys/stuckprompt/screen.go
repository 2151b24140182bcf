package stuckprompt

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// What Detect looks at, at most.
const (
	maxTail  = 16 << 10 // bytes of a stream
	maxLine  = 1 << 10  // bytes of a line that is a prompt
	maxLines = 40       // lines above it
	shown    = 24       // lines in the text of a Signal
)

// screen is the end of a stream as a person would see it: lines that are not empty, without sequences and frames.
type screen struct {
	lines []string
	open  bool // the last line could be a prompt: it is not payload, and has no end or need not have one
	whole bool // the last line has an end
	blank bool // a blank ends the last line
	menu  menu
}

// look draws the end of a stream. closed says that a last line with an end counts too.
func look(tail []byte, closed bool) screen {
	raw := tail
	s := screen{whole: ended(tail), blank: bytes.HasSuffix(tail, []byte(" "))}
	if closed {
		raw = bytes.TrimRight(raw, "\r\n\t ")
		tail = raw
	}
	if len(tail) > maxTail {
		raw = tail[len(tail)-maxTail:]
		if begin := bytes.IndexAny(raw, "\r\n"); begin >= 0 { // the beginning of the first line is out of sight
			raw = raw[begin:]
		} else {
			raw = nil
		}
	}
	all := strings.Split(string(raw), "\n")
	all = all[max(0, len(all)-maxLines):]
	for i, line := range all {
		line = visible(line)
		if i == len(all)-1 {
			s.open = strings.TrimSpace(line) != "" && len(line) <= maxLine && !shapes().payload.MatchString(line)
		}
		if line = unframed(line); line != "" {
			s.lines = append(s.lines, text.Cut(line, maxLine))
		}
	}
	s.open = s.open && len(s.lines) > 0
	if s.open {
		s.menu = readMenu(s.lines)
	}
	return s
}

func (s screen) last() string {
	if len(s.lines) == 0 {
		return ""
	}
	return s.lines[len(s.lines)-1]
}

// text returns the last screenful.
func (s screen) text() string {
	all := strings.Join(s.lines[max(0, len(s.lines)-shown):], "\n")
	if len(all) > maxText {
		all = strings.ToValidUTF8(all[len(all)-maxText:], "")
	}
	return all
}

// visible returns what is left of a line to look at: what was written over it counts, what was there before does not.
func visible(line string) string {
	parts := shapes().rewrite.Split(line, -1)
	for i := len(parts) - 1; i >= 0; i-- {
		clean, _ := text.Clean(parts[i])
		clean = strings.ReplaceAll(clean, "\t", "    ")
		if strings.TrimSpace(clean) != "" {
			return clean
		}
	}
	return ""
}

// unframed removes frames and rules at both ends of a line and keeps its columns.
func unframed(line string) string {
	frame := func(r rune) bool { return r == ' ' || r >= 0x2500 && r <= 0x259f }
	line = strings.TrimRightFunc(line, frame)
	rest := strings.TrimLeftFunc(line, frame)
	if rest == "" {
		return ""
	}
	return strings.Repeat(" ", utf8.RuneCountInString(line)-utf8.RuneCountInString(rest)) + rest
}

// shapes are the expressions by which a screen is read. They are compiled when the first program is looked at.
var shapes = sync.OnceValue(func() (s struct {
	rewrite  *regexp.Regexp // what moves to the beginning of a line
	payload  *regexp.Regexp // JSON, or the beginning of it: a line of a protocol or of a printed document
	brackets *regexp.Regexp // what a prompt says in brackets at its end, and whether a question mark follows
	item     *regexp.Regexp // of a menu: indentation, pointer, number, label
	hint     *regexp.Regexp // which keys move in a menu
	ask      *regexp.Regexp // a sentence that asks
	mark     *regexp.Regexp // the end of a line at which one types
	person   *regexp.Regexp // a question that only a person answers
	asks     *regexp.Regexp // a line that asks: it ends in a question mark, or begins as questions and requests do
},
) {
	s.rewrite = regexp.MustCompile(`\r|\x1b\[2?K|\x1b\[1?G`)
	s.payload = regexp.MustCompile(`^\s*(data: ?)?(\{|\[\s*[{"\[]|"[^"]*"\s*:)`)
	s.brackets = regexp.MustCompile(`(?:\(([^()]+)\)|\[((?:[^][]|\[\w+\])+)\])[ :>›]*(\?)?[ :>›]*$`)
	s.item = regexp.MustCompile(`^(\s*)(?:([❯›▸▶●>])\s+)?(?:(\d{1,2})[.)]\s+)?(\S.*)$`)
	s.hint = regexp.MustCompile(`(?i)arrow keys|\benter\b.*\b(select|confirm|continue)\b|\besc\b|[↑↓]`)
	s.ask = regexp.MustCompile(`^.*?\S[?？](?:\s|$)`)
	s.asks = regexp.MustCompile(`(?i)[?？؟]["')\]]*\s*$|^\W*(what|which|who|whom|whose|where|when|why|how|should|shall|do` +
		`|does|did|is|are|am|can|could|would|will|may|please (enter|type|choose|select|pick|specify|provide|confirm` +
		`|tell)|enter|type|choose|select|pick|specify|provide|tell me|let me know|confirm)\b`)
	s.person = regexp.MustCompile(`(?i)\b(you|your|I|we|me|my|us|our)\b|` +
		`^\W*(what|which|who|whom|whose|where|when|why|how|enter|type|choose|select|pick|specify|provide)\b`)
	s.mark = regexp.MustCompile(`[:?>]\s*$`)
	return s
})
