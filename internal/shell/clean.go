package shell

import (
	"strings"
	"unicode/utf8"

	"omniagent/internal/text"
)

// settled is whole lines as they would be read on paper: what a carriage return or a backspace has overwritten is gone,
// and so are escape sequences. What is no text is replaced. open: the text before ended within the line that now goes
// on, so that nothing of it can be taken back.
func settled(chunk string, open bool) string {
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

// lastState is what stays of a line: what follows the last carriage return that anything follows, with its backspaces
// done.
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

// maxSequence is how far an escape sequence that is cut by the end of a piece is looked for.
const maxSequence = 256

// cleanCut is how much of an unfinished line can be taken without cutting a character, an escape sequence or a carriage
// return from what it does.
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
		cut = at // the beginning of the end of another sequence, perhaps
	}
	return cut
}

// unfinished says whether more of an escape sequence may follow.
func unfinished(s []byte) bool {
	if len(s) < 2 {
		return true
	}
	switch s[1] {
	case '[':
		for _, c := range s[2:] {
			if c < 0x20 || c > 0x3f {
				return false
			}
		}
		return true
	case ']', 'P', 'X', '^', '_':
		for _, c := range s[2:] {
			if c == 0x07 {
				return false
			}
		}
		return true // its end would be another ESC, and this is the last one
	}
	return len(s) == 2 && s[1] >= 0x20 && s[1] <= 0x2f
}
