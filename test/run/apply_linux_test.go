package run

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// git calls git in the workspace.
func (p *place) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
	cmd.Dir, cmd.Env = p.work, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// printed is what a command prints that has no envelope.
func (p *place) printed(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).Output()
	if err != nil {
		p.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// forkOf runs an agent in a fork of its own.
func (p *place) forkOf(agent string) (run string) {
	p.t.Helper()
	a := p.run(agent, "--yolo", "--fork")
	a.is(p.t, 0, "succeeded", "done")
	return a.Data.ID
}

// TestWhatTwoRunsDifferIn compares two runs in forks, and brings one home in each way.
func TestWhatTwoRunsDifferIn(t *testing.T) {
	t.Parallel()
	p := newPlace(t).
		agent("one", `cat >/dev/null; echo one >both.txt; echo 1 >only.txt; sed -i s/a/A/ lines.txt; echo ok`).
		agent("two", `cat >/dev/null; echo two >both.txt; sed -i s/c/C/ lines.txt; echo ok`)
	p.put("lines.txt", "a\nb\nc\n")
	p.git("init", "-q", "-b", "main")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	one, two := p.forkOf("one"), p.forkOf("two")
	files := map[string]string{}
	for line := range strings.Lines(p.printed("runs", "diff", one, two, "--json")) {
		var f struct{ Path, Status string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		name, err := filepath.Rel(p.work, f.Path)
		if err != nil {
			t.Error(err)
		}
		files[name] = f.Status
	}
	if len(files) != 3 || files["only.txt"] != "deleted" || files["both.txt"] != "modified" {
		t.Errorf("%v", files)
	}
	if text := p.printed("runs", "diff", one, two); !strings.Contains(text, "-one\n+two\n") ||
		!strings.Contains(text, "-A\n+a\n") || !strings.Contains(text, "+C\n") {
		t.Error(text)
	}
	if text := p.printed("runs", "diff", one, "--json"); strings.Count(text, "\n") != 3 {
		t.Error(text)
	}

	var d struct {
		Data struct{ Patch struct{ Value string } }
	}
	a := p.call("runs", "apply", one, "--as", "patch")
	if err := json.Unmarshal([]byte(a.Stdout), &d); err != nil || !strings.Contains(d.Data.Patch.Value, "+one") {
		t.Errorf("%v: %s", err, a)
	}
	p.fork(0, "runs", "apply", one, "--as", "branch")
	if got := p.git("show", "fork/work-1:both.txt"); got != "one" {
		t.Errorf("the branch has %q", got)
	}
	if got := p.git("status", "--porcelain"); got != "" || p.git("rev-list", "--count", "main..fork/work-1") != "1" {
		t.Errorf("status: %s", got)
	}
	p.fork(0, "runs", "apply", one, "--as", "branch")
	if got := p.git("branch", "--format=%(refname:short)"); got != "fork/work-1\nmain" {
		t.Errorf("branches: %s", got)
	}

	if d := p.fork(0, "runs", "apply", one); len(d.Data.Files) != 3 || d.Data.Turn == "" {
		t.Errorf("%+v", d)
	}
	d2 := p.fork(3, "runs", "apply", two) // both wrote both.txt
	if p.read("lines.txt") != "A\nb\nC\n" || !strings.Contains(p.read("both.txt"), "<<<<<<<") || d2.Error == nil {
		t.Errorf("%+v: %q, %q", d2, p.read("lines.txt"), p.read("both.txt"))
	}
	again := p.fork(3, "runs", "apply", two)
	if len(again.Data.Files) != 1 || again.Data.Files[0].Result != "kept" || again.Data.Turn != "" {
		t.Errorf("the marks still stand: %+v", again)
	}
	marked := p.read("both.txt")
	p.put("both.txt", "one and two\n")
	p.fork(0, "runs", "apply", two)
	p.put("both.txt", marked)
	p.fork(0, "undo")
	p.fork(0, "undo")
	if got := p.git("status", "--porcelain"); got != "" {
		t.Errorf("status: %s", got)
	}

	plain := p.run("one", "--yolo")
	p.fork(5, "runs", "apply", plain.Data.ID)
	if out, err := p.command("runs", "diff", one, plain.Data.ID).Output(); err == nil ||
		!strings.Contains(string(out), "NOT_FOUND") {
		t.Errorf("%v: %s", err, out)
	}
	p.fork(5, "runs", "apply", "run-nobody")
	p.nothing()
}

// TestAPatchIsForGit: the patch has every byte of the files, whatever could not be shown on a screen.
func TestAPatchIsForGit(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("one", `cat >/dev/null
printf 'x\r\nZ\r\n' >crlf.txt
printf 'a\r\n\033[31m\f\001 caf\351\n' >bytes.txt
echo 'key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"' >secret.txt
echo ok`)
	p.put("crlf.txt", "x\r\ny\r\n")
	p.git("init", "-q", "-b", "main")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	one := p.forkOf("one")
	want := map[string]string{
		"crlf.txt": "x\r\nZ\r\n", "bytes.txt": "a\r\n\x1b[31m\f\x01 caf\xe9\n",
		"secret.txt": "key = \"sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n",
	}
	name := p.fork(0, "fork", "list").Data.Forks[0].Name
	for _, args := range [][]string{{"runs", "apply", one, "--as", "patch"}, {"fork", "diff", name, "--patch"}} {
		cmd := p.command(append(args, "--output", "plain")...)
		var said bytes.Buffer
		cmd.Stderr = &said
		patch, err := cmd.Output()
		if err != nil || said.Len() > 0 {
			t.Errorf("%v: %s", err, said.String())
		}
		p.put(filepath.Join(p.home, "patch"), string(patch))
		p.git("apply", "--whitespace=nowarn", filepath.Join(p.home, "patch"))
		for name, content := range want {
			if got := p.read(name); got != content {
				t.Errorf("%s: %s is %q", args, name, got)
			}
		}
		p.git("reset", "-q", "--hard")
		p.git("clean", "-fdq")
	}
	var d struct {
		Data struct{ Patch struct{ Value string } }
	}
	a := p.call("runs", "apply", one, "--as", "patch")
	if err := json.Unmarshal([]byte(a.Stdout), &d); err != nil || !strings.Contains(d.Data.Patch.Value, "+Z\r\n") {
		t.Errorf("%v: %s", err, a)
	}
}

// TestABranchLeavesNestedRepositoriesOut, and says so.
func TestABranchLeavesNestedRepositoriesOut(t *testing.T) {
	t.Parallel()
	p := newPlace(t).agent("one", `cat >/dev/null; echo 1 >new; mkdir made; cd made; git init -q; echo 2 >f; echo ok`)
	p.put("a", "a\n")
	p.git("init", "-q", "-b", "main")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	one := p.forkOf("one")
	for _, dry := range [][]string{{"--dry-run"}, nil} {
		a := p.call(append([]string{"runs", "apply", one, "--as", "branch"}, dry...)...)
		if a.Code != 0 || !strings.Contains(a.Stdout, "FORK_NESTED") || !strings.Contains(a.Stdout, "made") {
			t.Errorf("%s", a)
		}
	}
	if got := p.git("ls-tree", "-r", "--name-only", "fork/work-1"); got != "a\nnew" {
		t.Errorf("the branch has %q", got)
	}
}

// TestWhatTheAgentAddedToGitIsTakenBack: without walls the contents of its files decide whose they are, and those that
// the agent has just given to git are only in the repository.
func TestWhatTheAgentAddedToGitIsTakenBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("f", "1\n")
	p.git("init", "-q")
	p.git("add", "-A")
	p.git("commit", "-qm", "old")
	p.put("../script.json", `[{"shell":"echo its >> f; git add f"},{"say":"added"}]`)
	a := p.call("run", "--rehearse", "--script", "../script.json", "--sandbox", "off", "--yolo", "-p", "x")
	a.is(t, 0, "succeeded", "done")
	if a = p.call("undo"); p.read("f") != "1\n" || strings.Contains(a.Stdout, "calls say") {
		t.Errorf("%q %s", p.read("f"), a)
	}
	p.nothing()
}

// TestAnAppliedRunIsTakenBack names the run: what the latest turn is does not matter. What two runs differ in is what
// they made, also once both are applied.
func TestAnAppliedRunIsTakenBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t).
		agent("one", `cat >/dev/null; echo 1 >one.txt; sed -i s/a/A/ lines.txt; echo ok`).
		agent("two", `cat >/dev/null; echo 2 >two.txt; echo ok`)
	p.put("lines.txt", "a\nb\n")
	one, two := p.forkOf("one"), p.forkOf("two")
	if a := p.call("undo", "--run", one); a.Code != 5 || a.Error == nil ||
		a.Error.Suggestion != "omniagent runs apply "+one+" brings it home" ||
		!strings.HasSuffix(a.Error.Message, ", and no turn that is on record brought it home") {
		t.Errorf("%s", a)
	}
	want := p.printed("runs", "diff", one, two)
	for _, part := range []string{"-1\n", "-A\n+a\n", "+2\n"} {
		if !strings.Contains(want, part) {
			t.Errorf("no %q in:\n%s", part, want)
		}
	}
	said := p.printed("runs", "apply", one, "--output", "plain")
	p.fork(0, "runs", "apply", two)
	if got := p.printed("runs", "diff", one, two); got != want {
		t.Errorf("once both are applied:\n%s\nbefore:\n%s", got, want)
	}
	if back := p.printed("runs", "diff", two, one); !strings.Contains(back, "+1\n") ||
		!strings.Contains(back, "-a\n+A\n") || !strings.Contains(back, "-2\n") {
		t.Errorf("the other way round:\n%s", back)
	}
	_, line, _ := strings.Cut(said, "\n")
	shown := p.printed("runs", "show", one, "--output", "plain")
	if line != strings.TrimPrefix(lastLine(shown), "It was applied: ") || !strings.HasPrefix(line, "omniagent undo ") {
		t.Errorf("apply says %q, and show:\n%s", said, shown)
	}
	p.fork(0, "undo", "--run", one)
	if p.read("one.txt") != "" || p.read("lines.txt") != "a\nb\n" || p.read("two.txt") != "2\n" {
		t.Errorf("%q, %q, %q", p.read("one.txt"), p.read("lines.txt"), p.read("two.txt"))
	}
	if got := lastLine(p.printed("runs", "show", one, "--output", "plain")); !strings.HasPrefix(got,
		"It was applied, and taken back: omniagent undo ") {
		t.Errorf("show says %q", got)
	}
	if a := p.call("undo", "--run", one); a.Code != 5 || a.Error == nil ||
		a.Error.Suggestion != "omniagent redo takes that back" {
		t.Errorf("%s", a)
	}
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1] + "\n"
}
