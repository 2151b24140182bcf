package start

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// whole reports whether walls can be built here that hold commands in the workspace.
func whole(t *testing.T) bool {
	t.Helper()
	name := standing(t)
	return name == "namespaces" || name == "seatbelt"
}

// standing are the walls that can be built here, as the program says.
func standing(t *testing.T) string {
	t.Helper()
	p := newPlace(t)
	cmd := exec.Command(program, "sandbox", "explain", ".", "--output", "json")
	cmd.Env, cmd.Dir = p.env, p.work
	out, err := cmd.Output()
	var answer struct {
		Data struct{ Walls struct{ Name string } }
	}
	if err != nil || json.Unmarshal(out, &answer) != nil || answer.Data.Walls.Name == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return answer.Data.Walls.Name
}

// TestARefusedWorkspaceLeavesTheHome: a workspace that holds the home directory is refused before anything but the log
// of calls is made there.
func TestARefusedWorkspaceLeavesTheHome(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"start -p go --provider openai --model m --api-base http://127.0.0.1:1/v1",
		"start --rehearse -p go",
		"--agent native --rehearse -p go",
		"run --rehearse -p go",
	} {
		p := newPlace(t)
		home := filepath.Join(p.work, "home")
		if err := os.Mkdir(home, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, strings.Fields(args)...)
		cmd.Dir, cmd.Env = p.work, append(slices.Clone(p.env), "HOME="+home)
		said, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(said), "it holds the home directory "+home+",") {
			t.Errorf("%s: %v, %s", args, err, said)
		}
		_ = filepath.WalkDir(home, func(path string, _ os.DirEntry, _ error) error {
			rel, _ := filepath.Rel(home, path)
			if log := ".local/share/omniagent/audit.jsonl"; rel != "." && !strings.HasPrefix(log, rel+"/") &&
				!strings.HasPrefix(rel, log) {
				t.Errorf("%s: %s was made", args, rel)
			}
			return nil
		})
	}
}
