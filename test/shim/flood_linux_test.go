package shim

import (
	"io"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestFlood: an agent that prints 300 MB costs little memory, whatever is made of its output.
func TestFlood(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	const (
		piece = `{"type":"stream_event","session_id":"s","event":{"type":"content_block_delta","index":0,` +
			`"delta":{"type":"text_delta","text":"a piece of a text that does not end"}}}`
		lines   = `/usr/bin/yes '` + piece + `' | /usr/bin/head -c 300000000`
		endless = `/usr/bin/yes endless | /usr/bin/tr -d '\n' | /usr/bin/head -c 300000000`
	)
	type flood struct {
		name, script string
		args         []string
		limited      bool // it is told that the limit was reached
	}
	all := []flood{
		{"text", lines, nil, false},
		{"report", lines, []string{"--report", "report.json"}, false},
		{"events", lines, []string{"--output", "events"}, true},
		{"endless report", endless, []string{"--report", "report.json"}, false},
		{"endless events", endless, []string{"--output", "events"}, false},
	}
	for _, f := range hermetic.InTurn(t, all, 2) {
		t.Run(f.name, func(t *testing.T) {
			w := newWorld(t)
			w.agent("claude", "/bin/cat >/dev/null\n"+f.script+"\n")
			cmd := w.command(append([]string{"--agent", "claude", "--approval", "yolo", "-p", "x"}, f.args...)...)
			cmd.Env = append(cmd.Env, "IS_SANDBOX=1")
			var stderr strings.Builder
			cmd.Stdout, cmd.Stderr = io.Discard, &stderr
			peak := hermetic.Weighed(t, cmd)
			_ = cmd.Run()
			if n := peak(); n > 64<<20 {
				t.Errorf("it took %d MiB", n>>20)
			}
			if told := strings.Contains(stderr.String(), "reached the limit of 128 MiB"); told != f.limited {
				t.Errorf("%v: %s", cmd.ProcessState, stderr.String())
			}
		})
	}
}
