package agents

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

// spoken are the agents that speak the Agent Client Protocol by themselves.
func spoken() []string { return []string{"gemini", "copilot", "opencode"} }

// TestVerdictsOverACP: what omniagent run says of each outcome with --transport acp.
func TestVerdictsOverACP(t *testing.T) {
	needAgents(t)
	for _, name := range spoken() {
		for _, o := range outcomes() {
			switch {
			case o.name == "question":
				continue // they are not given a tool to ask with: see TestAnsweredOverACP
			case o.name == "denied" && name == "copilot":
				o.args = []string{"--approval", "plan"}
			case o.name == "denied" && name == "opencode": // it is given no tool
				o.status, o.reason, o.code = "succeeded", "done_unchanged", 0
			case o.name == "denied": // it has no mode deny
				o.status, o.reason, o.code = "failed", "unsupported", 2
			}
			t.Run(name+"/"+o.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, name)
				if o.kill {
					stop := b.killer()
					defer stop()
				}
				r := b.hands(o.script, append([]string{"--transport", "acp"}, o.args...)...)
				if r.Data.Status != o.status || o.reason != "" && r.Data.Reason != o.reason || o.code >= 0 &&
					r.code != o.code {
					t.Errorf("%s", r)
				}
			})
		}
	}
}

// TestAnsweredOverACP: what needs approval becomes a question, without a flag that says how the agent is driven. The
// answer decides whether it runs, and the conversation goes on.
func TestAnsweredOverACP(t *testing.T) {
	needAgents(t)
	const script = `[{"write":{"path":"new.txt","content":"x\n"}},{"say":"I am done."}]`
	for _, name := range spoken() {
		for _, way := range []string{"approve", "reject"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, name)
				asked := b.hands(script)
				if asked.code != 4 || asked.Data.Reason != "question" || b.took("new.txt") {
					t.Fatalf("nothing was asked: %s", asked)
				}
				cmd := exec.Command(program, "answer", asked.Data.ID, "--"+way, "--output", "json")
				cmd.Dir, cmd.Env = b.work, b.wired(scripted(t, script).URL())
				out, _ := cmd.Output()
				var r ran
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				want := map[string]string{"approve": "done", "reject": "denied"}[way]
				if r.Data.Reason != want || b.took("new.txt") != (way == "approve") {
					t.Errorf("%d %s", cmd.ProcessState.ExitCode(), out)
				}
			})
		}
	}
}

// TestNobodyIsAskedOverACP: the stream is used where nobody may be asked, and where somebody says so.
func TestNobodyIsAskedOverACP(t *testing.T) {
	needAgents(t)
	b := newBench(t, "gemini")
	for _, c := range []struct {
		flags []string
		acp   bool
	}{
		{[]string{"--yolo"}, false},
		{[]string{"--transport", "stream"}, false},
		{nil, true},
	} {
		r := b.hands(`[{"say":"All is well."}]`, c.flags...)
		cmd := exec.Command(program, "runs", "show", r.Data.ID, "--output", "json")
		cmd.Env = b.wired("http://127.0.0.1:1")
		record, _ := cmd.Output()
		if r.code != 0 || strings.Contains(string(record), `--acp`) != c.acp {
			t.Errorf("%q: %s\n%s", c.flags, r, record)
		}
	}
}
