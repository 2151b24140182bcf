package agents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/claude"
	"omniagent/internal/agent/codex"
	"omniagent/internal/agent/copilot"
	"omniagent/internal/agent/gemini"
	"omniagent/internal/agent/opencode"
	"omniagent/internal/event"
	"omniagent/internal/setting"
)

// TestInterruptedCommand: a command that still runs when its turn is interrupted ends too, or it would change files
// behind a turn that is over.
func TestInterruptedCommand(t *testing.T) {
	needAgents(t)
	t.Parallel()
	drivers := []agent.Driver{claude.New(), codex.New(), copilot.New(), gemini.New(), opencode.New()}
	for i, d := range drivers {
		t.Run(d.Name(), func(t *testing.T) {
			t.Parallel()
			spare(t, d.Name())
			b := newBench(t, d.Name())
			stays := fmt.Sprintf("tail -n %d -f /dev/null", 10*os.Getpid()+i) // no other process has these arguments
			c := b.talk(d, `[{"shell":"`+stays+`"},{"say":"done"}]`, func(s *agent.Spec, _ *agent.Services) {
				s.Terms.Mode = setting.Yolo
			})
			c.say("go")
			awaitRunning(t, stays, true)
			c.Interrupt(true)
			if end := c.until(event.Ended); end.End.OK || end.End.Reason != event.Cancelled {
				t.Errorf("interrupted: %s", story(c.heard))
			}
			awaitRunning(t, stays, false)
		})
	}
}

// awaitRunning waits until a process has these arguments, or none has.
func awaitRunning(t *testing.T, command string, want bool) {
	t.Helper()
	args := append(bytes.ReplaceAll([]byte(command), []byte(" "), []byte{0}), 0)
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		is := false
		for _, line := range lines {
			data, _ := os.ReadFile(line) // it may have ended
			is = is || bytes.Equal(data, args)
		}
		if is == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q runs: %v", command, is)
		}
	}
}
