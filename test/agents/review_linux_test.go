package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
)

// TestReviewByEveryAgent: the real agents are asked about a diff, may change nothing, and their findings are read.
func TestReviewByEveryAgent(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			say, err := json.Marshal(shouts + `{"findings":1}`)
			if err != nil {
				t.Fatal(err)
			}
			changedBench(t, agent).reviews(scripted(t, `[{"say":`+string(say)+`}]`))
		})
	}
}

// shouts is a finding in a changedBench.
const shouts = `{"file":"a.txt","line":2,"severity":"warning","title":"It shouts.","detail":"Write it small."}` + "\n"

// changedBench is a bench with a commit and a change after it.
func changedBench(t *testing.T, agent string) *bench {
	t.Helper()
	b := newBench(t, agent)
	b.put("a.txt", "one\n")
	sh := exec.Command("/bin/sh", "-ec", `git add -A; git -c user.name=a -c user.email=a@b commit -qm one
		echo TWO >>a.txt`)
	sh.Dir, sh.Env = b.work, b.environ()
	if out, err := sh.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	b.allowed()
	return b
}

// reviews lets the agent review the change, with a model that shouts.
func (b *bench) reviews(m *modelserver.Server) {
	b.t.Helper()
	cmd := exec.Command(program, "review", "--agent", b.agent, "--sarif", "out.sarif", "--output", "plain")
	cmd.Dir, cmd.Env = b.work, b.wired(m.URL())
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, _ := cmd.Output()
	const want = "a.txt:2: warning: It shouts.\n  Write it small.\n1 finding in 1 file\n"
	if code := cmd.ProcessState.ExitCode(); code != 81 || string(out) != want {
		b.t.Fatalf("%d %s\n%s", code, out, stderr.String())
	}
	sarif, err := os.ReadFile(b.work + "/out.sarif")
	if err != nil || !strings.Contains(string(sarif), `"startLine": 2`) {
		b.t.Errorf("%s %v", sarif, err)
	}
}
