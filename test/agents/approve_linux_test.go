package agents

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// TestApprovedCalls: an approved call is made without a second question, with each agent over the protocol that suits
// it. If the model goes on without it, the run has not succeeded.
func TestApprovedCalls(t *testing.T) {
	needAgents(t)
	t.Parallel()
	const write = `[{"write":{"path":"new.txt","content":"x\n"}},{"say":"I am done."}]`
	for i, s := range someSubjects(t) {
		ways := map[string]string{"made": write, "not made": `[{"say":"I am done."}]`}
		if !hermetic.Matrices() {
			delete(ways, []string{"made", "not made"}[i%2])
		}
		for way, then := range ways {
			name := s.driver.Name()
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, name)
				asked := b.hands(write, "--approval", "prompt")
				if asked.code != 4 || asked.Data.Reason != "question" || b.took("new.txt") {
					t.Fatalf("nothing was asked: %s", asked)
				}
				cmd := exec.Command(program, "answer", asked.Data.ID, "--approve", "--output", "json")
				cmd.Dir, cmd.Env = b.work, b.wired(scripted(t, then).URL())
				out, _ := cmd.Output()
				var r ran
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				want := map[string]string{"made": "done", "not made": "approved_not_made"}[way]
				if r.Data.Reason != want || b.took("new.txt") != (way == "made") {
					t.Errorf("%d %s", cmd.ProcessState.ExitCode(), out)
				}
			})
		}
	}
}
