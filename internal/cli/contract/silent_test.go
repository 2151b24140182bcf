package contract

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

// TestSilentInput: a command that waits for a standard input which is open and silent says so, and how to end it. With
// --quiet it does not.
func TestSilentInput(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"exec"}, {"drink"}, {"ids", "-"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			cmd := w.command(args...)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			said, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(said).ReadString('\n')
			if err != nil || !strings.Contains(line, "open and silent; </dev/null ends the wait") {
				t.Errorf("%v: %q", err, line)
			}
			_ = in.Close()
			_, _ = io.Copy(io.Discard, said)
			_ = cmd.Wait()
		})
	}
}

// TestABatchHasNoClock: only what a person gives limits the lines of a batch together, and it needs no confirmation.
func TestABatchHasNoClock(t *testing.T) {
	t.Parallel()
	c := Call{Command: &Command{Dispatches: true, Danger: Destructive}, Config: emptyConfig()}
	if c.limit() != 0 || !c.confirmed() {
		t.Errorf("the limit is %s", c.limit())
	}
	c.values = map[string][]string{"timeout": {"9s"}}
	if c.limit() != 9*time.Second {
		t.Errorf("the limit is %s", c.limit())
	}
	for _, p := range sharedFor(&Command{Class: Envelope, Dispatches: true, Danger: Destructive, DryRun: true}) {
		if p.Name == "confirm-destructive" || p.Name == "idempotency-key" {
			t.Errorf("a batch has --%s", p.Name)
		}
	}
}
