package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestRace lets the real agents do one task, each in a fork with a loopback of its own, while their model is on that of
// this machine.
func TestRace(t *testing.T) {
	needAgents(t)
	b := newBench(t, "claude")
	model := scripted(t, `[{"write":{"path":"new.txt","content":"x\n"}},{"say":"I wrote it."}]`)
	env := b.environ()
	agents := []string{"claude", "codex", "gemini", "copilot", "opencode"}
	for _, agent := range agents {
		one := *b
		one.agent = agent
		one.allowed()
		more, err := hermetic.Wire(agent, b.home, b.work, model.URL())
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, more...)
	}
	cmd := exec.Command(program, "run", "--race", strings.Join(agents, ","), "--check", "grep -q x new.txt", "--yolo",
		"-p", "the task", "--output", "json")
	cmd.Dir, cmd.Env, cmd.Stderr = b.work, env, os.Stderr
	out, err := cmd.Output()
	var r struct {
		Data struct {
			Winner string
			Runs   []struct {
				ID     string `json:"run_id"`
				Agent  string
				Status string
				Fork   string
				Passed bool
				Files  *int
				Added  int
			}
		}
	}
	if json.Unmarshal(out, &r) != nil || err != nil || r.Data.Winner == "" || len(r.Data.Runs) != len(agents) {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, row := range r.Data.Runs {
		if row.Agent != agents[i] || !row.Passed || row.Added != 1 || row.Fork == "" {
			t.Errorf("%+v", row)
		}
	}
	if _, err := os.Stat(filepath.Join(b.work, "new.txt")); err == nil {
		t.Error("a contestant worked in the workspace")
	}
	apply := exec.Command(program, "runs", "apply", r.Data.Winner, "--output", "json")
	apply.Dir, apply.Env = b.work, env
	if out, err := apply.Output(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if text, _ := os.ReadFile(filepath.Join(b.work, "new.txt")); string(text) != "x\n" {
		t.Errorf("%q", text)
	}
}
