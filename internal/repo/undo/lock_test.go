package undo_test

import (
	"testing"

	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// TestALockOfAMomentStaysAway: git in the background had locked the repository when the turn began, and has ended.
func TestALockOfAMomentStaysAway(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
	const locks = `.git/HEAD.lock .git/gc.pid .git/gc.log.lock .git/packed-refs.lock .git/index.lock`
	sh(t, root, `echo mine > .git/hooks/my.lock; touch `+locks)
	const says = `git ls-files -s; git rev-parse HEAD; cat a .git/hooks/my.lock`
	was := sh(t, root, says)
	turn := begin(t, s, root)
	sh(t, root, `rm .git/hooks/my.lock `+locks+`; echo agent > a; git commit -qam agent`)
	end(t, turn)
	same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
	same(t, "git says", was, sh(t, root, says))
	same(t, "locks", "", sh(t, root, `ls `+locks+` 2>/dev/null || true; git commit -q --allow-empty -m next`))
}

// TestALockedIndexStays has git, or what it left, lock an index before, during and after a turn.
func TestALockedIndexStays(t *testing.T) {
	hermetic.Long(t)
	for name, c := range map[string]struct {
		before, during, after string
		kept                  []string
	}{
		"after it":        {``, ``, `touch .git/index.lock`, []string{".git"}},
		"all the time":    {`touch .git/index.lock`, ``, ``, []string{".git"}},
		"another one":     {``, `echo 1 > .git/index.lock`, `echo 2 > .git/index.lock`, []string{".git"}},
		"of a submodule":  {``, ``, `touch .git/modules/sub/index.lock`, []string{".git"}},
		"of the turn":     {``, `touch .git/index.lock`, ``, []string{}},
		"without locking": {``, ``, ``, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			sh(t, root, `git -c protocol.file.allow=always submodule --quiet add ./. sub; git commit -qm sub; `+c.before)
			const says = `git ls-files -s; git -C sub ls-files -s; git rev-parse HEAD; git -C sub rev-parse HEAD`
			was := sh(t, root, says)
			turn := begin(t, s, root)
			sh(t, root, `echo agent > a; cp .git/index .git/other; GIT_INDEX_FILE=.git/other git add a
				mv .git/other .git/index; echo x > sub/b; git -C sub commit -qam agent; `+c.during)
			end(t, turn)
			sh(t, root, c.after)
			left := sh(t, root, says)
			if left == was {
				t.Fatal("the turn changed nothing")
			}
			same(t, "a dry run keeps", c.kept, keeps(back(t, s, undo.Request{Dir: root, DryRun: true})))
			same(t, "kept", c.kept, keeps(back(t, s, undo.Request{Dir: root})))
			if len(c.kept) > 0 {
				was = left
			}
			same(t, "git says", was, sh(t, root, says))
		})
	}
}
