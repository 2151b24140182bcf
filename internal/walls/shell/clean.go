package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// cleaned returns whole lines as a terminal would show them: without escape sequences and without what a carriage
// return or a backspace has overwritten. It replaces what is not text. open: the text before ended within the line that
// now continues, so that nothing of that can be overwritten.
func cleaned(chunk string, open bool) string {
	if !strings.ContainsAny(chunk, "\r\b") {
		clean, _ := text.Clean(chunk)
		return clean
	}
	var b strings.Builder
	for line := range strings.Lines(chunk) {
		body, whole := strings.CutSuffix(line, "\n")
		overwritten := false
		body, overwritten = lastState(body)
		if open && overwritten {
			b.WriteByte('\n')
		}
		open = false
		b.WriteString(body)
		if whole {
			b.WriteByte('\n')
		}
	}
	clean, _ := text.Clean(b.String())
	return clean
}

// lastState returns what remains of a line: the part after the last carriage return that text follows, with its
// backspaces applied.
func lastState(line string) (body string, overwritten bool) {
	body = strings.TrimRight(line, "\r")
	if at := strings.LastIndexByte(body, '\r'); at >= 0 {
		body, overwritten = body[at+1:], true
	}
	if !strings.Contains(body, "\b") {
		return body, overwritten
	}
	kept := make([]byte, 0, len(body))
	for i := range len(body) {
		if body[i] != '\b' {
			kept = append(kept, body[i])
			continue
		}
		_, size := utf8.DecodeLastRune(kept)
		kept = kept[:len(kept)-size]
	}
	return string(kept), overwritten
}

// maxSequence is how far back an escape sequence that is cut at the end of a piece is searched for.
const maxSequence = 256

// cleanCut returns how much of an unfinished line can be taken without cutting a character, an escape sequence, or a
// carriage return from the text that overwrites.
func cleanCut(line []byte) int {
	cut := len(line)
	for cut > 0 && line[cut-1] == '\r' {
		cut--
	}
	for back := 1; back <= min(utf8.UTFMax, cut); back++ {
		if c := line[cut-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(line[cut-back : cut]) {
				cut -= back
			}
			break
		}
	}
	for at, least := cut-1, max(0, cut-maxSequence); at >= least; at-- {
		if line[at] != 0x1b {
			continue
		}
		if !unfinished(line[at:cut]) {
			break
		}
		cut = at // perhaps the beginning of a terminator
	}
	return cut
}

// unfinished reports whether an escape sequence may continue.
func unfinished(s []byte) bool {
	if len(s) < 2 {
		return true
	}
	switch s[1] {
	case '[':
		return !slices.ContainsFunc(s[2:], func(c byte) bool { return c < 0x20 || c > 0x3f })
	case ']', 'P', 'X', '^', '_':
		return !slices.Contains(s[2:], 0x07) // a terminator would begin with another ESC, and this is the last one
	}
	return len(s) == 2 && s[1] >= 0x20 && s[1] <= 0x2f
}
