package talk

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"omniagent/internal/cli/flags"
	"omniagent/internal/kit/fault"
)

// endless is a reader that repeats a text and counts the bytes read.
type endless struct {
	text string
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.read%int64(len(e.text)):])
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	e.read += int64(n)
	return n, nil
}

// TestEndlessInput checks that input without an end is refused as soon as the limit is reached: one line, many lines,
// blank lines, and what begins like a frame.
func TestEndlessInput(t *testing.T) {
	for _, text := range []string{"a", "line\n", "\n", " \t", `{"type":"user"`} {
		in := &endless{text: strings.Repeat(text, 64<<10)}
		_, _, err := firstLine(bufio.NewReaderSize(in, 64<<10))
		if err == nil || fault.Of(err).Code != fault.PromptTooLong {
			t.Errorf("%q: %v", text, err)
		}
		if in.read > flags.LongestMessage+128<<10 {
			t.Errorf("%q: %d bytes were read", text, in.read)
		}
	}
}

// TestInput checks that text is read up to the limit, and that nothing after a frame is read.
func TestInput(t *testing.T) {
	longest := strings.Repeat("a", flags.LongestMessage)
	for _, text := range []string{longest, "\n\nb\nc", "{ no frame }\nd", "", "e"} {
		line, rest, err := firstLine(bufio.NewReaderSize(strings.NewReader(text), 64<<10))
		if err != nil || line != nil || !bytes.Equal(rest, []byte(text)) {
			t.Errorf("%.10q: line %.10q, %d bytes, %v", text, line, len(rest), err)
		}
	}
	frame := `{"type":"user","content":"` + longest[:1<<20] + "\"}\n"
	in := bufio.NewReaderSize(strings.NewReader(" \n"+frame+"next"), 64<<10)
	line, _, err := firstLine(in)
	if rest, _ := io.ReadAll(in); err != nil || string(line) != frame || string(rest) != "next" {
		t.Errorf("line of %d bytes, then %q: %v", len(line), rest, err)
	}
}
