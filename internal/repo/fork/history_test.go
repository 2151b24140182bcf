package fork_test

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the hash of git
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/testkit/hermetic"
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
	hermetic.Long(t)
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

// Commits whose history is incomplete stay in the fork, which is said, and the files come home.
func TestApplyOfAnIncompleteHistory(t *testing.T) {
	hermetic.Long(t)
	for name, script := range map[string]string{
		"a shallow clone": "git fetch -q --depth 1; git reset -q --hard origin/main",
		"a lost commit": "git commit -q --allow-empty -m lost; git commit -q --allow-empty -m last; " +
			"f=$(git rev-parse HEAD~1); rm -f .git/objects/$(echo $f | cut -c1-2)/$(echo $f | cut -c3-)",
	} {
		t.Run(name, func(t *testing.T) {
			tiers(t, func(t *testing.T, tier fork.Tier) {
				from := newHistory(t)
				g := newGround(t)
				g.must(g.dir, "git clone -q --depth 1 file://"+from.dir+" .")
				was := g.sh(g.dir, "git rev-parse main")
				from.must(from.dir, "for i in 4 5 6; do echo $i >>f; git commit -qam $i; done")
				f := g.make("try", tier)
				g.run(f, script+"\n echo 7 >g; git add g; git commit -qm 7; echo new >new; rm -f none")
				dry, err := f.Apply(t.Context(), g.snapshots, fork.Request{DryRun: true})
				if err != nil || reasons(dry)[".git"] == "" {
					t.Errorf("%v %+v", err, dry)
				}
				out := g.apply(f)
				if out.Commits != 0 || out.Branch != "" || len(out.Conflicts) != 1 ||
					!strings.Contains(reasons(out)[".git"], "stay in the fork") || g.read("new") != "new\n" {
					t.Errorf("%+v", out)
				}
				if got := g.sh(g.dir, "git rev-parse main; git fsck 2>&1 | grep missing"); got != was {
					t.Error(got)
				}
				if branch, _, err := f.Branch(t.Context(), "all"); !errors.Is(err, fault.Unsafe) {
					t.Errorf("%v: %s", err, branch)
				}
				g.must(g.dir, "git fetch -q --unshallow")
				if out = g.apply(f); name == "a shallow clone" && (out.Commits == 0 || len(out.Conflicts) > 0) {
					t.Errorf("once its history is here: %+v", out)
				}
			})
		})
	}
}

// TestApplyBringsNoHookInTheIndex: a program of the fork writes an index with an entry that git would make a hook of.
func TestApplyBringsNoHookInTheIndex(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		for name, entry := range map[string]string{
			"a hook": ".git/hooks/post-checkout", "in capitals": ".GIT/hooks/post-checkout",
			"of a submodule": "sub/.git/config_________", "elsewhere": "../../evil______________",
		} {
			g := newGround(t)
			g.must(g.dir, `git init -q -b main; echo 1 >f; git add .; git commit -qm first`)
			f := g.make("try", tier)
			g.run(f, `echo 2 >f; git commit -qam second; mkdir -p xgit/hooks
				echo "touch $PWD/ran" >xgit/hooks/post-checkout; git add xgit; rm -r xgit`)
			index := f.Real(filepath.Join(f.GitDir, "index"))
			data, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			text := bytes.Replace(data[:len(data)-sha1.Size], []byte("xgit/hooks/post-checkout"), []byte(entry), 1)
			sum := sha1.Sum(text) //nolint:gosec // the hash of git
			if err := os.WriteFile(index, append(text, sum[:]...), 0o600); err != nil {
				t.Fatal(err)
			}
			out := g.apply(f)
			listed := g.sh(g.dir, "git ls-files; cat f; git log --all --format=%s")
			if listed != "f\n2\nsecond\nfirst\n" || out.InPlace || out.Branch != "fork/try" {
				t.Errorf("%s: %s: %+v", name, listed, out)
			}
		}
	})
}

// TestApplyBringsNoHookInAnotherCase: where case does not count, .GIT is the directory of git.
func TestApplyBringsNoHookInAnotherCase(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newHistory(t)
		g.must(g.dir, "mkdir -p sub/.Git; echo mine >sub/.Git/config")
		f := g.make("try", tier)
		g.run(f, `mkdir -p .GIT/hooks; echo evil >.GIT/hooks/pre-commit; echo evil >sub/.Git/config; echo 1 >new
			rm -r sub/.Git; mkdir -p b/.gIT/hooks; echo evil >b/.gIT/config`)
		out := g.apply(f)
		if got := g.sh(g.dir, "find . -iname .git -not -name .git | xargs ls; cat sub/.Git/config"); got !=
			"config\nmine\n" || len(out.Applied) != 2 {
			t.Errorf("%s: %+v", got, out)
		}
	})
}

// TestApplyOfManyNames: the names that git lists of the workspace take more than a megabyte.
func TestApplyOfManyNames(t *testing.T) {
	g := newGround(t)
	g.must(g.dir, `git init -q -b main; for i in $(seq 6000); do : >`+strings.Repeat("n", 200)+`$i; done
		git add .; git commit -qm first`)
	f := g.make("try", "")
	g.run(f, "echo 1 >f; git add f; git commit -qm second")
	if out := g.apply(f); !out.InPlace || out.Commits != 1 {
		t.Errorf("%+v", out)
	}
	if got := g.sh(g.dir, "git log --format=%s; cat f; git status --porcelain"); got != "second\nfirst\n1\n" {
		t.Error(got)
	}
}
