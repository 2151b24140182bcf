package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// layouts are ways in which a repository lies in a workspace, and the git directory that a person's git uses for them.
var layouts = []struct{ name, made, dir string }{
	{
		"link", "git init -q app; mkdir -p .repo; mv app/.git .repo/app.git; ln -s ../.repo/app.git app/.git",
		".repo/app.git",
	},
	{"link of the workspace", "git init -q x; mkdir far; mv x/.git far/git; ln -s far/git .git", "far/git"},
	{"separate", `git init -q --separate-git-dir="$PWD/gd" sep`, "gd"},
	{
		"bare with worktrees", `git init -q a; git -C a commit -q --allow-empty -m a; git clone -q --bare a repo.git
		git -C repo.git worktree add -q ../main`, "repo.git",
	},
	{"remote", "git init -q --bare deep/remote.git", "deep/remote.git"},
	{"package", "git init -q node_modules/dep", "node_modules/dep/.git"},
	{"package of a package", "git init -q node_modules/@of/a/node_modules/b", "node_modules/@of/a/node_modules/b/.git"},
	{
		"deep submodule", "git init -q app; git init -q app/.git/modules/a/b/c/d/e --bare", "app/.git/modules/a/b/c/d/e",
	},
}

// TestLayouts: a repository is protected however git reaches it.
func TestLayouts(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		for _, layout := range layouts {
			t.Run(layout.name, func(t *testing.T) {
				t.Parallel()
				g := newGround(t)
				if out := asPerson(t, g.root, "set -e\n"+layout.made); out != "" {
					t.Log(out)
				}
				dir := filepath.Join(g.root, layout.dir)
				before, err := os.ReadFile(dir + "/config")
				must(t, err)
				if !InGitDir(dir+"/hooks/new") || InGitDir(g.root+"/lib/hooks/new") {
					t.Error("file tools take it for another directory")
				}
				w := g.walls(t, tier, func(p *Policy) { p.Repositories, _ = Repositories(g.root) })
				r := g.sh(t, w, "cd "+layout.dir+` && touch objects/x
					echo '[core] fsmonitor = touch ran; false' >> config; mkdir -p hooks; echo evil > hooks/pre-commit
					mv hooks other; mkdir hooks; echo evil > hooks/pre-commit`)
				after, err := os.ReadFile(dir + "/config")
				if err != nil || string(after) != string(before) || exists(dir+"/hooks/pre-commit") ||
					!exists(dir+"/objects/x") {
					t.Errorf("%q, %v: %+v", after, err, r)
				}
			})
		}
	})
}

// TestLinksInProtectedDirectories: what a link in a protected directory leads to is protected like it, also where
// nothing is yet, and file tools know of it.
func TestLinksInProtectedDirectories(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		asPerson(t, g.root, `mkdir -p scripts .claude/skills/a githooks .git/hooks
			for f in hook tasks skill configured; do echo good > scripts/$f; done; ln -s ../scripts/tasks middle
			ln -s ../../scripts/hook .git/hooks/pre-commit; ln -s ../../scripts/absent .git/hooks/pre-push
			ln -s "$PWD/middle" .claude/settings.json; ln -s ../../../scripts/skill .claude/skills/a/run
			ln -s .. .claude/all; ln -s ../scripts/configured githooks/commit-msg; git config core.hooksPath githooks
			rm middle; ln -s scripts/tasks middle`)
		r := g.sh(t, g.walls(t, tier), `for f in hook tasks skill configured absent; do
			echo evil > scripts/$f; rm -f scripts/$f
			mv scripts/$f scripts/$f.2; done; mv scripts others; rm -f middle; echo x > scripts/other; echo x > middle`)
		for _, name := range []string{"hook", "tasks", "skill", "configured"} {
			if text, _ := os.ReadFile(g.root + "/scripts/" + name); string(text) != "good\n" {
				t.Errorf("%s is %q", name, text)
			}
		}
		if exists(g.root+"/scripts/absent") || !exists(g.root+"/scripts/other") {
			t.Errorf("%+v", r)
		}
		aliases, p := Aliases(g.root, []string{".claude"}, UserGit{}, nil), g.policy()
		for _, name := range []string{"hook", "tasks", "skill", "configured"} {
			if e := p.Explain(g.root+"/scripts/"+name, Report{Tier: tier}); e[1].Allowed {
				t.Errorf("%s is explained as %+v", name, e)
			}
			if !slices.Contains(aliases, g.root+"/scripts/"+name) {
				t.Errorf("file tools are not told of %s: %q", name, aliases)
			}
		}
	})
}

// TestProgramsOfSettings: programs are found whatever the key is and however the command names them.
func TestProgramsOfSettings(t *testing.T) {
	root := planted(t, map[string]string{
		".git/config": "[gpg \"ssh\"]\n\tdefaultKeyCommand = tools/key.sh\n[mergetool \"x\"]\n\tpath = tools/merge\n" +
			"[alias]\n\tst = \"!$(git rev-parse --show-toplevel)/tools/alias.sh\"\n[new]\n\tkey = sh ${X}/tools/new.sh\n" +
			"[pager]\n\tlog = \"cd tools && ./inc.sh\"\n[blame]\n\tignoreRevsFile = tools/revs\n",
		"tools/key.sh": "", "tools/merge": "", "tools/alias.sh": "", "tools/new.sh": "", "tools/inc.sh": "",
		"tools/revs": "",
	})
	got := Aliases(root, nil, UserGit{}, nil)
	slices.Sort(got)
	var want []string
	for _, name := range []string{"alias.sh", "inc.sh", "key.sh", "merge", "new.sh"} {
		want = append(want, filepath.Join(root, "tools", name))
	}
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}
