package fork_test

import (
	"strings"
	"testing"

	"omniagent/internal/fork"
	"omniagent/internal/hermetic"
)

// newHistory is a ground with three commits on main.
func newHistory(t testing.TB) *ground {
	g := newGround(t)
	g.must(g.dir, "git init -q -b main; for i in 1 2 3; do echo $i >>f; git add .; git commit -qm $i; done")
	return g
}

// An apply never takes commits off the person's branch, whatever the fork has done to it.
func TestApplyMovesABranchOnlyForward(t *testing.T) {
	hermetic.Long(t)
	for name, c := range map[string]struct{ script, log string }{
		"reset":     {"git reset -q --hard HEAD~2", "1\n"},
		"amended":   {"git commit -q --amend -m amended", "amended\n2\n1\n"},
		"a new one": {"rm -rf .git; git init -q -b main; git add .; git commit -qm new", "new\n"},
		"squashed":  {"git checkout -q --orphan tmp; git commit -qm one; git branch -M main", "one\n"},
		"rebased":   {"git reset -q --hard HEAD~1; echo 4 >g; git add .; git commit -qm 4", "4\n2\n1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			tiers(t, func(t *testing.T, tier fork.Tier) {
				g := newHistory(t)
				was := g.sh(g.dir, "git rev-parse main")
				f := g.make("try", tier)
				g.run(f, c.script)
				out := g.apply(f)
				if out.InPlace || out.Branch != "fork/try" || !out.Rewrote {
					t.Errorf("%+v", out)
				}
				if got := g.sh(g.dir, "git rev-parse main"); got != was {
					t.Errorf("main is at %s", got)
				}
				if got := g.sh(g.dir, "git log --format=%s "+out.Branch); got != c.log {
					t.Errorf("%s has %q, want %q", out.Branch, got, c.log)
				}
				if again := g.apply(f); again.Branch != "" || again.Rewrote || len(again.Applied) > 0 {
					t.Errorf("again: %+v", again)
				}
				if got := g.sh(g.dir, "git fsck 2>&1"); strings.Contains(got, "missing") {
					t.Error(got)
				}
			})
		})
	}
}

// An index that has entries in another file stays: the commits become a branch.
func TestApplyWithASplitIndex(t *testing.T) {
	for name, c := range map[string]struct{ here, there string }{
		"of both":     {"git config core.splitIndex true; git update-index --split-index", ""},
		"of the fork": {"", "git update-index --split-index"},
		"of the workspace": {
			"git config core.splitIndex true; git update-index --split-index",
			"git config core.splitIndex false; git update-index --no-split-index",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tiers(t, func(t *testing.T, tier fork.Tier) {
				g := newHistory(t)
				g.must(g.dir, c.here)
				f := g.make("try", tier)
				g.run(f, c.there+"\n echo 4 >g; git add .; git commit -qm 4; echo 5 >h; git add h")
				out := g.apply(f)
				if out.Commits != 1 || out.Branch != "fork/try" || out.InPlace || out.Rewrote {
					t.Errorf("%+v", out)
				}
				if got := g.sh(g.dir, "git log --format=%s fork/try; git status --porcelain"); got !=
					"4\n3\n2\n1\n?? g\n?? h\n" {
					t.Error(got)
				}
			})
		})
	}
}

// A branch for the fork's commits gets a name that can exist beside those that are there, loose or packed.
func TestApplyBesideBranchesOfAnyName(t *testing.T) {
	hermetic.Long(t)
	const commits, more = "echo 4 >g; git add .; git commit -qm 4", "true"
	for name, c := range map[string]struct{ here, there, branch string }{
		"fork":            {"git branch fork", more, "fork-try"},
		"fork, and ours":  {"git branch fork; git branch fork-try HEAD~1", more, "fork-try"},
		"ours":            {"git checkout -qb fork/try; git commit -qm x --allow-empty", more, "fork/try-2"},
		"below ours":      {"git branch fork/try/try", more, "fork/try-2"},
		"in main":         {"", "git checkout -q --detach; git branch -D main; git checkout -qb main/x", "fork/try"},
		"above a new one": {"git branch a/b", "git branch -D a/b; git checkout -qb a", "fork/try"},
	} {
		for _, pack := range []string{"", "; git pack-refs --all"} {
			t.Run(name+pack, func(t *testing.T) {
				g := newHistory(t)
				g.must(g.dir, c.here+"\n git checkout -q main")
				f := g.make("try", "")
				g.run(f, c.there+"\n"+commits)
				g.must(g.dir, "true"+pack)
				if c.there == more {
					g.must(g.dir, "echo mine >mine; git add mine") // so that it becomes a branch
				}
				was := g.sh(g.dir, "git for-each-ref")
				out := g.apply(f)
				if out.Branch != c.branch || out.InPlace || out.Commits != 1 {
					t.Errorf("%+v", out)
				}
				g.must(g.dir, "git clone -q . ../clone; git pack-refs --all; git -C ../clone log -1 origin/"+c.branch)
				g.must(g.dir, "git branch -D "+c.branch+" || true")
				if got := g.sh(g.dir, "git for-each-ref"); got != was && c.branch != "fork-try" {
					t.Errorf("%s\nand not\n%s", got, was)
				}
				g.must(g.dir, "echo 5 >g")
				if branch, _, err := f.Branch(t.Context(), "more"); err != nil || branch != c.branch {
					t.Errorf("%s: %v", branch, err)
				}
			})
		}
	}
}
