//go:build unix

package shim

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"omniagent/internal/kit/fault"
)

// TestWordsAreWholeOnATerminal: warnings and hints are broken between words, and not within a command that fits.
func TestWordsAreWholeOnATerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 30}); err != nil {
		t.Fatal(err)
	}
	said := make(chan string)
	go func() {
		data, _ := io.ReadAll(master) // ends with an error when the other side is closed
		said <- strings.ReplaceAll(string(data), "\r\n", "\n")
	}()
	c := shimCall{shim: &Shim{Name: "omniagent"}, host: Host{Stderr: slave}}
	c.warn("this agent runs all commands unasked")
	c.shim.explain(c.host, fault.New(fault.ArgError, "it is wrong").Hint("look at omniagent agents show claude"))
	_ = slave.Close()
	const want = "omniagent: warning: this agent\nruns all commands unasked\nomniagent: it is wrong\n" +
		"hint: look at\nomniagent agents show claude\n"
	if got := <-said; got != want {
		t.Errorf("%q", got)
	}
}
