package undo_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// asUser runs a test as a user for whom permissions count, and reports whether this process is that user's.
func asUser(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return true
	}
	cmd := hermetic.AsOrdinary(t, "-test.v", "-test.run", "^"+t.Name()+"$")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// TestWhatTheTurnHidIsKept has turns destroy files and make what is there unreadable. Who made it what it is later is
// not known, so it is restored when that is asked for.
func TestWhatTheTurnHidIsKept(t *testing.T) {
	if !asUser(t) {
		return
	}
	const open = `chmod 755 .git src; chmod 644 src/* own`
	for name, c := range map[string]struct {
		turn, after string
		kept        []string
	}{
		"names can be read": {`echo broken > src/main.c; rm src/util.c; chmod -R 644 src`, open, []string{"src/main.c"}},
		"a directory": {
			`rm src/util.c; echo broken > src/main.c; chmod 000 src`, open, []string{"src/main.c", "src/util.c"},
		},
		"git":          {`rm -rf .git/refs .git/HEAD .git/objects; chmod 000 .git`, open, []string{".git"}},
		"one file":     {`echo broken > own; chmod 000 own`, ``, []string{"own"}},
		"still hidden": {`rm src/util.c; chmod 000 src`, ``, []string{"src/main.c", "src/util.c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "work")
			sh(t, filepath.Dir(root), `mkdir -p work/src; cd work; git init -q; echo main > src/main.c; echo util > src/util.c
				echo own > own; git add .; git commit -qm one; echo work >> src/main.c; echo work >> own`)
			was, said := look(t, root), state(t, root)
			turn := begin(t, s, root)
			sh(t, root, c.turn)
			id := end(t, turn).ID
			sh(t, root, c.after)
			out := back(t, s, undo.Request{Dir: root})
			same(t, "kept", c.kept, keeps(out))
			reason := out.NotRestored[0].Reason
			if name == "one file" && !strings.Contains(reason, "permission denied") {
				t.Errorf("kept because %s", reason)
			}
			sh(t, root, open)
			same(t, "with --take-old", []string{}, keeps(back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true})))
			same(t, "after the undo", was, look(t, root))
			same(t, "git says", said, state(t, root))
		})
	}
}

// TestRedoOfWhatIsHiddenAgain takes back an undo that has made a directory unreadable.
func TestRedoOfWhatIsHiddenAgain(t *testing.T) {
	if !asUser(t) {
		return
	}
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `mkdir d; echo one > d/f; chmod 000 d`)
	turn := begin(t, s, root)
	sh(t, root, `chmod 755 d`)
	end(t, turn)
	left := look(t, root)
	same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
	out := back(t, s, undo.Request{Dir: root, Redo: true})
	same(t, "redo keeps", []string{}, keeps(out))
	same(t, "after redo", left, look(t, root))
	if !slices.Contains(out.Restored, "d") {
		t.Errorf("restored are %v", out.Restored)
	}
}

// TestGitIsRestoredWholeOrNotAtAll has a directory in .git in which nobody can change a name.
func TestGitIsRestoredWholeOrNotAtAll(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
	turn := begin(t, s, root)
	sh(t, root, `echo two > a; git commit -qam two; echo three > b; git add b`)
	end(t, turn)
	if said := sh(t, root, `chattr +i .git/refs/heads`); said != "" {
		t.Skip("no directory can be made immutable here:", said)
	}
	t.Cleanup(func() { sh(t, root, `chattr -i .git/refs/heads`) })
	was := sh(t, root, `git log --format=%s; git diff --cached --stat`)
	same(t, "kept", []string{".git"}, keeps(back(t, s, undo.Request{Dir: root})))
	same(t, "the state of git", was, sh(t, root, `git log --format=%s; git diff --cached --stat`))
	same(t, "a and b", "one\none\n", sh(t, root, `cat a b`))
}
