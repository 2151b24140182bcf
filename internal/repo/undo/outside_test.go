package undo_test

import (
	"path/filepath"
	"testing"

	"omniagent/internal/repo/undo"
)

// TestARepositoryThatALinkLeadsToComesBack has the repository elsewhere, in several ways.
func TestARepositoryThatALinkLeadsToComesBack(t *testing.T) {
	for name, c := range map[string]struct{ script, at string }{
		"a link":           {`mv work/.git out.git; ln -s ../out.git work/.git`, "work"},
		"an absolute link": {`mv work/.git out.git; ln -s $PWD/out.git work/.git`, "work"},
		"a file that names one": {
			`mv work/.git out.git; ln -s ../out.git work/link; echo gitdir: link > work/.git`, "work",
		},
		"a link of one inside": {
			`git init -q work/sub; mv work/sub/.git out.git; ln -s ../../out.git work/sub/.git
				git -C work/sub config core.worktree $PWD/work/sub`, "work/sub",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			sh(t, filepath.Dir(root), c.script)
			at := filepath.Join(filepath.Dir(root), c.at)
			sh(t, at, `echo two > c; git add c; git commit -qm two`)
			const all = `git log --all --format=%H%d; git reflog; git ls-files -s; cat c; git fsck --no-dangling 2>&1`
			was := sh(t, at, all)
			turn := begin(t, s, root)
			sh(t, at, `echo agent > c; git commit -qam agent; git branch evil; git gc -q --prune=now`)
			end(t, turn)
			same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, "git says", was, sh(t, at, all))
		})
	}
}

// TestAnotherRepositoryIsLeft: what an agent makes below the workspace makes no other repository a part of it.
func TestAnotherRepositoryIsLeft(t *testing.T) {
	for name, points := range map[string]string{
		"a file":                   `echo "gitdir: $(realpath ..)/other/.git" > sub/.git`,
		"a link":                   `ln -s ../../other/.git sub/.git`,
		"a file that names a link": `ln -s ../other/.git l; echo gitdir: ../l > sub/.git`,
		"of another working tree":  `echo gitdir: ../../other/.git > sub/.git; git -C ../other config core.worktree ..`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			other := filepath.Join(filepath.Dir(root), "other")
			sh(t, filepath.Dir(root), `git init -q other; cd other; echo one > f; git add f; git commit -qm one`)
			sh(t, root, `mkdir sub; `+points)
			turn := begin(t, s, root)
			if len(turn.Cover().Gaps) != 1 {
				t.Errorf("gaps are %v", turn.Cover().Gaps)
			}
			sh(t, root, `echo agent > mine`)
			sh(t, other, `echo two > f; git commit -qam two; git config user.name me; git branch more`)
			const all = `git log --all --format=%H%d; cat .git/config; git ls-files -s; git status -s`
			was := sh(t, other, all)
			end(t, turn)
			out := back(t, s, undo.Request{Dir: root})
			same(t, "restored", []string{"mine"}, out.Restored)
			same(t, "git says", was, sh(t, other, all))
		})
	}
}
