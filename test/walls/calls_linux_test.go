package walls

import (
	_ "embed" // the attacks
	"os"
	"os/exec"
	"strings"
	"testing"
)

//go:embed testdata/calls.py
var rareCalls string

// TestRareCalls: no system call that programs seldom make changes a protected name, or reaches the supervisor.
func TestRareCalls(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not there")
	}
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		g.write(t, g.work+"/calls.py", rareCalls)
		config, err := os.ReadFile(g.work + "/.git/config")
		must(t, err)
		out, err := g.command(where, "sandbox", "run", "--", "python3", "calls.py").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "tried\n") || !exists(g.work+"/ran") {
			t.Fatalf("%v: %s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if name, done := strings.CutPrefix(strings.TrimSpace(line), "succeeded: "); done {
				t.Error(name)
			}
		}
		if after, err := os.ReadFile(g.work + "/.git/config"); err != nil || string(after) != string(config) {
			t.Errorf("the configuration is %q, %v", after, err)
		}
		for _, name := range []string{".git/hooks/pre-commit", ".mcp.json", ".claude", ".git/config.lock"} {
			if exists(g.work + "/" + name) {
				t.Errorf("%s was made", name)
			}
		}
	}, namespaces(), landlock())
}
