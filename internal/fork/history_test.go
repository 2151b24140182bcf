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
