package walls

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatGitNames: a person's git runs nothing that a command wrote, wherever a configuration leads it, and in every
// repository that lies in the workspace.
func TestWhatGitNames(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	const hook = "printf '#!/bin/sh\\ntouch {out}/ran\\n' > %s/pre-commit; chmod +x %[1]s/pre-commit"
	commit := []string{"commit", "-q", "--allow-empty", "-m", "x"}
	hooked := func(dir string) string { return strings.ReplaceAll(strings.ReplaceAll(hook, "%[1]s", dir), "%s", dir) }
	for name, c := range map[string]struct {
		before, user, attack string
		dir                  string
		git                  []string
	}{
		"hooks path": {
			before: "git config core.hooksPath .githooks; mkdir .githooks", attack: hooked(".githooks"), git: commit,
		},
		"hooks path that is absent": {
			before: "git config core.hooksPath tools/hooks", attack: "mkdir -p tools/hooks; " +
				hooked("tools/hooks"), git: commit,
		},
		"hooks path that is moved": {
			before: "git config core.hooksPath a/b/hooks; mkdir -p a/b/hooks",
			attack: "mv a c; mkdir -p a/b/hooks; " + hooked("a/b/hooks"), git: commit,
		},
		"hooks path of the user": {
			user: "[core]\n\thooksPath = .myhooks\n", before: "mkdir .myhooks", attack: hooked(".myhooks"), git: commit,
		},
		"hooks path in the home of an account": {
			before: `git config core.hooksPath "~root/..$PWD/hk"`, attack: "mkdir -p hk; " + hooked("hk"), git: commit,
		},
		"hooks path beside git": {
			before: `git config core.hooksPath "%(prefix)/..$PWD/hk"`,
			attack: "mkdir -p hk; " + hooked("hk"), git: commit,
		},
		"hooks path behind a byte order mark": {
			before: `printf '\357\273\277[core]\nrepositoryformatversion = 0\nhooksPath = hk\n' > .git/config`,
			attack: "mkdir -p hk; " + hooked("hk"), git: commit,
		},
		"included configuration": {
			before: "git config include.path ../shared.cfg; touch shared.cfg",
			attack: "printf '[core]\\nfsmonitor = \"touch {out}/ran; false\"\\n' > shared.cfg", git: []string{"status"},
		},
		"included and replaced": {
			before: "git config includeIf.onbranch:main.path ../shared.cfg; echo > shared.cfg; git branch -M main",
			attack: "printf '[core]\\nfsmonitor = \"touch {out}/ran; false\"\\n' > n; mv -f n shared.cfg",
			git:    []string{"status"},
		},
		"program of a filter": {
			before: "printf '#!/bin/sh\\ncat\\n' > clean.sh; chmod +x clean.sh; git config filter.f.clean " +
				"'./clean.sh %f'; " +
				"echo '* filter=f' > .gitattributes",
			attack: "echo 'touch {out}/ran' >> clean.sh; rm -f clean.sh; printf '#!/bin/sh\\ntouch {out}/ran\\n' > " +
				"clean.sh; " +
				"chmod +x clean.sh; echo y > a.txt",
			git: []string{"add", "a.txt"},
		},
		"repository beneath": {
			before: "git init -q app", dir: "app", git: []string{"status"},
			attack: "printf '[core]\\nfsmonitor = \"touch {out}/ran; false\"\\n' >> app/.git/config",
		},
		"repository deep beneath, moved": {
			before: "mkdir -p x/y && git init -q x/y/app", dir: "x/y/app", git: commit,
			attack: "mv x z; mkdir -p x/y; git init -q x/y/app; " + hooked("x/y/app/.git/hooks"),
		},
		"linked work tree beneath": {
			before: "git commit -q --allow-empty -m 0; git worktree add -q wt", dir: "wt", git: []string{"status"},
			attack: "git init -q evil; printf '[core]\\nfsmonitor = \"touch {out}/ran; false\"\\n' >> " +
				"evil/.git/config; " +
				"rm -f wt/.git; echo 'gitdir: {work}/evil/.git' > wt/.git",
		},
		"configuration of a work tree beneath": {
			before: "git init -q app; git -C app config extensions.worktreeConfig true", dir: "app",
			attack: "printf '[core]\\nfsmonitor = \"touch {out}/ran; false\"\\n' > app/.git/config.worktree",
			git:    []string{"status"},
		},
		"configuration of a linked work tree": {
			before: "git commit -q --allow-empty -m 0; git worktree add -q wt; git config " +
				"extensions.worktreeConfig true",
			attack: "printf '[core]\\nfsmonitor = \"touch {out}/ran; false\"\\n' > .git/worktrees/wt/config.worktree",
			dir:    "wt", git: []string{"status"},
		},
		"address in a file": {
			before: "git commit -q --allow-empty -m 0",
			attack: "git init -q --bare e.git; printf '#!/bin/sh\\ntouch {out}/ran\\n' > e.git/hooks/pre-receive; " +
				"chmod +x e.git/hooks/pre-receive; mkdir -p .git/remotes; echo 'URL: ./e.git' > .git/remotes/origin",
			git: []string{"push", "origin", "HEAD:refs/heads/x"},
		},
		"address in another file": {
			before: "git commit -q --allow-empty -m 0",
			attack: "git init -q --bare e.git; printf '#!/bin/sh\\ntouch {out}/ran\\n' > e.git/hooks/pre-receive; " +
				"chmod +x e.git/hooks/pre-receive; mkdir -p .git/branches; echo ./e.git > .git/branches/origin",
			git: []string{"push", "origin", "HEAD:refs/heads/x"},
		},
		"address in the workspace": {
			before: "git commit -q --allow-empty -m 0",
			attack: "git init -q --bare e.git; printf '#!/bin/sh\\ntouch {out}/ran\\n' > e.git/hooks/pre-receive; " +
				"chmod +x e.git/hooks/pre-receive; git remote add origin ./e.git || git remote add origin " +
				"$PWD/e.git || " +
				"git remote add origin file://$PWD/e.git || git remote add origin '../work/e.git' || true",
			git: []string{"push", "origin", "HEAD:refs/heads/x"},
		},
		"lock that becomes the configuration": {
			before: "true",
			attack: "cp .git/config .git/config.lock; printf '[core]\\nfsmonitor = \"touch {out}/ran; false\"\\n' >> " +
				".git/config.lock; mv .git/config.lock .git/config; rm -f .git/config.lock",
			git: []string{"status"},
		},
		"hooks path of a repository beneath": {
			before: "git init -q app; git -C app config core.hooksPath hooks; mkdir app/hooks", dir: "app", git: commit,
			attack: hooked("app/hooks"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			run := func(dir string, argv ...string) string {
				cmd := exec.Command(argv[0], argv[1:]...)
				cmd.Dir = filepath.Join(g.work, dir)
				cmd.Env = append(g.env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
					"GIT_COMMITTER_EMAIL=a@b")
				out, _ := cmd.CombinedOutput()
				return string(out)
			}
			must(t, os.RemoveAll(g.work+"/.git"))
			run("", "git", "init", "-q", ".")
			g.write(t, g.home+"/.gitconfig", c.user)
			if out := run("", "bash", "-c", c.before); out != "" {
				t.Fatal(out)
			}
			attack := g.fill(c.attack, "")
			out, err := g.command(namespaces(), "sandbox", "run", "--", "bash", "-c",
				attack+"; touch behind").CombinedOutput()
			if err != nil || !exists(g.work+"/behind") {
				t.Fatalf("%v: %s", err, out)
			}
			said := run(c.dir, append([]string{"git"}, c.git...)...)
			if exists(g.out + "/ran") {
				t.Errorf("the person's git ran it: %s\n%s", said, out)
			}
			run("", "bash", "-c", attack) // without walls it would
			run(c.dir, append([]string{"git"}, c.git...)...)
			if !exists(g.out + "/ran") {
				t.Error("the attack does not even work without walls")
			}
		})
	}
}

// TestRepositoriesBeneathWork: what is protected in them does not keep git from working there.
func TestRepositoriesBeneathWork(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	g := newGround(t)
	must(t, os.RemoveAll(g.work+"/.git"))
	const before = "git init -q . && git init -q app && git -C app commit -q --allow-empty -m 0 && git -C app " +
		"worktree add -q ../wt"
	const behind = "set -e; for d in app wt; do (cd $d; echo a > new; git add new; git commit -qm 1; git switch " +
		"-qc x$d; " +
		"git stash list; git log --oneline -1; git gc -q); done; git -C app diff HEAD~1 --stat; rm app/new; git status"
	env := append(g.env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	cmd := exec.Command("bash", "-c", before)
	cmd.Dir, cmd.Env = g.work, env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	cmd = g.command(namespaces(), "sandbox", "run", "--all-env", "--", "bash", "-c", behind)
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"app/.git/commondir", "app/.git/config.worktree", "app/.envrc", "app/.claude"} {
		if exists(g.work + "/" + name) {
			t.Errorf("%s is left behind", name)
		}
	}
}
