//go:build unix

package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/testkit/measure"
)

// TestARunIsTakenBack takes back the first of two runs, named by its id, and then the last one.
func TestARunIsTakenBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t).walled().agent("scribe", `cat >/dev/null; echo one >first.txt; rm -rf src; echo "I wrote it."`).
		agent("other", `cat >/dev/null; echo two >second.txt; echo "I wrote it too."`)
	p.put("src/a.txt", "a\n")
	state := func() string {
		text, err := measure.Oracle(p.work, p.env)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	was := state()
	first := p.run("scribe", "--yolo")
	between := state()
	p.run("other", "--yolo")
	undo := func(want int, args ...string) {
		t.Helper()
		cmd := p.command(append([]string{"undo", "--output", "json"}, args...)...)
		out, _ := cmd.Output()
		var a struct {
			Data struct {
				Of struct {
					Run   string `json:"run_id"`
					Agent string
				}
			}
		}
		if err := json.Unmarshal(out, &a); err != nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%v: exit %d, %v\n%s", args, cmd.ProcessState.ExitCode(), err, out)
		}
		if len(args) > 0 && want == 0 && (a.Data.Of.Run != first.Data.ID || a.Data.Of.Agent != "scribe") {
			t.Errorf("%v takes something else back: %s", args, out)
		}
	}
	undo(0, "--run", first.Data.ID)
	if p.read("second.txt") != "two\n" || p.read("src/a.txt") != "a\n" {
		t.Error("the first run is not taken back alone")
	}
	undo(5, "--run", first.Data.ID)
	undo(0)
	if is := state(); is != was {
		t.Errorf("it is\n%s\nand was\n%s", is, was)
	}
	if between == was {
		t.Error("the first run changed nothing")
	}
}

// TestHowManyIsNotKnown: the files that a turn changed are counted later when its process died.
func TestHowManyIsNotKnown(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; echo one >first.txt; sleep 100`)
	a := p.run("scribe", "--yolo", "--detach")
	p.exists("first.txt")
	_ = syscall.Kill(a.Data.PID, syscall.SIGKILL)
	p.reaches(a.Data.ID, "unknown_outcome")
	out, err := p.command("undo", "--list", "--output", "plain").Output()
	if err != nil || !regexp.MustCompile(`scribe +- +its process died`).Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err = p.command("undo", "--list").Output(); err != nil || !bytes.Contains(out, []byte(`"files":null`)) {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestAtHome: what this program keeps in a home directory is not listed as changed by a run there.
func TestAtHome(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("reader", `echo "All is well."`)
	a := p.run("reader", "--yolo", "--cwd", p.home)
	if a.Data.Changed == nil || a.Data.Changed.Count != 0 {
		t.Errorf("%s", a)
	}
	cmd := p.command("run", "--agent", "reader", "-p", "the task", "--yolo", "--output", "plain")
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "reader: done, no file changed after") {
		t.Errorf("%v %s", err, out)
	}
}

// TestChangedWorkspace: the permissions of the workspace itself are a change at its own path.
func TestChangedWorkspace(t *testing.T) {
	t.Parallel()
	p := newPlace(t).walled().agent("closer", `chmod 700 .; echo "It is closed."`)
	if err := os.Chmod(p.work, 0o755); err != nil {
		t.Fatal(err)
	}
	a := p.run("closer", "--yolo")
	a.is(t, 0, "succeeded", "done")
	if c := a.Data.Changed; c == nil || len(c.Files) != 1 || c.Files[0].Path != p.work || c.Files[0].Status != "mode" {
		t.Errorf("%s", a)
	}
}

// TestTwoRunsWroteOneFile: what the agents of two runs wrote, one after the other while both ran, is kept and told.
func TestTwoRunsWroteOneFile(t *testing.T) {
	t.Parallel()
	wait := func(name string) string { return "while ! test -e " + name + "; do sleep 0.01; done; " }
	p := newPlace(t).walled().
		agent("first", "cat >/dev/null; : >began; "+wait("over")+"echo first >>shared.txt; echo said").
		agent("second", "cat >/dev/null; echo second >>shared.txt; echo said")
	p.put("shared.txt", "base\n")
	a := p.run("first", "--yolo", "--detach")
	p.exists("began")
	b := p.run("second", "--yolo")
	p.put("over", "")
	p.reaches(a.Data.ID, "succeeded")
	const both = "base\nsecond\nfirst\n"
	undo := func(want int, args ...string) string {
		t.Helper()
		cmd := p.command(append([]string{"undo", "--run", a.Data.ID}, args...)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("%v: exit %d\n%s", args, code, out)
		}
		return string(out)
	}
	kept := regexp.MustCompile(`(?s)shared\.txt: .*somebody else changed it too.*` + regexp.QuoteMeta(b.Data.ID))
	if out := undo(0, "--dry-run", "--output", "plain"); !kept.MatchString(out) {
		t.Errorf("it does not say what it would keep:\n%s", out)
	}
	if out := undo(3, "--output", "plain"); !kept.MatchString(out) || p.read("shared.txt") != both {
		t.Errorf("it is %q, and it says\n%s", p.read("shared.txt"), out)
	}
	undo(5)
	if out := undo(0, "--take-all", "--output", "plain"); p.read("shared.txt") != "base\n" {
		t.Errorf("it is %q after --take-all, which says\n%s", p.read("shared.txt"), out)
	}
	if out := undo(0, "--take-all", "--output", "plain"); !strings.Contains(out, "Took back nothing of the turn") {
		t.Errorf("nothing was restored, and it says\n%s", out)
	}
}

// TestARunOfTwoTurns: a run that waited for an answer has two turns. Each report says what takes its changes back, and
// undo of the last turn tells of the other.
func TestARunOfTwoTurns(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("../script.json", `[{"write":{"path":"plan.txt","content":"p"}},{"ask":"Which colour?"},
		{"write":{"path":"colour.txt","content":"c"}},{"say":"painted"}]`)
	report := func(want int, args ...string) string {
		cmd := p.command(append(args, "--output", "plain")...)
		out, _ := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("%v: exit %d\n%s", args, code, out)
		}
		return string(out)
	}
	said := report(4, "run", "--rehearse", "--script", "../script.json", "--yolo", "-p", "paint")
	back, twice := "Take back: omniagent undo --run "+p.newest()+"\n", "The run had 2 turns: "
	if !strings.Contains(said, back) || strings.Contains(said, twice) {
		t.Errorf("the report of the question: %s", said)
	}
	if said = report(0, "answer", "blue"); !strings.Contains(said, back+twice) {
		t.Errorf("the report of the end: %s", said)
	}
	const earlier = "an earlier turn of the run"
	for i, want := range []bool{true, false} {
		out, err := p.command("undo", "--run", p.newest()).CombinedOutput()
		if err != nil || strings.Contains(string(out), earlier) != want {
			t.Errorf("undo %d: %v\n%s", i+1, err, out)
		}
	}
	for _, name := range []string{"plan.txt", "colour.txt"} {
		if _, err := os.Stat(filepath.Join(p.work, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
