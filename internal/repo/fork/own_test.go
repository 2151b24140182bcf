package fork_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/repo/fork"
)

// Which part of git only the fork has is listed, and what has come home is not.
func TestOwns(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newHistory(t)
		g.must(g.dir, `git branch old HEAD~1; git tag there; git init -q -b main sub; cd sub
			git commit -q --allow-empty -m s; git clone -q .. ../part; cd ..
			echo sub >.gitignore; git add .gitignore; git commit -qm sub`)
		owns := func(f *fork.Fork) []string {
			t.Helper()
			own, err := f.Owns(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			all := []string{}
			for _, o := range own {
				if len(o.Commit) != 40 {
					t.Errorf("%+v", o)
				}
				all = append(all, o.Repository+" "+o.Ref)
			}
			slices.Sort(all)
			return all
		}
		f := g.make("try", tier)
		g.run(f, "git gc -q; git branch -m old older; touch f; git -C sub gc -q; echo x >>f; git commit -qam x")
		if diff := cmp.Diff([]string{". refs/heads/main"}, owns(f)); diff != "" {
			t.Error(diff)
		}
		g.apply(f)
		if own := owns(f); len(own) > 0 {
			t.Errorf("it has all come home, but %q", own)
		}
		g.run(f, `git checkout -q --detach; git commit -q --allow-empty -m detached; git tag -am t mine HEAD~1
			git branch topic $(git commit-tree -m topic HEAD^{tree}); echo x >>f; git stash -q; git pack-refs --all
			git init -q -b new made; git -C made commit -q --allow-empty -m made
			git -C sub commit -q --allow-empty -m s2
			git -C part checkout -qb side; git -C part commit -q --allow-empty -m p; git -C part pack-refs --all`)
		want := []string{
			". HEAD", ". refs/heads/topic", ". refs/stash", ". refs/tags/mine", "made refs/heads/new",
			"part refs/heads/side", "sub refs/heads/main",
		}
		if diff := cmp.Diff(want, owns(f)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestHeadIsALink: git takes a link to a branch, which it does not write any more, for that branch.
func TestHeadIsALink(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newHistory(t)
		g.must(g.dir, "ln -sf refs/heads/main .git/HEAD")
		f := g.make("try", tier)
		g.run(f, `test "$(git symbolic-ref HEAD)" = refs/heads/main
			git commit -q --allow-empty -m x; ln -s refs/heads/topic .git/refs/heads/named
			git branch topic $(git commit-tree -m topic HEAD^{tree})`)
		own, err := f.Owns(t.Context())
		var refs []string
		for _, o := range own {
			refs = append(refs, o.Ref)
		}
		if want := []string{"refs/heads/main", "refs/heads/named", "refs/heads/topic"}; err != nil ||
			!slices.Equal(refs, want) {
			t.Errorf("%q, %v; want %q", refs, err, want)
		}
		g.apply(f)
		g.must(g.dir, `test "$(git symbolic-ref HEAD)" = refs/heads/main; test "$(git log -1 --format=%s)" = x`)
	})
}
