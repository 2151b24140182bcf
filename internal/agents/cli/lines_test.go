package cli_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
)

// echo tells every line as it came.
func echo(line []byte) []event.Event {
	kind := event.Notice
	if bytes.HasPrefix(line, []byte("end")) {
		kind = event.Ended
	}
	return []event.Event{{Kind: kind, Text: string(line)}}
}

// decoded feeds the pieces, each from a buffer that is overwritten afterwards.
func decoded(pieces ...[]byte) string {
	d := cli.JSONLines{Parse: echo}
	var out strings.Builder
	tell := func(events []event.Event) {
		for _, e := range events {
			fmt.Fprintf(&out, "%s %q %q %v\n", e.Kind, e.Text, e.Raw, e.Synthetic)
		}
	}
	for _, p := range pieces {
		p = bytes.Clone(p)
		tell(d.Feed(p))
		for i := range p {
			p[i] = '!'
		}
	}
	tell(d.End(agent.Exit{}))
	if again := d.End(agent.Exit{}); len(again) != 0 {
		fmt.Fprintf(&out, "ended again: %v\n", again)
	}
	return out.String()
}

// TestCutAnywhere: in two at every byte, in three at every pair, and byte by byte.
func TestCutAnywhere(t *testing.T) {
	for _, stream := range []string{
		"{\"a\":1}\n{\"b\":\"é€😀\"}\r\n\n \t\nend\nrest",
		"\n\n", "", "x", "\xff\xfe\n\xc3\nend", "a\x00b\n\x00\n", "end\nend\n",
	} {
		data := []byte(stream)
		want := decoded(data)
		var single [][]byte
		for i := range data {
			single = append(single, data[i:i+1])
			for j := i; j <= len(data); j++ {
				if got := decoded(data[:i], data[i:j], data[j:]); got != want {
					t.Fatalf("%q cut at %d and %d:\n%s\nwant\n%s", stream, i, j, got, want)
				}
			}
		}
		if got := decoded(single...); got != want {
			t.Errorf("%q byte by byte:\n%s\nwant\n%s", stream, got, want)
		}
	}
}

func TestLines(t *testing.T) {
	tests := []struct{ stream, want string }{
		{"one\r\n\n  two \nend\n", `notice "one" "one" false|notice "two" "two" false|end "end" "end" false`},
		{"one", `notice "one" "one" false|end "" "" true`},
		{"end", `end "end" "end" false`},
		{"", `end "" "" true`},
		{"\xff\xc3", `notice "\xff\xc3" "\xff\xc3" false|end "" "" true`},
	}
	for _, tt := range tests {
		if got := strings.ReplaceAll(strings.TrimSpace(decoded([]byte(tt.stream))), "\n", "|"); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.stream, got, tt.want)
		}
	}
}

// TestRawOfTheParser is left as it is.
func TestRawOfTheParser(t *testing.T) {
	d := cli.JSONLines{Parse: func([]byte) []event.Event {
		return []event.Event{{Kind: event.Notice, Raw: []byte("own")}, {Kind: event.Text}}
	}}
	events := d.Feed([]byte("line\n"))
	if len(events) != 2 || string(events[0].Raw) != "own" || string(events[1].Raw) != "line" {
		t.Errorf("%+v", events)
	}
	if e := cli.Unreadable([]byte("x")); len(e) != 1 || e[0].Kind != event.Notice || string(e[0].Raw) != "x" {
		t.Errorf("%+v", e)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n\r\nend\n\xff"), 3)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		at := 0
		if len(data) > 0 {
			at = (cut%len(data) + len(data)) % len(data)
		}
		if whole, parts := decoded(data), decoded(data[:at], data[at:]); whole != parts {
			t.Errorf("%s\nwant\n%s", parts, whole)
		}
	})
}

// TestLineWithoutEnd: what has no end does not fill the memory.
func TestLineWithoutEnd(t *testing.T) {
	block := bytes.Repeat([]byte("x"), 1<<20)
	d := cli.JSONLines{Parse: echo}
	for n := range 20 {
		if told := len(d.Feed(block)) > 0; told != (n == 8) {
			t.Errorf("after %d MiB: %v", n+1, told)
		}
	}
	if events := d.Feed([]byte("x\nnext\n")); len(events) != 1 || events[0].Text != "next" {
		t.Errorf("behind it: %v", events)
	}
}
