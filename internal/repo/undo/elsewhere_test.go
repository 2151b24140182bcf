package undo_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// smallWork makes a repository with two files.
func smallWork(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sh(t, dir, `git init -q -b main work; cd work; echo one > a; echo one > b; git add -A; git commit -qm one`)
	return filepath.Join(dir, "work")
}

// TestWorkInAnotherWorkingTreeStays has somebody work in another working tree of the repository during a turn.
func TestWorkInAnotherWorkingTreeStays(t *testing.T) {
	hermetic.Long(t)
	const commit = `echo x > h; git add h; git commit -qm human; `
	other := []string{".git/worktrees/other"}
	for name, c := range map[string]struct {
		before, theirs string
		kept           []string
	}{
		"a commit":         {``, commit + `echo y > s; git add s`, other},
		"a packed branch":  {`git pack-refs --all`, commit, other},
		"only staged":      {``, `echo y > s; git add s`, other},
		"no branch":        {`git -C ../other switch -q --detach`, commit, other},
		"HEAD is a link":   {`ln -sf refs/heads/other .git/worktrees/other/HEAD`, commit, other},
		"another branch":   {``, `git switch -q -c mine; ` + commit, other},
		"a new tree":       {``, `git worktree add -q -b new ../new; cd ../new; ` + commit, []string{".git/worktrees/new"}},
		"all refs at once": {``, commit + `git pack-refs --all`, []string{".git", ".git/worktrees/other"}},
		"nothing":          {``, `git status; git log`, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			other := filepath.Join(filepath.Dir(root), "other")
			sh(t, root, `git worktree add -q ../other -b other;`+c.before)
			const theirs = `git status --porcelain=v2 --branch; git log --format='%H %s'; git reflog`
			agents := `git rev-parse HEAD; git status --porcelain=v2; cat a b`
			was := sh(t, root, agents)
			turn := begin(t, s, root)
			sh(t, root, `echo agent > a; git commit -qam agent; rm b`)
			sh(t, other, c.theirs)
			end(t, turn)
			left := sh(t, other, theirs) + sh(t, filepath.Dir(root), `cd new 2> /dev/null || exit 0; `+theirs)
			said := keeps(back(t, s, undo.Request{Dir: root, DryRun: true}))
			same(t, "a dry run keeps", c.kept, said)
			same(t, "kept", c.kept, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, "in the other trees", left, sh(t, other, theirs)+
				sh(t, filepath.Dir(root), `cd new 2> /dev/null || exit 0; `+theirs))
			if !slices.Contains(c.kept, ".git") {
				same(t, "here", was, sh(t, root, agents))
			}
			sh(t, other, `git commit -q --allow-empty -m later`)
			left = sh(t, other, theirs)
			same(t, "redo keeps", []string{}, keeps(back(t, s, undo.Request{Dir: root, Redo: true})))
			same(t, "in the other tree after redo", left, sh(t, other, theirs))
			if text := sh(t, root, `cat a`); text != "agent\n" {
				t.Errorf("after redo the file is %q", text)
			}
		})
	}
}

// TestWhatATurnDestroysOfAnotherWorkingTreeComesBack has nobody work there.
func TestWhatATurnDestroysOfAnotherWorkingTreeComesBack(t *testing.T) {
	for _, script := range []string{
		`rm -rf .git/worktrees`, `git update-ref -d refs/heads/other`, `rm -rf .git`,
		`git reflog expire --expire=now --all; git gc -q --prune=now`, `rm .git/worktrees/other/index`,
	} {
		s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
		sh(t, root, `git worktree add -q ../other -b other`)
		was := look(t, root)
		turn := begin(t, s, root)
		sh(t, root, script)
		end(t, turn)
		same(t, script+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		same(t, script, was, look(t, root))
	}
}

// TestNothingIsTakenBackAroundAnAgentAtWork has an agent at work in a repository inside the workspace, and around it.
func TestNothingIsTakenBackAroundAnAgentAtWork(t *testing.T) {
	hermetic.Long(t)
	for name, script := range map[string]string{
		"a working tree": `git worktree add -q .wt/x -b x`,
		"a repository":   `git init -q .wt/x; git -C .wt/x commit -q --allow-empty -m x`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			inside := filepath.Join(root, ".wt/x")
			sh(t, root, script)
			refused := func(dir, where string) {
				t.Helper()
				for _, dry := range []bool{true, false} {
					_, err := s.Undo(t.Context(), undo.Request{Dir: dir, DryRun: dry})
					if !errors.Is(err, fault.Conflicting) || !strings.Contains(err.Error(),
						"in "+where+" is not over: its agent still runs, under process "+strconv.Itoa(os.Getpid())) {
						t.Errorf("%s: in %s: %v", name, dir, err)
					}
				}
			}
			work := func(dir string) *undo.Turn {
				t.Helper()
				turn := begin(t, s, dir)
				sh(t, dir, `echo agent > made; git add made; git commit -qm agent`)
				return turn
			}
			end(t, work(inside))
			end(t, work(root))
			turn := work(inside)
			was := look(t, root)
			refused(root, inside)
			same(t, name, was, look(t, root))
			end(t, turn)
			turn = work(root)
			refused(inside, root)
			turn.Drop()
			apart := filepath.Join(filepath.Dir(root), "work-apart")
			sh(t, filepath.Dir(root), `mkdir work-apart`)
			turn = begin(t, s, apart)
			back(t, s, undo.Request{Dir: inside})
			turn.Drop()
		})
	}
}

// TestRepositoriesElsewhereComeBack: a turn may remove what leads to a repository outside of the workspace, or all of
// that repository.
func TestRepositoriesElsewhereComeBack(t *testing.T) {
	const separate = `git init -q --separate-git-dir=git work; cd work; echo one > a; git add a; git commit -qm one;
		echo two > a`
	const submodule = `git init -q part; cd part; echo one > a; git add a; git commit -qm one; cd ..
		git init -q work; cd work; git -c protocol.file.allow=always submodule -q add ../part part; git commit -qm one; echo two > part/a`
	for name, c := range map[string]struct{ made, dir, turn string }{
		"the way to it":                {separate, "work", `rm .git`},
		"all of it":                    {separate, "work", `rm -rf ../git; rm a`},
		"the way to that of submodule": {submodule, "work/part", `git commit -qam agent; rm .git a`},
		"all of that of a submodule":   {submodule, "work/part", `rm -rf ../.git/modules/part; rm a`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := undo.Store{Dir: t.TempDir()}, t.TempDir()
			sh(t, dir, c.made)
			root := filepath.Join(dir, c.dir)
			const looks = `git log --format=%s; git status --porcelain; cat a; git fsck --no-dangling`
			was := sh(t, root, looks)
			turn := begin(t, s, root)
			sh(t, root, c.turn)
			end(t, turn)
			said := keeps(back(t, s, undo.Request{Dir: root, DryRun: true}))
			same(t, "a dry run keeps", []string{}, said)
			same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, "afterwards", was, sh(t, root, looks))
			same(t, "redo keeps", []string{}, keeps(back(t, s, undo.Request{Dir: root, Redo: true})))
			same(t, "and back", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, "at the end", was, sh(t, root, looks))
		})
	}
}
