//go:build unix

package run

import (
	"strings"
	"testing"
)

// TestAnAnswerThatNamesNoRun tells which run it is for, prefers that of this directory, asks a person before one of
// another directory goes on, and its report can be followed from here.
func TestAnAnswerThatNamesNoRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("script.json", `[{"ask":"Which colour?"},{"write":{"path":"colour.txt","content":"c"}},{"say":"painted"}]`)
	p.put("far/a.txt", "a\n")
	far := p.work + "/far"
	asks := func(more ...string) string {
		args := []string{"run", "--rehearse", "--script", p.work + "/script.json", "--yolo", "-p", "paint"}
		a := p.call(append(args, more...)...)
		if a.Data.Status != "needs_input" {
			t.Fatalf("%s", a)
		}
		return a.Data.ID
	}
	there := asks("--cwd", far)
	shown, code := p.atTerminal([][2]string{{"Answer it? [y/N] ", "n\r"}}, "answer", "blue")
	if code != 2 || !strings.Contains(shown, "Which colour?") || !strings.Contains(shown, "nothing was answered") {
		t.Fatalf("%d %s", code, shown)
	}
	here := asks()
	out, err := p.command("answer", "blue").CombinedOutput()
	if said := string(out); err != nil || !strings.Contains(said, here+" asks: Which colour?") {
		t.Fatalf("%v %s", err, said)
	}
	shown, code = p.atTerminal([][2]string{{"Answer it? [y/N] ", "y\r"}}, "answer", "blue")
	flat := strings.Join(strings.Fields(shown), " ")
	back := "omniagent undo --run " + there + " --cwd "
	if code != 0 || !strings.Contains(flat, "Take back: "+back) || !strings.Contains(flat, "Run "+there+", in ") {
		t.Fatalf("%d %s", code, shown)
	}
	for _, want := range []string{
		"Task: paint\n", "Asked: Which colour? Answered: blue\n", "Run " + there + ", in " + far + "\n",
	} {
		out, err := p.command("runs", "show", there, "--output", "plain").Output()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %q is not in %s", err, want, out)
		}
	}
}
