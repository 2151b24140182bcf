package agents

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/testkit/measure"
)

// TestWhatAnAgentDestroysComesBack has the real agents throw work away through their own shells, and takes that back.
func TestWhatAnAgentDestroysComesBack(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
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

// TestPlainUndoTakesBackWhatTheCallsSay has the real agents write without walls, through their tools for files and
// their shells, while a person works in other files and in one that the agent writes too. Without --take-all what the
// agent did is taken back, and nothing of the person's.
func TestPlainUndoTakesBackWhatTheCallsSay(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			b.put("gone.txt", "gone\n")
			b.put("both.txt", "before\n")
			b.put("theirs.txt", "before\n")
			person := b.put(b.home+"/person.sh", "echo mine >>"+b.work+"/theirs.txt; echo mine >"+b.work+
				"/new.txt; echo mine >>"+b.work+"/both.txt\n") // no line of the agent names what it writes
			o := b.run(`[{"write":{"path":"made.txt","content":"x\n"}},
				{"shell":"mkdir d; echo two > d/second.txt; rm gone.txt; echo agent > both.txt"},
				{"shell":"sleep 1; sh `+person+`"},{"say":"done"}]`, "--yolo", "--sandbox", "off")
			if o.code != 0 {
				t.Fatalf("%+v", o)
			}
			undo := exec.Command(program, "undo", "--output", "json")
			undo.Dir, undo.Env = b.work, b.environ()
			out, _ := undo.Output()
			var told struct {
				Data struct {
					Restored []struct{ Value string }
					Kept     []struct{ Path string }
				}
			}
			if err := json.Unmarshal(out, &told); err != nil || undo.ProcessState.ExitCode() != 3 {
				t.Fatalf("exit %d, %v: %s", undo.ProcessState.ExitCode(), err, out)
			}
			var kept []string
			for _, k := range told.Data.Kept {
				kept = append(kept, k.Path)
			}
			slices.Sort(kept)
			if diff := cmp.Diff([]string{"both.txt", "new.txt", "theirs.txt"}, kept); diff != "" {
				t.Errorf("kept (-want +is):\n%s%s", diff, out)
			}
			for name, want := range map[string]string{
				"gone.txt": "gone\n", "both.txt": "agent\nmine\n", "theirs.txt": "before\nmine\n", "new.txt": "mine\n",
				"made.txt": "", "d/second.txt": "",
			} {
				if text, _ := os.ReadFile(filepath.Join(b.work, name)); string(text) != want {
					t.Errorf("%s is %q, not %q\n%s", name, text, want, out)
				}
			}
		})
	}
}
