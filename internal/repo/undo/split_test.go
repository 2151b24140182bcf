package undo_test

import (
	"testing"

	"omniagent/internal/repo/undo"
)

// TestASplitIndexComesBack has git keep most of the index in another file.
func TestASplitIndexComesBack(t *testing.T) {
	for _, script := range []string{
		`git rm -q --cached a b`, `echo agent > a; git add a`, `git update-index --chmod=+x a`,
		`git update-index --no-split-index; git rm -q --cached b`,
		`git rm -q --cached a; git update-index --split-index; rm -f .git/sharedindex.*`,
	} {
		for _, split := range []string{`git update-index --split-index`, `:`} {
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			sh(t, root, `for i in $(seq 60); do echo $i > f$i; done; touch -d 2020-01-01 *; git add -A
				git commit -qm many; `+split) // so many that git makes no other file for a few changes
			const says = `git ls-files -s; git status --porcelain`
			was := sh(t, root, says)
			turn := begin(t, s, root)
			sh(t, root, script)
			end(t, turn)
			if sh(t, root, says) == was {
				t.Errorf("%s after %s changes nothing", script, split)
			}
			same(t, script+" after "+split+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, script+" after "+split, was, sh(t, root, says))
		}
	}
}
