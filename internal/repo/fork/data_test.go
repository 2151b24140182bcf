package fork_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/testkit/hermetic"
)

const ruins = `git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now
	git config user.name fork; git branch mark`

// A fork cannot destroy a repository, wherever its files are.
func TestRepositoriesElsewhere(t *testing.T) {
	hermetic.Long(t)
	for name, c := range map[string]struct{ script, at string }{
		"objects are a link": {"mv .git/objects ../data; ln -s ../../data .git/objects", "."},
		"packs are a link":   {"mv .git/objects/pack ../data; ln -s ../../../data .git/objects/pack", "."},
		".git is a link":     {"mv .git ../data; ln -s \"$PWD/../data\" .git", "."},
		"all in it are links": {
			`mv .git ../data; mkdir .git; (cd .git; ln -s ../../data/* .; rm HEAD index)
			cp ../data/HEAD ../data/index .git`, ".",
		},
		"a nested one is elsewhere": {
			`mkdir ../data; git init -q -b main --separate-git-dir=../data/sub sub; cd sub
			git commit -q --allow-empty -m 1; git commit -q --allow-empty -m 2`, "sub",
		},
		"a nested worktree of another": {
			"git clone -q . ../data; mkdir of; git -C ../data worktree add -q \"$PWD/of/side\"", "of/side",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			g.must(g.dir, `git init -q -b main; echo a >a; git add .; git commit -qm a; echo b >>a; git commit -qam b
				git gc -q; git branch other; `+c.script)
			data := filepath.Join(filepath.Dir(g.dir), "data")
			before, outside := look(t, g.dir), look(t, data)
			check := func() {
				t.Helper()
				if diff := cmp.Diff(before, look(t, g.dir)); diff != "" {
					t.Errorf("the workspace was changed: %s", diff)
				}
				if diff := cmp.Diff(outside, look(t, data)); diff != "" {
					t.Errorf("the repository was changed: %s", diff)
				}
			}
			f := g.make("try", fork.Overlay)
			if got := g.run(f, "cd "+c.at+"; "+ruins+"; git log --format=%%"); got != "%\n" {
				t.Errorf("in the fork: %s", got)
			}
			check()
			ruin := g.make("ruin", fork.Overlay)
			g.run(ruin, "cd "+c.at+`; d=$(git rev-parse --git-common-dir); for l in $(find $d -type l) $d; do
				rm -rf $(readlink -f $l)/*; done; rm -rf $d || true`)
			check()
			_, err := g.store.Make(t.Context(), fork.Wanted{Dir: g.dir, Tier: fork.Copy})
			if !errors.Is(err, fault.ServiceDown) || !strings.Contains(err.Error(), "data") {
				t.Errorf("a copy: %v", err)
			}
			if c.at != "." {
				return
			}
			more := g.make("more", fork.Overlay)
			g.run(more, "echo c >>a; git commit -qam c; echo d >d")
			if out := g.apply(more); out.Commits != 1 || !out.InPlace || g.read("d") != "d\n" {
				t.Errorf("%+v", out)
			}
			got := g.sh(g.dir, "git log --format=%s; git status --porcelain; git fsck 2>&1 | grep -v dangling")
			if got != "c\nb\na\n?? d\n" {
				t.Errorf("%s", got)
			}
		})
	}
}

// A repository that has the workspace in it is private together with it.
func TestWorktreeInItsRepository(t *testing.T) {
	g := newGround(t)
	g.must(g.dir, `git init -q -b main; echo a >a; mkdir src; echo s >src/s; git add .; git commit -qm a
		git clone -q --bare . ../bare.git; cd ../bare.git; git worktree add -q tree main`)
	bare := filepath.Join(filepath.Dir(g.dir), "bare.git")
	w := &ground{t: t, dir: filepath.Join(bare, "tree"), store: g.store, snapshots: g.snapshots}
	before := look(t, bare)
	f := w.make("try", fork.Overlay)
	w.run(f, "echo x >x; git add x; git commit -qm x; echo y >y; rm -r src; git gc -q --prune=now")
	if diff := cmp.Diff(before, look(t, bare)); diff != "" {
		t.Errorf("the repository was changed: %s", diff)
	}
	out := w.apply(f)
	if out.Commits != 1 || !out.InPlace || !cmp.Equal(out.Applied, []string{"src", "src/s", "x", "y"}) {
		t.Errorf("%+v", out)
	}
	if got := w.sh(w.dir, "git status --porcelain; cat x"); got != " D src/s\n?? y\nx\n" {
		t.Error(got)
	}
	gone := w.make("gone", fork.Overlay)
	w.run(gone, "cd ..; rm -rf tree; mkdir tree; echo new >tree/a")
	changes, err := gone.Changes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range changes {
		names = append(names, c.Path+" "+string(c.Status))
	}
	if diff := cmp.Diff([]string{"a modified", "x deleted", "y deleted"}, names); diff != "" {
		t.Error(diff)
	}
}

// A copy is not made if it would work in the repository of the workspace.
func TestNoCopySharesARepository(t *testing.T) {
	for name, script := range map[string]string{
		"a link in it":         "mv .git data; ln -s \"$PWD/data\" .git",
		"a file .git":          "git init -q --separate-git-dir=data; echo \"gitdir: $PWD/data\" >.git",
		"a worktree":           "git worktree add -q side; echo \"gitdir: $PWD/.git/worktrees/side\" >side/.git",
		"a working tree":       "git config core.worktree \"$PWD\"; mkdir data",
		"far below, elsewhere": "mkdir -p 1/2/3/4; git init -q --separate-git-dir=../data 1/2/3/4",
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			g.must(g.dir, "git init -q -b main; echo a >a; git add .; git commit -qm a; "+script)
			_, err := g.store.Make(t.Context(), fork.Wanted{Dir: g.dir, Tier: fork.Copy})
			if !errors.Is(err, fault.ServiceDown) || !strings.Contains(err.Error(), g.dir) {
				t.Errorf("%v", err)
			}
		})
	}
	g := newGround(t)
	g.must(g.dir, "git init -q -b main; echo a >a; git add .; git commit -qm a; mv .git data; ln -s data .git")
	f := g.make("try", fork.Copy)
	was := g.sh(g.dir, "git rev-parse HEAD")
	g.run(f, "echo b >>a; git commit -qam b")
	if got := g.sh(g.dir, "git rev-parse HEAD"); got != was {
		t.Error("the copy changed the workspace")
	}
}
