package start

import (
	"encoding/json"
	"os/exec"
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
