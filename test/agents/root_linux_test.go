package agents

import (
	"os"
	"strings"
	"testing"
)

// TestEverythingAsRoot: Claude Code refuses to let everything run as root. A person who asks for that learns what to
// do, and it happens once they did it; behind our own walls nothing has to be done.
func TestEverythingAsRoot(t *testing.T) {
	needAgents(t)
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("Claude Code refuses this mode to root only: run the tests as root")
	}
	const script = `[{"shell":"echo yes > made"},{"say":"I am done."}]`
	for name, c := range map[string]struct {
		env, flags []string
		reason     string
	}{
		"behind walls": {nil, nil, "done"},
		"declared":     {[]string{"IS_SANDBOX=1"}, []string{"--sandbox", "off"}, "done"},
		"refused":      {nil, []string{"--sandbox", "off"}, "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "claude")
			b.env = append([]string{"IS_SANDBOX="}, c.env...)
			r := b.hands(script, append([]string{"--yolo"}, c.flags...)...)
			if r.Data.Reason != c.reason || b.took("made") != (c.reason == "done") {
				t.Errorf("%s", r)
			}
			if c.reason != "done" && (!strings.Contains(r.stderr, "superuser") ||
				!strings.Contains(r.stderr, "IS_SANDBOX=1")) {
				t.Errorf("what to do is not said: %s", r)
			}
		})
	}
}
