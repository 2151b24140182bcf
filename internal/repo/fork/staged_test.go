package fork_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// stages is what a person stages that the files of the workspace do not have.
const stages = `printf 'one\nSTAGED\nthree\n' >mine; git add mine; printf 'one\ntwo\nthree\n' >mine
	echo new >added; git add added`

// newStaging is a ground with a fork that has a commit.
func newStaging(t testing.TB, tier fork.Tier) (*ground, *fork.Fork) {
	g := newGround(t)
	g.must(g.dir, `git init -q -b main; printf 'one\ntwo\nthree\n' >mine; echo 1 >f; git add .; git commit -qm first
		git branch other`)
	f := g.make("try", tier)
	g.run(f, "echo 2 >f; echo theirs >theirs; git add .; git commit -qm second")
	return g, f
}

// hasStaged reports that the index has what the person has staged, and how the branches are.
func (g *ground) hasStaged(wanted string) {
	g.t.Helper()
	got := g.sh(g.dir, "git diff --cached --name-status --diff-filter=AM -- mine added; git show :mine | sed -n 2p")
	if got != "A\tadded\nM\tmine\nSTAGED\n" {
		g.t.Errorf("staged: %s", got)
	}
	if got := g.sh(g.dir, "git symbolic-ref HEAD; git log -1 --format=%s main; git fsck 2>&1 | grep missing"); got !=
		wanted {
		g.t.Errorf("got %s, want %s", got, wanted)
	}
}

// What a person stages after an Apply that did not get to its end stays staged, and the commits become a branch.
func TestApplyAgainKeepsWhatIsStaged(t *testing.T) {
	hermetic.Long(t)
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g, f := newStaging(t, tier)
		g.fail(f)
		g.must(g.dir, stages)
		out := g.apply(f)
		if !out.Resumed || out.InPlace || out.Branch != "fork/try" || out.Commits != 1 {
			t.Errorf("%+v", out)
		}
		g.hasStaged("refs/heads/main\nfirst\n")
	})
}

// fail has an Apply that brings the files, but cannot move the branch.
func (g *ground) fail(f *fork.Fork) {
	g.t.Helper()
	g.must(g.dir, "touch .git/refs/heads/main.lock")
	if _, err := f.Apply(g.t.Context(), g.snapshots, fork.Request{}); !errors.Is(err, fault.Conflicting) {
		g.t.Fatal(err)
	}
	g.must(g.dir, "rm .git/refs/heads/main.lock")
	if got := g.sh(g.dir, "cat f; git log -1 --format=%s; find . -name '.omniagent*' -o -name '*.lock'"); got !=
		"2\nfirst\n" {
		g.t.Fatal(got)
	}
}

// A conflict that an Apply has marked, which did not get to its end, is told by the next one too.
func TestApplyAgainTellsConflicts(t *testing.T) {
	g, f := newStaging(t, "")
	g.run(f, "echo theirs >mine; git commit -qam mine")
	g.must(g.dir, "echo ours >mine")
	g.must(g.dir, "touch .git/refs/heads/main.lock")
	if _, err := f.Apply(t.Context(), g.snapshots, fork.Request{}); err == nil {
		t.Fatal("it moves a branch that is locked")
	}
	g.must(g.dir, "rm .git/refs/heads/main.lock")
	out := g.apply(f)
	if len(out.Conflicts) != 1 || out.Conflicts[0].Path != "mine" || !out.Conflicts[0].Marked || !out.Resumed {
		t.Errorf("%+v", out)
	}
	if got := g.read("mine"); got != "<<<<<<< workspace\nours\n=======\ntheirs\n>>>>>>> fork try\n" {
		t.Errorf("%q", got)
	}
}

// Whatever an Apply that was killed has done, the next one completes it.
func TestApplyAgainAfterTheIndex(t *testing.T) {
	hermetic.Long(t)
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g, f := newStaging(t, tier)
		g.fail(f)
		g.must(g.dir, "git add .") // as if the index were replaced
		if out := g.apply(f); !out.InPlace || out.Branch != "main" {
			t.Errorf("%+v", out)
		}
		if got := g.sh(g.dir, "git status --porcelain; git log -1 --format=%s"); got != "second\n" {
			t.Error(got)
		}
	})
}

// What a person stages after an Apply that was killed after it had moved the branch stays too, also in the next one.
func TestApplyAgainAfterTheBranch(t *testing.T) {
	hermetic.Long(t)
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g, f := newStaging(t, tier)
		g.fail(f)
		g.must(g.dir, "git add .; git reset -q --soft "+strings.TrimSpace(g.run(f, "git rev-parse HEAD")))
		g.must(g.dir, stages)
		if out := g.apply(f); !out.InPlace || out.Branch != "main" {
			t.Errorf("%+v", out)
		}
		g.hasStaged("refs/heads/main\nsecond\n")
		g.run(f, "echo 3 >f; git commit -qam third")
		if out := g.apply(f); out.InPlace || out.Branch != "fork/try" || out.Commits != 1 {
			t.Errorf("%+v", out)
		}
		g.hasStaged("refs/heads/main\nsecond\n")
	})
}

// What a person does in the repository while an Apply is at work stays, and the next one brings the commits.
func TestApplyWhileGitIsUsed(t *testing.T) {
	hermetic.Long(t)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ script, heads string }{
		"staged":   {stages, "refs/heads/main\nfirst\n"},
		"switched": {"git checkout -q other", "refs/heads/other\nfirst\n"},
		"merges":   {"git rev-parse HEAD >.git/MERGE_HEAD", "refs/heads/main\nfirst\n"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			t.Setenv("PATH", bin+":"+os.Getenv("PATH")) // from here on, the store looks for git there first
			g, f := newStaging(t, "")
			// Apply runs git ls-tree when the plan is complete.
			script := "#!/bin/sh\ncase \" $* \" in *' ls-tree '*) PATH=${PATH#*:}; (cd " + g.dir + "\n" + c.script +
				"\n);; esac\nexec " + real + " \"$@\"\n"
			if err := hermetic.WriteProgram(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			out, err := f.Apply(t.Context(), g.snapshots, fork.Request{})
			if !errors.Is(err, fault.Conflicting) || strings.Count(err.Error(), "has changed during this call") != 1 {
				t.Errorf("%v %+v", err, out)
			}
			if err := os.Remove(filepath.Join(bin, "git")); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if name == "staged" {
					g.hasStaged(c.heads)
				} else if got := g.sh(g.dir, "git symbolic-ref HEAD; git log -1 --format=%s main; git ls-files"); got !=
					c.heads+"f\nmine\n" {
					t.Error(got)
				}
				if got := g.sh(g.dir, "cat f; find . -name '.omniagent*' -o -name '*.lock'"); got != "2\n" {
					t.Error(got)
				}
				out := g.apply(f)
				if out.InPlace || out.Branch != "" && (out.Branch != "fork/try" || out.Commits != 1) {
					t.Errorf("%+v", out)
				}
			}
			if got := g.sh(g.dir, "git log --format=%s fork/try"); got != "second\nfirst\n" {
				t.Error(got)
			}
		})
	}
}

// What a person changes between an Apply that was killed and the next one, which ends its turn, is not a part of it.
func TestApplyAgainIsNotWhatAPersonDidMeanwhile(t *testing.T) {
	g, f := newStaging(t, "")
	g.fail(f)
	turn, err := g.snapshots.Begin(t.Context(), undo.Origin{Dir: g.dir})
	if err != nil {
		t.Fatal(err)
	}
	turn.Leave() // as the process of that Apply would, had it been killed
	g.must(g.dir, `sed -i 's/"turn": *"[^"]*"/"turn":"`+turn.ID()+`"/' ../state/forks/try/apply.json
		echo mine >>mine; echo mine >new`)
	if out := g.apply(f); out.Turn != turn.ID() {
		t.Fatalf("%+v", out)
	}
	back, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir, ID: turn.ID()})
	if err != nil {
		t.Fatal(err)
	}
	if got := g.sh(g.dir, "tail -n 1 mine new; git log -1 --format=%s"); got !=
		"==> mine <==\nmine\n\n==> new <==\nmine\nfirst\n" {
		t.Errorf("%s\n%+v", got, back)
	}
}
