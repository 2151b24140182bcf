package agents

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/measure"
)

// TestWhatAnAgentDestroysComesBack has the real agents throw work away through their own shells, and takes that back.
func TestWhatAnAgentDestroysComesBack(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range subjects() {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			state := func() string {
				t.Helper()
				text, err := measure.Oracle(b.work, b.environ())
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			b.put("tracked.txt", "one\n")
			b.put(".gitignore", ".env\n")
			sh := exec.Command("/bin/sh", "-ec", `git add -A; git -c user.name=a -c user.email=a@b commit -qm one
				echo dirty >>tracked.txt; echo mine >untracked.txt; echo KEY=1 >.env; git branch side`)
			sh.Dir, sh.Env = b.work, b.environ()
			if out, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			wreck := b.put(b.home+"/wreck.sh", "git reset -q --hard; git clean -fdxq; git branch -D side; rm -rf .git/refs\n")
			was := state()
			o := b.run(`[{"shell":"sh `+wreck+`"},{"say":"done"}]`, "--yolo", "--sandbox", "off")
			if o.code != 0 || b.took("untracked.txt") {
				t.Fatalf("nothing was destroyed: %+v", o)
			}
			undo := exec.Command(program, "undo", "--take-all", "--output", "json") // nothing saw it, without walls
			undo.Dir, undo.Env = b.work, b.environ()
			out, err := undo.Output()
			if diff := cmp.Diff(was, state()); err != nil || diff != "" {
				t.Errorf("%v %s\n(-was +is):\n%s", err, out, diff)
			}
		})
	}
}
