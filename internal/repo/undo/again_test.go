package undo_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// TestWhatARedoKeptComesBackByName has an undo overwrite work of the user's, and then a redo that keeps a path.
func TestWhatARedoKeptComesBackByName(t *testing.T) {
	hermetic.Long(t)
	for name, c := range map[string]struct{ mine, scratch, kept string }{
		"file":   {`echo MYWORK > src/f1.go`, `echo scratch > src/f1.go`, "src/f1.go"},
		"link":   {`ln -sf mine src/f1.go`, `rm src/f1.go; mkdir src/f1.go`, "src/f1.go"},
		"commit": {`echo mine >> src/f9.go; git commit -qam mine`, `git gc -q`, ".git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
			const agents = `git rev-parse HEAD; cat src/f1.go src/f2.go`
			was := sh(t, root, agents)
			turn := begin(t, s, root)
			sh(t, root, `echo agent > src/f1.go; echo agent > src/f2.go; git add -A; git commit -qm agent`)
			id := end(t, turn).ID
			sh(t, root, c.mine)
			mine, said := look(t, root+"/src"), state(t, root)
			first := back(t, s, undo.Request{Dir: root, TakeOld: true})
			sh(t, root, c.scratch)
			redo := back(t, s, undo.Request{Dir: root, Redo: true})
			same(t, "redo keeps", []string{c.kept}, keeps(redo))
			_, err := s.Undo(t.Context(), undo.Request{Dir: root, ID: first.Undo.ID})
			if !errors.Is(err, fault.Conflicting) {
				t.Errorf("without --take-old: %v", err)
			}
			again := back(t, s, undo.Request{Dir: root, ID: redo.Turn.ID, TakeOld: true})
			same(t, "with --take-old it keeps", []string{}, keeps(again))
			same(t, "after it git says", said, state(t, root))
			same(t, "after it", mine, look(t, root+"/src"))
			back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true})
			same(t, "after another undo", was, sh(t, root, agents))
		})
	}
}

// TestAnotherBranchIsCheckedOut: the index of one branch is never restored under the HEAD of another, whatever is asked
// for, and a switch back is all that it needs.
func TestAnotherBranchIsCheckedOut(t *testing.T) {
	for name, c := range map[string]struct{ start, agents string }{
		"git switch main":            {`true`, `git commit -qm agent`},
		"git switch --detach COMMIT": {`git switch -q --detach`, `true`},
	} {
		s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
		sh(t, root, c.start)
		const all = `git rev-parse HEAD; git status --porcelain`
		was, head := sh(t, root, all), strings.TrimSpace(sh(t, root, `git rev-parse HEAD`))
		turn := begin(t, s, root)
		sh(t, root, `echo agent > made; git add made; `+c.agents)
		id := end(t, turn).ID
		sh(t, root, `git switch -q -c side; echo > mine; git add mine; git commit -qm mine; echo > staged; git add staged`)
		const mine = `git rev-parse HEAD; git diff --cached --name-status HEAD`
		kept, command := sh(t, root, mine), strings.Replace(name, "COMMIT", head, 1)
		for _, q := range []undo.Request{
			{Dir: root, ID: id}, {Dir: root, ID: id, TakeOld: true}, {Dir: root, ID: id, TakeOld: true, TakeAll: true},
		} {
			out := back(t, s, q)
			if len(out.NotRestored) != 1 || !strings.HasSuffix(out.NotRestored[0].Reason, "; first: "+command) {
				t.Errorf("%s: %+v", name, out.NotRestored)
			}
			same(t, name, kept, sh(t, root, mine))
		}
		sh(t, root, `git reset -q --hard; `+command+` -q`)
		same(t, "then it keeps", []string{}, keeps(back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true})))
		same(t, "then", was, sh(t, root, all))
	}
}

// TestTakingBackInParts takes a turn back in two parts, and each of them back.
func TestTakingBackInParts(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	write := func(name, text string) { put(t, filepath.Join(root, name), text) }
	shows := func(what, a, b string, takenBack bool, id string) {
		t.Helper()
		same(t, what, a+" "+b, sh(t, root, `printf "%s %s" $(cat a) $(cat b)`))
		is, known := s.TakenBack(root, id)
		same(t, what+": taken back", takenBack, known && is)
	}
	write("a", "old")
	write("b", "old")
	turn := begin(t, s, root)
	write("a", "agent")
	write("b", "agent")
	id := end(t, turn).ID
	write("a", "mine")
	redo, rest := undo.Request{Dir: root, Redo: true}, undo.Request{Dir: root, ID: id, TakeOld: true}
	same(t, "kept", []string{"a"}, keeps(back(t, s, undo.Request{Dir: root})))
	shows("the first part", "mine", "old", true, id)
	back(t, s, rest)
	shows("both parts", "old", "old", true, id)
	back(t, s, redo)
	shows("the second part taken back", "mine", "old", true, id)
	whole := back(t, s, redo)
	shows("both parts taken back", "mine", "agent", false, id)
	out := back(t, s, undo.Request{Dir: root, ID: whole.Undo.ID})
	same(t, "an undo of a redo", undo.OfUndo, out.Undo.Kind)
	shows("the first part again", "mine", "old", true, id)
	if _, err := s.Undo(t.Context(), undo.Request{Dir: root}); !errors.Is(err, fault.NotFoundCode) {
		t.Errorf("a further undo gives %v", err)
	}
}

// TestAnUndoOfNothingLeavesTheTurn: where all of a turn is kept, the turn is not taken back, and the next undo does not
// go on to the one before.
func TestAnUndoOfNothingLeavesTheTurn(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	for _, name := range []string{"first", "second"} {
		turn := begin(t, s, root)
		sh(t, root, "echo agent > "+name)
		end(t, turn)
	}
	sh(t, root, "echo mine > second")
	was := look(t, root)
	for range 2 {
		out := back(t, s, undo.Request{Dir: root})
		if len(out.Restored) > 0 || len(out.NotRestored) != 1 || out.Undo.ID != "" {
			t.Errorf("%+v", out)
		}
	}
	if diff := cmp.Diff(was, look(t, root)); diff != "" {
		t.Error(diff)
	}
	if all, err := s.List(root); err != nil || len(all) != 2 || all[0].UndoneBy != "" {
		t.Errorf("%+v, %v", all, err)
	}
	if out := back(t, s, undo.Request{Dir: root, TakeOld: true}); len(out.Restored) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestCommitsOfOthersLeaveABranch: what goes back over them is named, and only that.
func TestCommitsOfOthersLeaveABranch(t *testing.T) {
	for name, theirs := range map[string]string{"theirs": `git commit -q --allow-empty -m theirs`, "nobody's": `true`} {
		s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
		turn := begin(t, s, root)
		was := strings.TrimSpace(sh(t, root, `git rev-parse HEAD`))
		sh(t, root, `git commit -q --allow-empty -m agent; git branch made`)
		id := end(t, turn).ID
		sh(t, root, theirs)
		var want []string
		if name == "theirs" {
			want = []string{"main " + strings.TrimSpace(sh(t, root, `git rev-parse HEAD`)) + " " + was}
		}
		for _, dry := range []bool{true, false} {
			var got []string
			for _, m := range back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true, DryRun: dry}).Moved {
				got = append(got, m.Branch+" "+m.From+" "+m.To)
			}
			same(t, name, want, got)
		}
	}
}

// TestCommitsAfterTheTurnKeepTheirFiles: the index of before is not restored under a commit that somebody made since,
// on the same branch too, where the turn itself has not moved it.
func TestCommitsAfterTheTurnKeepTheirFiles(t *testing.T) {
	for agents, theirs := range map[string]string{
		`git add made`: `echo > mine; git add mine; git commit -qm mine -- mine`,
		`git switch -q --detach; git add made; git commit -qm agent`: `git switch -q main
			echo > mine; git add mine; git commit -qm mine`,
		`git switch -q --detach; git add made; git commit -qm its`: `
			git update-ref refs/heads/main $(git commit-tree -m x HEAD^{tree})`,
	} {
		s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
		turn := begin(t, s, root)
		sh(t, root, `echo agent > made; `+agents)
		id := end(t, turn).ID
		sh(t, root, theirs)
		const mine = `git rev-parse HEAD main; git diff --cached --name-status HEAD`
		was := sh(t, root, mine)
		out := back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true, TakeAll: true})
		same(t, agents+": kept", []string{".git"}, keeps(out))
		same(t, agents, was, sh(t, root, mine))
	}
}

// TestAdviceAboutBranches: what is advised can be done, and typed.
func TestAdviceAboutBranches(t *testing.T) {
	for script, want := range map[string]string{
		`git branch -m main other; git switch -q -c side`:        "not there any more",
		`git branch -m main 'a;b'; git switch -q -c side`:        "not there any more",
		`git switch -q -c side; mkdir .git/rebase-merge`:         "in the middle of a rebase",
		`git pack-refs --all; git switch -q -c side; git add -A`: "; first: git switch main",
	} {
		s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
		turn := begin(t, s, root)
		sh(t, root, `echo agent > made; git add made`)
		id := end(t, turn).ID
		sh(t, root, script)
		out := back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true, TakeAll: true})
		if len(out.NotRestored) != 1 || !strings.Contains(out.NotRestored[0].Reason, want) {
			t.Errorf("%s: %+v", script, out.NotRestored)
		}
	}
}
