package cli

import (
	"bytes"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
)

// TestLongLines: of a line that is too long only the beginning is kept, wherever it is cut, and what follows it is
// read.
func TestLongLines(t *testing.T) {
	const most = 3 * quotedLine
	CheckMessage, long := strings.Repeat("a", most), strings.Repeat("b", most)+"c"
	stream := []byte("first\n" + CheckMessage + "\n" + long + "\nnext\n" + long + long + long)
	want := []string{
		"first", CheckMessage, "a line that cannot be read " + long[:quotedLine], "next",
		"a line that cannot be read " + long[:quotedLine],
	}
	for _, size := range []int{1, 7, 1000, quotedLine, most, most + 1, len(stream)} {
		d := JSONLines{most: most, Parse: func(line []byte) []event.Event {
			return []event.Event{{Kind: event.Ended, Text: string(line)}}
		}}
		var got []string
		tell := func(events []event.Event) {
			for _, e := range events {
				if e.Kind == event.Notice {
					e.Text += " " + string(e.Raw)
				}
				got = append(got, e.Text)
			}
		}
		for rest := stream; len(rest) > 0; {
			piece := bytes.Clone(rest[:min(size, len(rest))])
			rest = rest[len(piece):]
			tell(d.Feed(piece))
			clear(piece)
		}
		tell(d.End(agent.Exit{}))
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("pieces of %d: %d lines", size, len(got))
		}
	}
}
