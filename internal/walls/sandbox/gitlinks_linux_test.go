package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

// asPerson runs a line outside of the walls.
func asPerson(t *testing.T, dir, line string) string {
	t.Helper()
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b", "EDITOR=true", "GIT_CONFIG_GLOBAL=/dev/null")
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// becomes makes a work tree a git directory over a file commondir, with a configuration that runs a program.
const becomes = `mkdir -p evil/objects evil/refs; cp -r .git/objects .git/refs evil/; cp .git/HEAD HEAD; cp .git/index index
	rm -f .git/HEAD; mv .git/HEAD .git/HEAD2; echo x > x; mv -f x .git/HEAD; echo "$PWD/evil" > commondir
	printf '[core]\n\trepositoryformatversion = 1\n\tfsmonitor = "touch %s/ran; false"\n' "$PWD" > evil/config
	printf '[extensions]\n\tworktreeConfig = true\n' >> evil/config
	printf '[core]\n\tbare = false\n\tworktree = %s\n' "$PWD" > config.worktree; true`

// TestNoOtherGitDirectory: a work tree does not become a git directory, so that a person's git runs nothing.
func TestNoOtherGitDirectory(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		beneath := g
		beneath.root = g.root + "/lib"
		must(t, os.Mkdir(beneath.root, 0o700))
		beneath.repository(t)
		for _, dir := range []string{g.root, beneath.root} {
			asPerson(t, dir, "echo a > a; git add a; git commit -qm a")
		}
		w := g.walls(t, tier, func(p *Policy) { p.Repositories = []string{beneath.root} })
		g.sh(t, w, becomes+"; cd lib; "+becomes)
		for _, dir := range []string{g.root, beneath.root} {
			out := asPerson(t, dir, "git status")
			if exists(dir+"/ran") || exists(dir+"/commondir") || !strings.Contains(out, "On branch") {
				t.Errorf("%s: %s", dir, out)
			}
		}
	})
}

// TestNoLinksInGitDirectories: no link comes where a person's git writes.
func TestNoLinksInGitDirectories(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		asPerson(t, g.root, "echo a > a; git add a; git commit -qm a")
		w := g.walls(t, tier)
		r := g.sh(t, w, `cd .git; d=../target; ln -s $d COMMIT_EDITMSG; ln -sf $d logs/HEAD; ln -s $d ../l
			mv ../l FETCH_HEAD; ln ../l ORIG_HEAD; cp -P ../l MERGE_MSG; mkdir ../dir; ln -s ../target ../dir/l
			mv ../dir moved; mkdir empty; python3 -c 'import ctypes
l = ctypes.CDLL(None); l.renameat2(-100, b"../dir", -100, b"empty", 2); l.renameat2(-100, b"empty", -100, b"../dir", 2)
l.renameat2(-100, b"../l", -100, b"description", 2)'
			ln -s testing tAbCdEf; mv tAbCdEf AUTO_MERGE; mv -T ../dir ../.git2; ln -s ../target info/l; ln -s a ../ordinary; true`)
		_ = filepath.WalkDir(g.root+"/.git", func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.Type()&os.ModeSymlink != 0 && entry.Name() != "tAbCdEf" {
				t.Errorf("%s is a link: %+v", path, r)
			}
			return nil
		})
		if _, err := os.Lstat(g.root + "/ordinary"); err != nil {
			t.Errorf("%v: %+v", err, r)
		}
		r = g.sh(t, w, "mkdir new; cd new; git init -q && git config core.symlinks; ls .git/HEAD")
		if r.out != ".git/HEAD\n" {
			t.Errorf("git finds no links: %+v", r)
		}
	})
}

// TestHooksOfWhatEncloses: hooks in the workspace that the repository around it names are protected.
func TestHooksOfWhatEncloses(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		must(t, os.MkdirAll(g.root+"/tools/githooks", 0o700))
		asPerson(t, g.root, "git config core.hooksPath tools/githooks")
		if len(Aliases(g.root+"/tools", nil, UserGit{}, nil)) != 1 {
			t.Error("the file tools are not told")
		}
		inner := g
		inner.root = g.root + "/tools"
		r := inner.sh(t, inner.walls(t, tier), "echo evil > githooks/pre-commit; mv githooks other; echo x > file")
		if exists(inner.root+"/githooks/pre-commit") || exists(inner.root+"/other") || !exists(inner.root+"/file") {
			t.Errorf("%+v", r)
		}
	})
}

// TestNoLockIsLeft by a command that was ended while it changed a configuration.
func TestNoLockIsLeft(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		r := g.sh(t, g.walls(t, tier), "echo x > .git/config.lock && test -e .git/config.lock && kill -9 $$")
		if exists(g.root+"/.git/config.lock") || r.ending.Signal != "SIGKILL" {
			t.Errorf("%+v", r)
		}
	})
}
