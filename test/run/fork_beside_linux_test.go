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
