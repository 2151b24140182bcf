package start

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// undone is the answer of undo.
type undone struct {
	Data struct {
		Restored []struct{ Value string }
		Kept     []struct{ Path, Reason string }
		Turns    []struct {
			ID, Kind, Agent string
			Files           int
		}
	}
	Error struct{ Code string }
}

// undo calls a command of undo in the workspace.
func (p place) undo(t *testing.T, args ...string) (answer undone, exit int) {
	t.Helper()
	cmd := exec.Command(program, append(args, "--output", "json")...)
	cmd.Env, cmd.Dir = p.env, p.work
	out, _ := cmd.Output()
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return answer, cmd.ProcessState.ExitCode()
}

// git runs git in the workspace.
func (p place) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
	cmd.Env, cmd.Dir = p.env, p.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestWhatTheNativeAgentDestroysComesBack has a model throw away all uncommitted work and the history, and takes that
// back.
func TestWhatTheNativeAgentDestroysComesBack(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	t.Parallel()
	p := newPlace(t)
	p.write(t, "tracked.txt", "one\n")
	p.write(t, ".gitignore", ".env\n")
	p.write(t, "wreck.sh", "git reset -q --hard; git clean -fdxq\n") // the guard knows what these do
	p.git(t, "init", "-q", "-b", "main")
	p.git(t, "add", "-A")
	p.git(t, "commit", "-qm", "one")
	p.write(t, "tracked.txt", "one\nnot committed\n")
	p.write(t, "untracked.txt", "mine\n")
	p.write(t, ".env", "KEY=1\n")
	state := func() string {
		text := p.git(t, "status", "--porcelain", "--ignored") + p.git(t, "log", "--oneline") +
			p.git(t, "fsck", "--no-dangling")
		for _, name := range []string{"tracked.txt", "untracked.txt", ".env"} {
			data, err := os.ReadFile(filepath.Join(p.work, name))
			text += name + ": " + string(data)
			if err != nil {
				text += "gone"
			}
		}
		return text
	}
	was := state()
	args, env, _ := wires()[0].scripted(t, `[
		{"shell":"sh wreck.sh"},
		{"shell":"echo agent > made.txt && git add -A && git -c user.name=x -c user.email=x@y commit -qm agent"},
		{"shell":"git reflog expire --expire=now --all && git gc -q --prune=now"},
		{"say":"done"}]`)
	args = append(args, "-p", "go", "--permission-mode", "yolo", "--sandbox", "off")
	messages, exit := p.launch(t, env, args...).end()
	if exit != 0 || state() == was {
		t.Fatalf("exit %d, nothing was destroyed: %v", exit, messages)
	}
	left := state()
	if a, _ := p.undo(t, "undo", "--list"); len(a.Data.Turns) != 1 || a.Data.Turns[0].Agent != "native" {
		t.Fatalf("listed: %+v", a.Data.Turns)
	}
	if a, exit := p.undo(t, "undo"); exit != 0 || state() != was {
		t.Errorf("undo: exit %d, %+v\n%s\nwas\n%s", exit, a, state(), was)
	}
	if a, exit := p.undo(t, "redo"); exit != 0 || state() != left {
		t.Errorf("redo: exit %d, %+v\n%s\nwas\n%s", exit, a, state(), left)
	}
	p.write(t, "made.txt", "by hand\n")
	a, exit := p.undo(t, "undo")
	if exit != 3 || len(a.Data.Kept) != 1 || a.Data.Kept[0].Path != "made.txt" || a.Error.Code != "PARTIAL_FAILURE" {
		t.Errorf("undo after a change by hand: exit %d, %+v", exit, a)
	}
	if got := state(); strings.Replace(got, "?? made.txt\n", "", 1) != was {
		t.Errorf("after a change by hand:\n%s\nwas\n%s", got, was)
	}
	if _, exit := p.undo(t, "undo"); exit != 5 {
		t.Errorf("a second undo: exit %d", exit)
	}
	if a, exit := p.undo(t, "snapshots", "delete", a.turn(t, p), "--confirm-destructive"); exit != 0 {
		t.Errorf("delete: exit %d, %+v", exit, a)
	}
}

// turn is the id of the newest turn of an agent.
func (undone) turn(t *testing.T, p place) string {
	t.Helper()
	a, _ := p.undo(t, "undo", "--list")
	for _, turn := range a.Data.Turns {
		if turn.Kind == "turn" {
			return turn.ID
		}
	}
	t.Fatal("there is no turn")
	return ""
}

// TestUndoOffTakesNoSnapshot asks for none.
func TestUndoOffTakesNoSnapshot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[{"write":{"path":"a.txt","content":"x"}},{"say":"done"}]`)
	args = append(args, "-p", "go", "--permission-mode", "auto", "--undo", "off")
	if _, exit := p.launch(t, env, args...).end(); exit != 0 {
		t.Fatalf("exit %d", exit)
	}
	if a, exit := p.undo(t, "undo"); exit != 5 {
		t.Errorf("undo: exit %d, %+v", exit, a)
	}
}
