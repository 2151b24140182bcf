package agents

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

// TestInterruptedCommand: a command that still runs when its turn is interrupted ends too, or it would change files
// behind a turn that is over.
func TestInterruptedCommand(t *testing.T) {
	needAgents(t)
	t.Parallel()
	drivers := []agent.Driver{claude.New(), codex.New(), copilot.New(), gemini.New(), opencode.New()}
	for _, d := range drivers {
		t.Run(d.Name(), func(t *testing.T) {
			t.Parallel()
			spare(t, d.Name())
			b := newBench(t, d.Name())
			began, ended := watched(t, filepath.Join(b.work, "held"))
			c := b.talk(d, `[{"shell":"tail -f /dev/null >held"},{"say":"done"}]`,
				func(s *agent.Spec, _ *agent.Services) { s.Terms.Mode = setting.Yolo })
			c.say("go")
			await(t, began, "the command to begin")
			c.Interrupt(true)
			if end := c.until(event.Ended); end.End.OK || end.End.Reason != event.Cancelled {
				t.Errorf("interrupted: %s", story(c.heard))
			}
			await(t, ended, "the command to end")
		})
	}
}

// watched makes a pipe with a name, and tells when somebody has opened it for writing, and when the last one has let
// go of it.
func watched(t *testing.T, path string) (began, ended chan struct{}) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	began, ended = make(chan struct{}), make(chan struct{})
	go func() {
		pipe, err := os.Open(path) // waits for the other side
		if err != nil {
			return
		}
		close(began)
		_, _ = io.Copy(io.Discard, pipe) // to the end of the last one that has it
		_ = pipe.Close()
		close(ended)
	}()
	return began, ended
}

func await(t *testing.T, happens <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
	}
}
