package run

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestOthersWorkBesideAFork: what a person changes in the workspace shows in the fork, and is not what the run has
// changed. What the agent committed is shown as text, also after the fork was deleted, and by the next run in the fork.
func TestOthersWorkBesideAFork(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null
if test -e new.txt; then
	rm new.txt; sed -i s/three/THREE/ lines.txt; echo said; exit
fi
echo agent >new.txt; sed -i s/two/TWO/ lines.txt; rm gone.txt; mv from.txt to.txt; mkdir -p dir; echo 1 >dir/one.txt
git add -A; git commit -qm agent
: >$HOME/began
while ! test -e $HOME/changed; do sleep 0.02; done
echo said`)
	for _, name := range []string{"notes.txt", "others.txt", "gone.txt", "from.txt"} {
		p.put(name, "of "+name+"\n")
	}
	p.put("lines.txt", "one\ntwo\nthree\n")
	p.git("init", "-q", "-b", "main")
	p.git("config", "user.name", "A")
	p.git("config", "user.email", "a@example.org")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	var person sync.WaitGroup
	person.Go(func() {
		for began := false; !began; time.Sleep(5 * time.Millisecond) {
			_, err := os.Stat(filepath.Join(p.home, "began"))
			began = err == nil
		}
		line := "mkdir mine; echo mine >mine/new.txt; rm others.txt; echo mine >>notes.txt; : >$HOME/changed"
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = p.work, p.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	a := p.run("scribe", "--yolo", "--fork")
	person.Wait()
	a.is(t, 0, "succeeded", "done")
	want := []string{
		"added dir/one.txt", "added new.txt", "added to.txt",
		"deleted from.txt", "deleted gone.txt", "modified lines.txt",
	}
	if got := p.differs(a.Data.ID); !slices.Equal(got, want) {
		t.Errorf("the run has changed %q", got)
	}
	if d := p.fork(0, "fork", "diff", "work-1"); len(d.Data.Files) != len(want)+1 { // and the directory
		t.Errorf("%+v", d)
	}
	patch := p.printed("runs", "apply", a.Data.ID, "--as", "patch", "--output", "plain")
	if strings.Contains(patch, "Binary") || strings.Contains(patch, "mine") || !strings.Contains(patch, "+TWO\n") {
		t.Error(patch)
	}
	p.put(filepath.Join(p.home, "patch"), patch)
	p.git("apply", "--check", filepath.Join(p.home, "patch"))

	again := p.call("runs", "retry", a.Data.ID)
	again.is(t, 0, "succeeded", "done")
	if got := p.differs(again.Data.ID); !slices.Equal(got, []string{"deleted new.txt", "modified lines.txt"}) {
		t.Errorf("the second run has changed %q", got)
	}
	p.fork(0, "fork", "delete", "work-1", "--confirm-destructive")
	for id, line := range map[string]string{a.Data.ID: "+agent\n", again.Data.ID: "-agent\n"} {
		if got := p.printed("runs", "diff", id); strings.Contains(got, "Binary") || !strings.Contains(got, line) {
			t.Errorf("%s: %s", id, got)
		}
	}
}

// differs is what a run has changed.
func (p *place) differs(id string) (all []string) {
	p.t.Helper()
	for line := range strings.Lines(p.printed("runs", "diff", id, "--json")) {
		var f struct{ Path, Status string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			p.t.Fatalf("%v: %s", err, line)
		}
		name, err := filepath.Rel(p.work, f.Path)
		if err != nil {
			p.t.Error(err)
		}
		all = append(all, f.Status+" "+name)
	}
	slices.Sort(all)
	return all
}

// TestWhatACheckMadeStays: what comes home is what the run has changed, and not what its check made or changed of it.
func TestWhatACheckMadeStays(t *testing.T) {
	t.Parallel()
	check := `mkdir build out; echo made >build/o; echo made >out/o; sed -i s/agent/formatted/ a.txt; rm b.txt gone2.txt;
echo made >gone1.txt; echo made >>kept.txt; chmod 700 lines.txt; mkdir c; mv c.txt c/c.txt; ln -sf kept.txt link; git add -N out`
	p := newPlace(t).agent("scribe", `cat >/dev/null
if test -e a.txt; then echo more >>lines.txt; rm -f link; ln -s b.txt link; echo said; exit; fi
echo agent >a.txt; echo agent >b.txt; echo agent >c.txt; rm gone1.txt; echo agent >>lines.txt; ln -s a.txt link; echo said`)
	for _, name := range []string{"lines.txt", "gone1.txt", "gone2.txt", "kept.txt"} {
		p.put(name, "of "+name+"\n")
	}
	p.put(".gitignore", "build/\n")
	p.git("init", "-q", "-b", "main")
	p.git("config", "user.name", "A")
	p.git("config", "user.email", "a@example.org")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	a := p.run("scribe", "--yolo", "--fork", "--check-outside", "--check", check)
	a.is(t, 0, "succeeded", "done")
	want := "D gone1.txt\n M lines.txt\n?? a.txt\n?? b.txt\n?? c.txt\n?? link"
	if got := p.differs(a.Data.ID); len(got) != 6 {
		t.Errorf("the run has changed %q", got)
	}
	p.fork(0, "runs", "apply", a.Data.ID, "--as", "branch")
	if got := p.git("diff", "--name-status", "main", "fork/work-1"); got !=
		"A\ta.txt\nA\tb.txt\nA\tc.txt\nD\tgone1.txt\nM\tlines.txt\nA\tlink" {
		t.Errorf("the branch has %q", got)
	}
	if d := p.fork(0, "runs", "apply", a.Data.ID, "--dry-run"); len(d.Data.Files) != 6 {
		t.Errorf("%+v", d)
	}
	p.fork(0, "runs", "apply", a.Data.ID)
	mode, err := os.Stat(filepath.Join(p.work, "lines.txt"))
	if err != nil || mode.Mode().Perm() == 0o700 {
		t.Errorf("%v: %v", mode.Mode(), err)
	}
	if got := p.git("status", "--porcelain"); got != want || p.read("a.txt") != "agent\n" || p.read("build/o") != "" {
		t.Errorf("status: %q; a.txt: %q", got, p.read("a.txt"))
	}
	p.fork(0, "undo")

	again := p.call("runs", "retry", a.Data.ID)
	again.is(t, 0, "succeeded", "done")
	p.fork(0, "runs", "apply", again.Data.ID)
	to, err := os.Readlink(filepath.Join(p.work, "link"))
	if got := p.git("status", "--porcelain"); got != want || p.read("a.txt") != "agent\n" || to != "b.txt" ||
		!strings.HasSuffix(p.read("lines.txt"), "agent\nmore\n") {
		t.Errorf("status: %q; a.txt: %q; link: %s, %v; %q", got, p.read("a.txt"), to, err, p.read("lines.txt"))
	}
}

// TestACheckInTheWay: what the run left comes home also where its check put a link in place of a directory. Where that
// cannot be told, nothing does.
func TestACheckInTheWay(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("scribe", `cat >/dev/null; mkdir -p d; echo agent >d/a.txt; echo agent >b.txt; echo said`)
	p.put("../else/a.txt", "a person's\n")
	p.put("b.txt", "before\n")
	p.git("init", "-q")
	check := "echo check >b.txt; rm -r d; ln -s " + filepath.Join(filepath.Dir(p.work), "else") + " d"
	a := p.run("scribe", "--yolo", "--fork", "--check-outside", "--check", check)
	a.is(t, 0, "succeeded", "done")
	p.fork(0, "runs", "apply", a.Data.ID)
	if p.read("d/a.txt") != "agent\n" || p.read("b.txt") != "agent\n" {
		t.Errorf("%q, %q", p.read("d/a.txt"), p.read("b.txt"))
	}
	p.fork(0, "undo")
	of := filepath.Join(p.home, ".local/state/omniagent/runs", a.Data.ID)
	if err := os.RemoveAll(filepath.Join(of, "aside")); err != nil {
		t.Fatal(err)
	}
	p.fork(6, "runs", "apply", a.Data.ID)

	out, err := p.command("run", "--agent", "scribe", "--yolo", "--fork", "-p", "go", "--check-outside", "--check",
		"git add b.txt; git -c user.name=a -c user.email=a@b commit -qm check").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "the check committed to ") {
		t.Errorf("%v %s", err, out)
	}

	p.put("b.txt", "before\n")
	if out, err := p.command("run", "--agent", "scribe", "--yolo", "--fork", "-p", "go", "--check-outside", "--check",
		"echo check >b.txt; kill -9 $PPID").CombinedOutput(); err == nil {
		t.Fatalf("%s", out)
	}
	p.fork(6, "runs", "apply", p.newest())
	if got := p.read("b.txt"); got != "before\n" {
		t.Errorf("%q", got)
	}
}
