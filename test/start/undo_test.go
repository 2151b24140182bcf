package start

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/testkit/measure"
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
	Error struct{ Code, Suggestion string }
}

// undo calls a command of undo in the workspace.
func (p place) undo(t *testing.T, args ...string) (answer undone, exit int) {
	t.Helper()
	if args[0] == "undo" && !slices.Contains(args, "--list") { // most agents here run without walls: nothing sees them
		args = append(args, "--take-all")
	}
	cmd := exec.Command(program, append(args, "--output", "json")...)
	cmd.Env, cmd.Dir = p.env, p.work
	out, _ := cmd.Output()
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return answer, cmd.ProcessState.ExitCode()
}

// sh runs a script in the workspace.
func (p place) sh(t *testing.T, script string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Env, cmd.Dir = append(slices.Clip(p.env), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"), p.work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// state is the workspace as other programs see it.
func (p place) state(t *testing.T) string {
	t.Helper()
	text, err := measure.Oracle(p.work, p.env)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// dirty makes a repository with changes of every kind.
func (p place) dirty(t *testing.T) {
	t.Helper()
	p.sh(t, `git init -q -b main; mkdir -p src/deep empty; printf '.env\ndist/\n' >.gitignore
		for i in 1 2 3; do echo "line $i" >src/f$i; echo "deep $i" >src/deep/d$i; done; chmod 755 src/f2; ln -s src/f1 link
		git add -A; git commit -qm one; echo two >>src/f1; git commit -qam two; git branch side; git gc -q
		echo stashed >>src/f3; git stash -q; echo not committed >>src/f1; echo staged >>src/f2; git add src/f2
		echo mine >untracked; echo KEY=1 >.env; chmod 600 .env; mkdir dist; head -c 20000 /dev/urandom >dist/out`)
}

// wrecked has a model run a script in the workspace: the guard knows what the commands in it do.
func (p place) wrecked(t *testing.T, script string, more ...string) {
	t.Helper()
	name := filepath.Join(p.home, "wreck.sh")
	if err := os.WriteFile(name, []byte("export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y GIT_COMMITTER_NAME=x"+
		" GIT_COMMITTER_EMAIL=x@y\n"+script+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args, env, _ := wires()[0].scripted(t, `[{"shell":"sh `+name+`"},{"say":"done"}]`)
	args = append(append(args, "-p", "go", "--permission-mode", "yolo", "--sandbox", "off"), more...)
	if messages, exit := p.launch(t, env, args...).end(); exit != 0 {
		t.Fatalf("exit %d: %v", exit, messages)
	}
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
}

// TestWhatTheNativeAgentDestroysComesBack has a model throw away uncommitted work, history and git's own state, and
// takes that back, and back again.
func TestWhatTheNativeAgentDestroysComesBack(t *testing.T) {
	needGit(t)
	t.Parallel()
	for name, script := range map[string]string{
		"reset":  "git reset -q --hard; git clean -fdxq; rm -rf empty",
		"delete": "rm -rf src dist .env untracked link",
		"refs":   "rm -rf .git/refs .git/HEAD",
		"git":    "rm -rf .git",
		"gc": "git stash clear; git branch -qD side; echo agent >made; git add -A; git commit -qm agent\n" +
			"git reset -q --hard HEAD~2; git reflog expire --expire=now --all; git gc -q --prune=now",
		"sed": "sed -i s/line/LINE/ src/f*; chmod 700 src/f1; ln -sf /etc/passwd link; mv src/deep deep",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.dirty(t)
			was := p.state(t)
			p.wrecked(t, script)
			listed, _ := p.undo(t, "undo", "--list")
			if len(listed.Data.Turns) != 1 || listed.Data.Turns[0].Agent != "native" {
				t.Fatalf("listed: %+v", listed.Data.Turns)
			}
			dry, exit := p.undo(t, "undo", "--dry-run")
			if exit != 0 || len(dry.Data.Restored) == 0 || len(dry.Data.Kept) > 0 {
				t.Errorf("a dry run: exit %d, %+v", exit, dry)
			}
			done, exit := p.undo(t, "undo")
			if diff := cmp.Diff(was, p.state(t)); exit != 0 || diff != "" {
				t.Errorf("undo: exit %d, %+v\n(-was +is):\n%s", exit, done, diff)
			}
			if diff := cmp.Diff(dry.Data.Restored, done.Data.Restored); diff != "" {
				t.Errorf("the dry run said something else (-dry +done):\n%s", diff)
			}
			if a, exit := p.undo(t, "redo"); exit != 0 {
				t.Errorf("redo: exit %d, %+v", exit, a)
			}
			if text, err := measure.Oracle(p.work, p.env); err == nil && text == was {
				t.Error("redo changed nothing")
			}
			if a, exit := p.undo(t, "undo", a0(listed)); exit != 0 {
				t.Errorf("undo of the turn: exit %d, %+v", exit, a)
			}
			if diff := cmp.Diff(was, p.state(t)); diff != "" {
				t.Errorf("the second undo (-was +is):\n%s", diff)
			}
			if _, exit := p.undo(t, "undo"); exit != 5 {
				t.Errorf("a third undo: exit %d", exit)
			}
		})
	}
}

// a0 is the id of the newest turn that is listed.
func a0(a undone) string { return a.Data.Turns[0].ID }

// TestWhatIsChangedByHandStays changes a file after the turn, by hand.
func TestWhatIsChangedByHandStays(t *testing.T) {
	needGit(t)
	t.Parallel()
	p := newPlace(t)
	p.dirty(t)
	was := p.state(t)
	p.wrecked(t, "echo agent >src/f1; echo agent >src/f3; echo agent >made")
	p.write(t, "src/f1", "by hand\n")
	dry, exit := p.undo(t, "undo", "--dry-run")
	if exit != 0 || len(dry.Data.Kept) != 1 || dry.Data.Kept[0].Path != "src/f1" {
		t.Errorf("a dry run: exit %d, %+v", exit, dry)
	}
	a, exit := p.undo(t, "undo")
	if exit != 3 || len(a.Data.Kept) != 1 || a.Data.Kept[0].Path != "src/f1" || a.Error.Code != "PARTIAL_FAILURE" {
		t.Errorf("exit %d, %+v", exit, a)
	}
	if text, err := os.ReadFile(filepath.Join(p.work, "src/f1")); err != nil || string(text) != "by hand\n" {
		t.Errorf("what was written by hand is %q, %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(p.work, "made")); err == nil {
		t.Error("a file of the agent's stays")
	}
	if a, exit := p.undo(t, "redo"); exit != 0 {
		t.Errorf("redo: exit %d, %+v", exit, a)
	}
	if a, exit := p.undo(t, "undo", "--take-old"); exit != 0 || len(a.Data.Kept) > 0 {
		t.Errorf("with the old ones: exit %d, %+v", exit, a)
	}
	if diff := cmp.Diff(was, p.state(t)); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
}

// TestTheHintRestoresWhatWasKept types the command that the answer to an undo or a redo with exit code 3 names.
func TestTheHintRestoresWhatWasKept(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	content := func() string {
		text, _ := os.ReadFile(filepath.Join(p.work, "a.txt"))
		return string(text)
	}
	typed := func(want string, args ...string) {
		t.Helper()
		a, exit := p.undo(t, args...)
		if exit != 3 || len(a.Data.Kept) != 1 || a.Data.Kept[0].Path != "a.txt" {
			t.Fatalf("%v: exit %d, %+v", args, exit, a)
		}
		command, _, _ := strings.Cut(a.Error.Suggestion, " restores")
		words := strings.Fields(command)
		if b, exit := p.undo(t, words[1:]...); exit != 0 || content() != want {
			t.Errorf("%q: exit %d, a.txt is %q, %+v", command, exit, content(), b)
		}
	}
	p.write(t, "a.txt", "old")
	p.write(t, "b.txt", "old")
	p.wrecked(t, "echo agent >a.txt; echo agent >b.txt")
	p.write(t, "a.txt", "mine")
	typed("old", "undo")
	p.write(t, "a.txt", "scratch")
	typed("mine", "redo")
}

// TestAPersonReadsSentences asks for the plain form. Without walls nothing saw who wrote a path.
func TestAPersonReadsSentences(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "a.txt", "one")
	p.write(t, "b.txt", "one")
	p.wrecked(t, "echo two >a.txt; echo two >b.txt; echo two >c.txt")
	p.write(t, "b.txt", "by hand\n")
	plain := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append(args, "--output", "plain")...)
		cmd.Env, cmd.Dir = p.env, p.work
		out, _ := cmd.CombinedOutput()
		if is := cmd.ProcessState.ExitCode(); is != want {
			t.Fatalf("%v: exit %d\n%s", args, is, out)
		}
		return string(out)
	}
	listed, _ := p.undo(t, "undo", "--list")
	took := " (" + a0(listed) + ")."
	kept := "Kept unchanged:\n  b.txt: it has changed since the turn left it\n"
	unseen := ": it is not certain that the turn changed it: nothing saw who wrote it\n"
	doubted := "  a.txt" + unseen + "  b.txt" + unseen + "  c.txt" + unseen
	for _, c := range []struct {
		want int
		args []string
		text string
	}{
		{0, []string{"undo", "--list"}, "  WHAT\n" + a0(listed)},
		{0, []string{"undo", "--list", "--session", "nobody"}, "There is no turn to take back.\n"},
		{0, []string{"undo", "nothing", "--list"}, "There is no turn to take back.\n"},
		{2, []string{"undo", "--list", "--take-old"}, "--take-old"},
		{0, []string{"undo", "--dry-run"}, "Would take back nothing of the turn of native from "},
		{0, []string{"undo", "--dry-run"}, took + "\nWould keep unchanged:\n" + doubted},
		{
			0,
			[]string{"undo", "--dry-run", "--take-all"},
			"\nWould restore 2 paths:\n  a.txt\n  c.txt (removed)\nWould keep unchanged:\n  b.txt: ",
		},
		{3, []string{"undo"}, took + "\nKept unchanged:\n" + doubted},
		{3, []string{"undo", a0(listed), "--take-all"}, took + "\nRestored 2 paths:\n  a.txt\n  c.txt (removed)\n" + kept},
		{0, []string{"redo"}, "Took back the undo of native from "},
		{5, []string{"redo"}, "there is no undo to take back"}, // the undo that restored nothing does not count
		{0, []string{"undo", "--take-old", "--take-all"}, "Restored 3 paths:\n"},
	} {
		if text := plain(c.want, c.args...); !strings.Contains(text, c.text) {
			t.Errorf("%v answers\n%s\nwithout\n%s", c.args, text, c.text)
		}
	}
}

// TestSnapshotsAreDeleted forgets a turn.
func TestSnapshotsAreDeleted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "a.txt", "one")
	p.wrecked(t, "echo two >a.txt")
	listed, _ := p.undo(t, "undo", "--list")
	if a, exit := p.undo(t, "snapshots", "delete", a0(listed), "--confirm-destructive"); exit != 0 {
		t.Errorf("delete: exit %d, %+v", exit, a)
	}
	if _, exit := p.undo(t, "undo"); exit != 5 {
		t.Errorf("undo of what was deleted: exit %d", exit)
	}
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

// TestWhatUndoDoesNotCoverIsSaid says so before the turn, and in the list.
func TestWhatUndoDoesNotCoverIsSaid(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "large", strings.Repeat("x", 2000))
	p.write(t, ".gitignore", "dist/\n")
	p.write(t, "dist/out", strings.Repeat("y", 500))
	p.run(t, "config", "set", "undo.file_limit", "1KiB", "--global")
	p.run(t, "config", "set", "undo.ignored_limit", "100", "--global")
	wreck := filepath.Join(p.home, "wreck.sh")
	if err := os.WriteFile(wreck, []byte("rm -rf large dist; echo made >made\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args, env, _ := wires()[0].scripted(t, `[{"shell":"sh `+wreck+`"},{"say":"done"}]`)
	_, log, exit := p.call(t, env, append(append([]string{"start"}, args...), "-p", "go", "--permission-mode", "yolo",
		"--sandbox", "off")...)
	if exit != 0 || !strings.Contains(log, "undo does not cover ") || !strings.Contains(log, "large (") ||
		!strings.Contains(log, "dist (") {
		t.Errorf("exit %d\n%s", exit, log)
	}
	if out := p.run(t, "undo", "--list", "--output", "json"); !strings.Contains(out, `"not_covered":[{`) {
		t.Errorf("the list does not tell it: %s", out)
	}
	a, exit := p.undo(t, "undo")
	var kept []string
	for _, k := range a.Data.Kept {
		kept = append(kept, k.Path+": "+k.Reason)
	}
	const notSaved = ": no copy of its content was saved"
	if diff := cmp.Diff([]string{"dist/out" + notSaved, "large" + notSaved},
		kept); exit != 3 || diff != "" {
		t.Errorf("exit %d, kept (-want +got):\n%s", exit, diff)
	}
	if _, err := os.Lstat(filepath.Join(p.work, "made")); err == nil {
		t.Error("what could be taken back is not")
	}
}

// TestCleanupForgetsTurns deletes what is too old, or too much.
func TestCleanupForgetsTurns(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"undo.age", "undo.budget"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "a.txt", strings.Repeat("one\n", 1000))
			p.wrecked(t, "echo two >a.txt")
			p.wrecked(t, "echo three >a.txt")
			p.run(t, "cleanup", "--scope", "undo", "--live")
			if a, _ := p.undo(t, "undo", "--list"); len(a.Data.Turns) != 2 {
				t.Fatalf("without need %d turns are left", len(a.Data.Turns))
			}
			p.run(t, "config", "set", setting, map[string]string{"undo.age": "0s", "undo.budget": "0"}[setting],
				"--global")
			p.run(t, "cleanup", "--scope", "undo")
			if a, _ := p.undo(t, "undo", "--list"); len(a.Data.Turns) != 2 {
				t.Fatalf("without --live %d turns are left", len(a.Data.Turns))
			}
			p.run(t, "cleanup", "--scope", "undo", "--live")
			if a, _ := p.undo(t, "undo", "--list"); len(a.Data.Turns) != 0 {
				t.Errorf("%d turns are left", len(a.Data.Turns))
			}
			left := 0
			_ = filepath.WalkDir(filepath.Join(p.home, ".local/state/omniagent/undo"),
				func(path string, d os.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() && d.Name() != "lock" {
						left++
						t.Logf("left: %s", path)
					}
					return nil
				})
			if left > 0 {
				t.Errorf("%d files are left", left)
			}
		})
	}
}

// TestTheSettingTakesNoSnapshot switches them off for good.
func TestTheSettingTakesNoSnapshot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(t, "config", "set", "undo.snapshots", "off", "--global")
	p.wrecked(t, "echo made >made")
	if _, exit := p.undo(t, "undo"); exit != 5 {
		t.Errorf("undo: exit %d", exit)
	}
	p.wrecked(t, "echo more >more", "--undo", "on")
	if a, exit := p.undo(t, "undo"); exit != 0 || len(a.Data.Restored) != 1 {
		t.Errorf("undo with the flag: exit %d, %+v", exit, a)
	}
}

// TestUndoWaitsForTheEndOfATurn refuses while an agent is at work, and says when the turn is over.
func TestUndoWaitsForTheEndOfATurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "a.txt", "one\n")
	args, env, _ := wires()[0].scripted(t,
		`[{"shell":"echo two >a.txt; touch began; while ! test -e go; do sleep 0.01; done"},{"say":"done"}]`)
	run := p.launch(t, env, append(args, "-p", "go", "--permission-mode", "yolo", "--sandbox", "off")...)
	p.await(t, "began")
	if a, exit := p.undo(t, "undo"); exit != 6 || a.Error.Code != "CONFLICT" {
		t.Errorf("in the middle of a turn: exit %d, %+v", exit, a)
	}
	if a, exit := p.undo(t, "undo", "--dry-run"); exit != 6 {
		t.Errorf("a dry run in the middle of a turn: exit %d, %+v", exit, a)
	}
	p.write(t, "go", "")
	if _, exit := run.end(); exit != 0 {
		t.Fatalf("exit %d", exit)
	}
	if a, exit := p.undo(t, "undo"); exit != 0 || len(a.Data.Restored) != 3 {
		t.Errorf("after the turn: exit %d, %+v", exit, a)
	}
}

// TestSnapshots: turns are listed with their times and the room that they take, for scripts by their names alone, and
// deleted by what their names begin with.
func TestSnapshots(t *testing.T) {
	needGit(t)
	t.Parallel()
	p := newPlace(t)
	p.dirty(t)
	p.wrecked(t, "rm -rf src")
	call := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append([]string{"snapshots"}, args...)...)
		cmd.Env, cmd.Dir = p.env, p.work
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	id := strings.TrimSpace(call("list", "--here", "--output", "id"))
	if len(id) < 8 || strings.Contains(id, "\n") {
		t.Fatalf("the turns here: %q", id)
	}
	if got := call("list", "--output", "plain"); !strings.Contains(got, "BEGAN") || !strings.Contains(got, "\nbytes ") {
		t.Errorf("%s", got)
	}
	if got := call("delete", id[:8], "--dry-run"); !strings.Contains(got, `"ids":["`+id+`"],"bytes_freed":null`) {
		t.Errorf("%s", got)
	}
	if got := call("delete", id[:8], "--confirm-destructive"); strings.Contains(got, `"bytes_freed":null`) {
		t.Errorf("%s", got)
	}
	if got := call("list", "--output", "id"); got != "" {
		t.Errorf("left: %s", got)
	}
}
