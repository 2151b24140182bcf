package lines

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// told is what a Cutter of lines of at most 5 bytes makes of pieces, each of which is overwritten before the next.
func told(pieces ...[]byte) string {
	c := Cutter{Most: 5}
	var out strings.Builder
	for _, piece := range pieces {
		data := bytes.Clone(piece)
		var lines []Line
		for rest := data; ; {
			line, behind, ok := c.Cut(rest)
			if !ok {
				break
			}
			lines, rest = append(lines, line), behind
		}
		for _, l := range lines { // they hold as long as nothing more is fed
			fmt.Fprintf(&out, "%q %v %v|", l.Text, l.Long, l.Torn)
		}
		clear(data)
	}
	if l, ok := c.Last(); ok {
		fmt.Fprintf(&out, "%q %v %v|", l.Text, l.Long, l.Torn)
	}
	if _, ok := c.Last(); ok {
		out.WriteString("again")
	}
	return out.String()
}

func TestLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                   "",
		"\n\n":               `"" false false|"" false false|`,
		"one\r\ntwo":         `"one\r" false false|"two" false true|`,
		"12345\n123456\nx\n": `"12345" false false|"12345" true false|"x" false false|`,
		"123456":             `"12345" true false|`,
		"1234567\n\n12345":   `"12345" true false|"" false false|"12345" false true|`,
	} {
		if got := told([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func FuzzCutAnywhere(f *testing.F) {
	f.Add([]byte("one\n123456789\n\n12345\nx"), uint16(3), uint16(9))
	f.Add([]byte("\n1234567890123\n1"), uint16(1), uint16(6))
	f.Fuzz(func(t *testing.T, data []byte, first, second uint16) {
		n := uint16(min(len(data)+1, 1<<15))
		a, b := min(first%n, second%n), max(first%n, second%n)
		whole := told(data)
		if got := told(data[:a], data[a:b], data[b:]); got != whole {
			t.Errorf("cut at %d and %d: %s, want %s", a, b, got, whole)
		}
		var read strings.Builder
		in := NewReader(iotest.OneByteReader(bytes.NewReader(data)), 5)
		for in.Next() {
			fmt.Fprintf(&read, "%q %v %v|", in.Text, in.Long, in.Torn)
		}
		if in.Err() != nil || read.String() != whole {
			t.Errorf("%v, read %s, want %s", in.Err(), &read, whole)
		}
	})
}

func TestLineWithoutEndCostsNoMemory(t *testing.T) {
	t.Parallel()
	c, block, many := Cutter{Most: 1 << 20}, bytes.Repeat([]byte("x"), 64<<10), 0
	for range 200 {
		if _, _, ok := c.Cut(block); ok {
			many++
		}
		if held := cap(c.part) + cap(c.spare); held > 4<<20 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if line, _, ok := c.Cut([]byte("\nnext\n")); many != 1 || !ok || string(line.Text) != "next" {
		t.Errorf("told %d times, then %q", many, line.Text)
	}
}

func TestFailureOfTheSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	in := NewReader(io.MultiReader(strings.NewReader("one\ntwo"), iotest.ErrReader(broken)), 10)
	var read []Line
	for in.Next() {
		read = append(read, Line{bytes.Clone(in.Text), in.Long, in.Torn})
	}
	if len(read) != 2 || string(read[1].Text) != "two" || !read[1].Torn || !errors.Is(in.Err(), broken) {
		t.Errorf("%+v, %v", read, in.Err())
	}
}
