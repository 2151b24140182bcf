package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestABatch does a list of tasks in forks, of which one fails at first, and calls it again.
func TestABatch(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	times := filepath.Join(p.home, "times") // outside of the forks
	p.agent("worker", `task=$(cat); echo "$task" >>`+times+`
case $task in *third*) test -e `+p.home+`/mended || { echo "Which colour do you want?"; exit; } ;; esac
echo "$task" >task.txt
case $task in *second*) test -e `+p.home+`/mended || exit 1 ;; esac
echo ok`)
	const list = "# What to do\n\n- the first\n  with more\n  - and a part\n- [x] was done\n* the second\n\n" +
		"Some words.\n\n1. [ ] the third\n\n```\n- no task\n```\n- the first, again\n"
	p.put("TASKS.md", list)
	args := []string{
		"--batch", "TASKS.md", "--agent", "worker", "--parallel", "3", "--fork", "--check", "test -s task.txt",
	}
	unchanged := p.untouched()
	c := p.contest(3, args...)
	unchanged()
	if len(c.Runs) != 4 || c.Error == nil || c.Error.Code != "PARTIAL_FAILURE" {
		t.Fatalf("%s", c.answer)
	}
	for i, want := range []struct{ task, status string }{
		{"the first\nwith more\n- and a part", "succeeded"},
		{"the second", "failed"},
		{"the third", "needs_input"},
		{"the first, again", "succeeded"},
	} {
		if is := c.Runs[i]; is.Task != want.task || is.Status != want.status || is.Fork == "" {
			t.Errorf("%d: %+v", i, is)
		}
	}
	dry := p.call(append([]string{"run", "--yolo", "--dry-run"}, args...)...)
	if !strings.Contains(dry.Stdout, `"tasks":["the second"]`) {
		t.Errorf("the others are done, or wait: %s", dry)
	}
	p.put(filepath.Join(p.home, "mended"), "")
	again := p.contest(3, args...) // the third waits for an answer, and is not begun again
	if again.Runs[1].Status != "succeeded" || again.Runs[2].ID != c.Runs[2].ID || again.Runs[0].ID != c.Runs[0].ID {
		t.Errorf("%s", again.answer)
	}
	p.call("answer", c.Runs[2].ID, "blue").is(t, 0, "succeeded", "done")
	last := p.contest(0, args...)
	if last.Runs[2].ID != c.Runs[2].ID || !last.Runs[2].Passed || last.Status != "succeeded" {
		t.Errorf("%s", last.answer)
	}
	is, err := os.ReadFile(times)
	if err != nil || bytes.Count(is, []byte("the second")) != 2 || bytes.Count(is, []byte("the first\n")) != 1 {
		t.Errorf("%v: %s", err, is)
	}
	if is := p.read("TASKS.md"); is != strings.Replace(list, "[ ]", "[x]", 1) {
		t.Errorf("what is done is not ticked: %s", is)
	}
	p.put("TASKS.md", list)
	unchanged()
	p.call("runs", "delete", c.Runs[0].ID, "--confirm-destructive")
	if gone := p.contest(0, args...); gone.Runs[0].ID != c.Runs[0].ID {
		t.Errorf("a task that had succeeded was done again: %s", gone.answer)
	}
	if err := os.Symlink(p.work, filepath.Join(p.home, "link")); err != nil {
		t.Fatal(err)
	}
	args[1] = filepath.Join(p.home, "link", "TASKS.md")
	if linked := p.contest(0, args...); linked.Runs[0].ID != c.Runs[0].ID {
		t.Errorf("by a link a task was done again: %s", linked.answer)
	}
	p.nothing()
}

// TestABatchGoesOn kills a batch in the middle of its second task, and calls it again.
func TestABatchGoesOn(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.agent("worker", `cat >task.txt; cat task.txt >>`+p.home+`/times; echo >>`+p.home+`/times
grep -q two task.txt && test ! -e `+p.home+`/mended && { : >`+p.home+`/stuck; mkfifo w; read x <w; }
echo ok`)
	p.put("TASKS.md", "- one\n- two\n- three\n")
	args := []string{"--batch", "TASKS.md", "--agent", "worker", "--fork"}
	cmd := p.command(append([]string{"run", "--yolo", "--output", "json"}, args...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.exists("../home/stuck")
	if a := p.call(append([]string{"run", "--yolo"}, args...)...); a.Code != 6 {
		t.Errorf("two calls work on the same list: %s", a)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	p.nothing()
	if a := p.call("runs", "list", "--status", "unknown_outcome"); strings.Count(a.Stdout, `"run_id":"run-`) != 1 {
		t.Errorf("%s", a)
	}
	p.put(filepath.Join(p.home, "mended"), "")
	c := p.contest(0, args...)
	if !strings.Contains(c.Stdout, "BATCH: task 2 is done again: nobody saw how run-") ||
		strings.Count(c.Stdout, `"BATCH: `) != 1 {
		t.Errorf("it does not say what may be done twice: %s", c.answer)
	}
	if is := p.read("../home/times"); is != "one\ntwo\ntwo\nthree\n" || len(c.Runs) != 3 {
		t.Errorf("%q: %s", is, c.answer)
	}
	p.nothing()
}

// TestABatchHere does tasks one after the other in the workspace itself.
func TestABatchHere(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("worker", `cat >>done.txt; echo >>done.txt; echo ok`)
	p.put("TASKS.md", "- one\n- two\n- two\n")
	c := p.contest(0, "--batch", "TASKS.md", "--agent", "worker")
	if p.read("done.txt") != "one\ntwo\ntwo\n" || len(c.Runs) != 3 || c.Runs[0].Fork != "" {
		t.Errorf("%q: %s", p.read("done.txt"), c.answer)
	}
	p.put("none.md", "no list\n")
	for _, bad := range [][]string{
		{"--batch", "none.md"},
		{"--batch", "TASKS.md", "--parallel", "2"},
		{"--batch", "TASKS.md", "--race", "worker"},
		{"--batch", "TASKS.md", "-p", "x"},
	} {
		if a := p.call(append([]string{"run", "--agent", "worker"}, bad...)...); a.Code != 2 {
			t.Errorf("%v: %s", bad, a)
		}
	}
	if a := p.call("run", "--agent", "worker", "--batch", "nowhere.md"); a.Code != 5 {
		t.Errorf("%s", a)
	}
	p.nothing()
}

// TestABatchTicks ticks what is done, but for what a person has worded otherwise meanwhile, and says of a second call
// that there was nothing left to do.
func TestABatchTicks(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("worker", `task=$(cat); case $task in
two) sed 's/three/three, but larger/; s/^Words/Other words/' TASKS.md >new && mv new TASKS.md ;; esac
echo ok`)
	p.put("TASKS.md", "Words.\r\n\n- [ ] one\r\n- [ ] two\n- [ ]   three\n  - [ ] a part\n* [ ] one\n- four")
	args := []string{"--batch", "TASKS.md", "--agent", "worker"}
	p.contest(0, args...)
	const want = "Other words.\r\n\n- [x] one\r\n- [x] two\n- [ ]   three, but larger\n  - [ ] a part\n* [x] one\n- four"
	if is := p.read("TASKS.md"); is != want {
		t.Errorf("%q", is)
	}
	again := p.contest(0, args...)
	if len(again.Runs) != 2 || !strings.Contains(again.Stdout, `"before":true`) {
		t.Errorf("it does not say what was done before: %s", again.answer)
	}
	p.put("TASKS.md", "- [x] one\n- [X] two\n")
	if a := p.call(append([]string{"run"}, args...)...); a.Code != 0 || !strings.Contains(a.Stdout, `"effect":"noop"`) {
		t.Errorf("%s", a)
	}
	p.nothing()
}

// TestComments sends comments on what a run has changed: in the session, where the agent can resume that, and else
// with the task.
func TestComments(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >>said.txt; echo one >new.txt; echo ok`).
		model(`[{"write":{"path":"new.txt","content":"one\ntwo\n"}},{"say":"It is written."},{"say":"You said: ${input}"}]`)
	wrote := p.call("run", "--agent", "native", "-m", "m", "--provider", "openai", "--yolo", "--fork", "-p", "the task")
	wrote.is(t, 0, "succeeded", "done")
	bad := p.call("runs", "retry", wrote.Data.ID, "--comment", "new.txt:3=no such line")
	if bad.Code != 2 || !strings.Contains(bad.Stdout, "runs diff") {
		t.Errorf("%s", bad)
	}
	if a := p.call("runs", "retry", wrote.Data.ID, "--comment", "new.txt=no line"); a.Code != 2 {
		t.Errorf("%s", a)
	}
	a := p.call("runs", "retry", wrote.Data.ID, "--comment", "new.txt:2=Say three.", "--comment",
		p.work+"/new.txt:1=Fine.", "--provider", "openai")
	if a.Code != 0 || a.Data.Session != wrote.Data.Session || !strings.Contains(a.Data.Text.Value,
		"new.txt:2\n> +two\nSay three.\n\nnew.txt:1\n> +one\nFine.") ||
		strings.Contains(a.Data.Text.Value, "the task") || !strings.Contains(a.Stdout, `"fork":"work-1"`) {
		t.Errorf("%s", a)
	}
	first := p.run("scribe", "--yolo", "--fork")
	next := p.call("runs", "retry", first.Data.ID, "--comment", "new.txt:1=Another word.")
	next.is(t, 0, "succeeded", "done")
	p.fork(0, "runs", "apply", next.Data.ID)
	if is := p.read("said.txt"); strings.Count(is, "the task") != 2 || !strings.Contains(is, "> +one\nAnother word.") {
		t.Errorf("%s", is)
	}
	p.nothing()
}
