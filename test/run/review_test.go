//go:build unix

package run

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// reviewed is the answer of a review.
type reviewed struct {
	Data struct {
		Findings []struct {
			File, Severity, Title string
			Line                  int
			Placed                bool
		}
		Worst  string
		Whole  bool
		Unread []struct{ Value string }
		Files  int
		Run    string `json:"run_id"`
		SARIF  *string
	}
	Error    *struct{ Code string }
	Warnings []string
}

// warns reports whether a warning has a text.
func (r reviewed) warns(text string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

// changed makes the workspace a repository with a commit, and a change that is not committed.
func (p *place) changed() *place {
	p.t.Helper()
	p.put("a.txt", "one\ntwo\nthree\n")
	for _, args := range [][]string{
		{"init", "-q"},
		{"add", "a.txt"},
		{"-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "first"},
		{"branch", "trunk"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = p.work, p.env
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	p.put("a.txt", "one\nTWO\nthree\n")
	return p
}

// review calls the program; stdin may be nil.
func (p *place) review(stdin *string, args ...string) (code int, r reviewed, stderr string) {
	p.t.Helper()
	cmd := exec.Command(program, append([]string{"review", "--agent", "bot", "--json"}, args...)...)
	cmd.Dir, cmd.Env = p.work, p.env
	if stdin != nil {
		cmd.Stdin = strings.NewReader(*stdin)
	}
	var errs strings.Builder
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	if err := json.Unmarshal(out, &r); err != nil {
		p.t.Fatalf("%v: %s\n%s", err, out, errs.String())
	}
	return cmd.ProcessState.ExitCode(), r, errs.String()
}

const (
	onTwo   = `{"file":"a.txt","line":2,"severity":"warning","title":"It shouts.","detail":"Write it small."}`
	onNine  = `{"file":"a.txt","line":9,"severity":"error","title":"Not there.","detail":""}`
	atLast1 = `{"findings":1}`
)

// answers adds an agent that says so, whatever it is asked, and keeps the question.
func (p *place) answers(lines ...string) *place {
	p.t.Helper()
	p.put(filepath.Join(p.home, "answer"), strings.Join(lines, "\n")+"\n")
	return p.agent("bot", "cat > "+filepath.Join(p.home, "asked")+"; cat "+filepath.Join(p.home, "answer")+"\n")
}

// TestReview: the worst finding is the exit code, and the places are those of the diff.
func TestReview(t *testing.T) {
	for _, c := range []struct {
		name            string
		lines           []string
		args            []string
		code            int
		worst           string
		findings, lost  int
		whole, unplaced bool
	}{
		{"a warning", []string{onTwo, atLast1}, nil, 81, "warning", 1, 0, true, false},
		{"allowed", []string{onTwo, atLast1}, []string{"--fail-on", "error"}, 0, "warning", 1, 0, true, false},
		{
			"never",
			[]string{onTwo, onNine, `{"findings":2}`},
			[]string{"--fail-on", "never"},
			0, "error", 2, 0, true,
			true,
		},
		{"an error in no line of the diff", []string{onNine, atLast1}, nil, 82, "error", 1, 0, true, true},
		{"nothing", []string{`{"findings":0}`}, nil, 0, "none", 0, 0, true, false},
		{"prose", []string{"I found nothing.", `{"findings":0}`}, nil, 83, "none", 0, 1, false, false},
		{"prose and a warning", []string{"Look:", onTwo, atLast1}, nil, 81, "warning", 1, 1, false, false},
		{"cut short", []string{onTwo}, []string{"--fail-on", "error"}, 83, "warning", 1, 0, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).changed().answers(c.lines...)
			code, r, stderr := p.review(nil, append(c.args, "--approval", "prompt", "--base", "trunk")...)
			if code != c.code || r.Data.Worst != c.worst || len(r.Data.Findings) != c.findings ||
				len(r.Data.Unread) != c.lost || r.Data.Whole != c.whole || r.Data.Files != 1 {
				t.Errorf("%d %+v\n%s", code, r, stderr)
			}
			unplaced := false
			for _, f := range r.Data.Findings {
				unplaced = unplaced || !f.Placed
			}
			if unplaced != c.unplaced {
				t.Errorf("%+v", r.Data.Findings)
			}
			asked, err := os.ReadFile(filepath.Join(p.home, "asked"))
			if err != nil || !strings.Contains(string(asked), "+TWO") {
				t.Errorf("it was asked %s (%v)", asked, err)
			}
		})
	}
}

// TestReviewOfAnyDiff: a diff on standard input needs no repository, and the file has it in SARIF.
func TestReviewOfAnyDiff(t *testing.T) {
	p := newPlace(t).answers(strings.Replace(onTwo, "a.txt", "b.txt", 1), atLast1)
	diff := "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n" + strings.Repeat(" \n", 50_000)
	code, r, stderr := p.review(&diff, "--approval", "prompt", "--sarif", "out.sarif")
	if code != 81 || r.Data.SARIF == nil || len(r.Data.Findings) != 1 || !r.Data.Findings[0].Placed {
		t.Fatalf("%d %+v\n%s", code, r, stderr)
	}
	text, err := os.ReadFile(filepath.Join(p.work, "out.sarif"))
	if err != nil || !strings.Contains(string(text), `"startLine": 2`) || !strings.Contains(string(text), `"b.txt"`) {
		t.Errorf("%s %v", text, err)
	}
	for _, c := range []struct {
		diff string
		code int
		says string
	}{
		{"this is prose\n", 2, "something else than a diff"},
		{"", 0, "standard input is empty"},
	} {
		code, r, stderr := p.review(&c.diff)
		if code != c.code || !strings.Contains(stderr, c.says) && !r.warns(c.says) {
			t.Errorf("%q: %d %+v\n%s", c.diff, code, r, stderr)
		}
	}
}

// TestReviewOfNothing asks nobody.
func TestReviewOfNothing(t *testing.T) {
	p := newPlace(t).changed().answers(onTwo, atLast1)
	p.put("a.txt", "one\ntwo\nthree\n")
	code, r, stderr := p.review(nil)
	if _, err := os.Stat(filepath.Join(p.home, "asked")); code != 0 || err == nil || r.Data.Run != "" {
		t.Errorf("%d %+v %v\n%s", code, r, err, stderr)
	}
}

// TestReviewStartsNothingOfTheRepository: every program that a repository can name, and a submodule of it.
func TestReviewStartsNothingOfTheRepository(t *testing.T) {
	p := newPlace(t).answers(onTwo, atLast1).changed()
	mark := filepath.Join(p.home, "mark")
	evil := filepath.Join(p.work, "evil")
	p.put(evil, "#!/bin/sh\necho \"$0 $*\" >> "+mark+"\ncat\n")
	p.put(".gitattributes", "*.txt filter=x diff=x merge=x\n")
	p.put(".git/info/attributes", "a.txt filter=y\n")
	for _, name := range []string{"post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"} {
		p.put("hooks/"+name, "#!/bin/sh\necho "+name+" >> "+mark+"\n")
	}
	for _, file := range []string{
		"evil", "hooks/post-index-change", "hooks/fsmonitor-watchman",
		"hooks/post-checkout",
	} {
		if err := os.Chmod(filepath.Join(p.work, file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hostile := func(dir string) {
		for _, setting := range [][2]string{
			{"core.fsmonitor", evil},
			{"core.hooksPath", filepath.Join(p.work, "hooks")},
			{"core.pager", evil},
			{"core.sshCommand", evil},
			{"core.editor", evil},
			{"core.askPass", evil},
			{"diff.external", evil},
			{"pager.diff", evil},
			{"alias.diff", "!" + evil},
			{"alias.rev-parse", "!" + evil},
			{"filter.x.clean", evil},
			{"filter.x.process", evil},
			{"filter.x.smudge", evil},
			{
				"filter.x.required",
				"true",
			},
			{"filter.y.clean", evil},
			{"diff.x.command", evil},
			{"diff.x.textconv", evil},
			{"merge.x.driver", evil},
			{"interactive.diffFilter", evil},
			{"diff.submodule", "log"},
			{"diff.ignoreSubmodules", "none"},
			{"protocol.allow", "always"},
			{"protocol.ext.allow", "always"},
			{"gpg.program", evil},
			{"remote.o.url", "ext::" + evil},
			{"remote.o.promisor", "true"},
			{"extensions.partialClone", "o"},
		} {
			cmd := exec.Command("git", "config", setting[0], setting[1])
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	inner := filepath.Join(p.work, "sub")
	cmd := exec.Command("sh", "-c", `git init -q sub && cd sub && git config user.email a@b && git config user.name a &&
		echo one > b.txt && echo '*.txt filter=x' > .gitattributes && git add . && git commit -qm first &&
		cd .. && git add sub && git -c user.email=a@b -c user.name=a commit -qm sub && echo two > sub/b.txt`)
	cmd.Dir, cmd.Env = p.work, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	hostile(p.work)
	hostile(inner)
	plain := exec.Command("git", "diff", "HEAD")
	plain.Dir, plain.Env = p.work, p.env
	_ = plain.Run()
	if _, err := os.Stat(mark); err != nil {
		t.Fatal("git itself does not start the programs, so this test shows nothing")
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args        []string
		code, files int
	}{
		{[]string{"--dry-run"}, 0, 7}, // six are new
		{nil, 81, 7},
		{[]string{"--base", "trunk"}, 81, 8},
	} {
		code, r, stderr := p.review(nil, append(c.args, "--approval", "prompt")...)
		if code != c.code || r.Data.Files != c.files {
			t.Errorf("%v: %d %+v\n%s", c.args, code, r, stderr)
		}
		if text, err := os.ReadFile(mark); err == nil {
			t.Fatalf("%v started %s", c.args, text)
		}
	}
}

// TestReviewIsTheDiffOfGit: an index in two files, a working tree of another repository, SHA-256, and a subdirectory.
func TestReviewIsTheDiffOfGit(t *testing.T) {
	for name, script := range map[string]string{
		"split index":  `git init -q . && git config core.splitIndex true`,
		"sha256":       `git init -q --object-format=sha256 .`,
		"linked":       `git init -q ../first && cd ../first && git commit -q --allow-empty -m 0 && git worktree add -q -f ../work`,
		"file modes":   `git init -q . && git config core.fileMode false`,
		"subdirectory": `git init -q .. `,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).answers(onTwo, atLast1)
			cmd := exec.Command("sh", "-ec", script+"\n"+`cd "$WORK"; printf 'one\ntwo\n' > a.txt; git add a.txt
				git commit -qm 1; git update-index --split-index 2>&1 || true; printf 'one\nTWO\n' > a.txt; chmod +x a.txt
				exclude=$(git rev-parse --git-path info/exclude); mkdir -p "$(dirname "$exclude")"
				printf 'home\nbin\ntmp\n.*\nignored\n' > "$exclude"; mkdir 'd*'; echo 'secret bug' > 'd*/[n]ew.txt'; echo no > ignored
				git init -q inner; echo no > inner/file`)
			cmd.Dir = p.work
			cmd.Env = append(p.env, "WORK="+p.work, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a",
				"GIT_COMMITTER_EMAIL=a")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			state := func() string {
				cmd := exec.Command("sh", "-c", "git status --short; git count-objects")
				cmd.Dir, cmd.Env = p.work, p.env
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Error(err)
				}
				return string(out)
			}
			before := state()
			code, r, stderr := p.review(nil, "--approval", "prompt")
			if code != 81 || r.Data.Files != 2 || !r.warns("inner/") {
				t.Fatalf("%d %+v\n%s", code, r, stderr)
			}
			if after := state(); after != before {
				t.Errorf("the review changed the repository:\n%s\n%s", before, after)
			}
			add := exec.Command("git", "add", "-N", "d*/[n]ew.txt")
			add.Dir, add.Env = p.work, p.env
			if out, err := add.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			plain := exec.Command("git", "diff", "HEAD")
			plain.Dir, plain.Env = p.work, p.env
			want, err := plain.Output()
			asked, _ := os.ReadFile(filepath.Join(p.home, "asked"))
			for line := range strings.Lines(string(want)) {
				if !strings.Contains(string(asked), line) {
					t.Errorf("%v: the agent was not asked about %q\n%s", err, line, asked)
				}
			}
		})
	}
}

// TestReviewOfWhatChangedAtOnce: a file that changed in the second in which git wrote its index, without another size,
// looks to git as it was, unless the index is as old as it is.
func TestReviewOfWhatChangedAtOnce(t *testing.T) {
	p := newPlace(t).answers(onTwo, atLast1)
	file, index := filepath.Join(p.work, "a.txt"), filepath.Join(p.work, ".git/index")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	within := false // one second, which is what git compares
	for range 10 {
		began := time.Now().Unix()
		if err := os.RemoveAll(filepath.Dir(index)); err != nil {
			t.Fatal(err)
		}
		p.changed()
		p.put("a.txt", "one\ntwo\nthree\n")
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
		add := exec.Command("git", "add", "a.txt")
		if add.Dir, add.Env = p.work, p.env; add.Run() != nil {
			t.Fatal("git add fails")
		}
		err := os.WriteFile(file, []byte("one\nTWO\nthree\n"), 0o755) // the same file, which put would replace
		if err := cmp.Or(err, os.Chtimes(file, old, old), os.Chtimes(index, old, old)); err != nil {
			t.Fatal(err)
		}
		if within = time.Now().Unix() == began; within {
			break
		}
	}
	if !within {
		t.Skip("this machine needs more than a second for five commands of git")
	}
	p.put("new.txt", "new\n")
	if code, r, stderr := p.review(nil, "--approval", "prompt"); code != 81 || r.Data.Files != 2 {
		t.Fatalf("%d %+v\n%s", code, r, stderr)
	}
	if asked, err := os.ReadFile(filepath.Join(p.home, "asked")); !strings.Contains(string(asked), "+TWO") {
		t.Errorf("%v: the agent was not asked about it\n%s", err, asked)
	}
}

// TestReviewFails: an agent that fails is told as in every run, and no review is a success.
func TestReviewFails(t *testing.T) {
	p := newPlace(t).changed().agent("bot", "cat > /dev/null; exit 7\n")
	code, r, stderr := p.review(nil, "--approval", "prompt")
	if code != 1 || r.Error == nil || r.Data.Whole || r.Data.Run == "" {
		t.Errorf("%d %+v\n%s", code, r, stderr)
	}
}

// TestReviewByTheNativeAgent: the agent that needs only a key of a model API, as the workflows in docs/recipes call it.
func TestReviewByTheNativeAgent(t *testing.T) {
	p := newPlace(t).changed().model(`[{"say":` + quoted(onTwo+"\n"+atLast1) + `}]`)
	cmd := exec.Command(program, "review", "--agent", "native", "--provider", "openai", "--model", "m", "--base",
		"trunk",
		"--fail-on", "error", "--output", "plain")
	cmd.Dir, cmd.Env = p.work, p.env
	out, err := cmd.CombinedOutput()
	if err != nil ||
		!strings.Contains(string(out), "a.txt:2: warning: It shouts.\n  Write it small.\n1 finding in 1 file") {
		t.Errorf("%v\n%s", err, out)
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}
