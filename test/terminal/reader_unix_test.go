//go:build unix

package terminal

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestScreenReader: nothing moves the cursor and nothing is erased; what is typed and what is finished is appended.
func TestScreenReader(t *testing.T) {
	t.Parallel()
	w := open(t, nil, 80, 24, "-reader", "-rate", "2000")
	w.sees("> ")
	w.types("helo\x7flo\r")
	w.sees("The end.")
	w.types("/quit\r")
	if err := w.ends(); err != nil {
		t.Error(err)
	}
	written := w.written()
	rest := regexp.MustCompile(`\x1b\[(\?2004|\?1004)[hl]|\x1b\[m|\x1b\[\?25h`).ReplaceAllString(written, "")
	if strings.ContainsRune(rest, '\x1b') {
		t.Errorf("there is a control sequence in %q", rest)
	}
	if !strings.Contains(rest, "helo\r\n> hel") || !strings.Contains(rest, "> hello\r\n") {
		t.Errorf("%q", rest)
	}
}

// TestIdle: while nothing happens nothing is written, before, during and after a conversation.
func TestIdle(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	w := open(t, nil, 80, 24, "-rate", "5000")
	w.sees("say something")
	quiet := func(when string) {
		t.Helper()
		time.Sleep(300 * time.Millisecond)
		before := len(w.written())
		time.Sleep(1500 * time.Millisecond)
		if written := w.written(); len(written) != before {
			t.Errorf("%s: %q is written while nothing happens", when, written[before:])
		}
	}
	quiet("at the prompt")
	w.types("half a message")
	quiet("behind a key")
	w.types("\x15hello\r")
	w.sees("The end.")
	quiet("behind an answer")
}

// TestPaste: a paste of sixty lines is one message, and so is one of a megabyte.
func TestPaste(t *testing.T) {
	t.Parallel()
	w := open(t, nil, 80, 24, "-rate", "1")
	w.sees("say something")
	w.types("\x1b[200~" + strings.Repeat("a line of a paste\r", 60) + "\x1b[201~")
	w.sees("60 lines")
	if strings.Contains(w.written(), "answering") {
		t.Error("a paste was sent")
	}
	w.types("\x15\x1b[200~" + strings.Repeat("0123456789abcdef\r", 1<<16) + "\x1b[201~")
	w.sees("65536 lines")
	w.types("\x15\x04")
	if err := w.ends(); err != nil {
		t.Error(err)
	}
}
