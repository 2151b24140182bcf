package agents

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// command runs the built program in the agent's environment, and returns what it printed.
func (b *bench) command(url string, args ...string) string {
	b.t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = b.work, b.wired(url)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatalf("%v: %v\n%s\n%s", args, err, out, log.String())
	}
	return string(out)
}

// TestBegunElsewhere: a conversation that was held without us is listed, found, and resumed by its id.
func TestBegunElsewhere(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, agent := range []string{"claude", "codex", "gemini", "copilot", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			m := scripted(t, `[{"say":"The needle is here: ${input}"}]`)
			b.command(m.URL(), "--agent", agent, "-p", "First prompt of the haystack")
			var list struct {
				Data struct {
					Sessions []struct {
						ID, Title, Keeper, Agent string
						Found                    int
					}
				}
			}
			sessions := func(args ...string) {
				t.Helper()
				list.Data.Sessions = nil
				out := b.command(m.URL(), append([]string{"session"}, args...)...)
				if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Data.Sessions) != 1 {
					t.Fatalf("%v: %v\n%s", args, err, out)
				}
			}
			sessions("list", "--all")
			one := list.Data.Sessions[0]
			if one.Keeper != agent || one.Title != "First prompt of the haystack" {
				t.Errorf("listed: %+v", one)
			}
			sessions("search", "--all", "the needle is here")
			if got := list.Data.Sessions[0]; got.ID != one.ID || got.Found != 1 {
				t.Errorf("found: %+v", got)
			}
			out := b.command(m.URL(), "start", "--agent", agent, "--resume", one.ID, "-p", "Second prompt",
				"--output-format", "text")
			if !strings.Contains(out, "The needle is here: Second prompt") {
				t.Errorf("resumed: %s", out)
			}
			sessions("list", "--all") // it is ours now, and told once
			if got := list.Data.Sessions[0]; got.Keeper != "omniagent" || got.Agent != agent {
				t.Errorf("listed: %+v", got)
			}
		})
	}
}
