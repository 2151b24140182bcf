package undo_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// keeps returns the paths that an outcome keeps.
func keeps(out undo.Outcome) []string {
	names := []string{}
	for _, k := range out.NotRestored {
		names = append(names, k.Path)
	}
	return names
}

func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestWhatTheSnapshotCannotHoldIsNotOverwritten has a turn make a file that is too large for the snapshot that undo
// takes first, and one in the place of a small one.
func TestWhatTheSnapshotCannotHoldIsNotOverwritten(t *testing.T) {
	for _, takeOld := range []bool{false, true} {
		s, root := undo.Store{Dir: t.TempDir(), FileLimit: 1000}, t.TempDir()
		put(t, filepath.Join(root, "grown"), "small")
		put(t, filepath.Join(root, "other"), "small")
		turn := begin(t, s, root)
		sh(t, root, `head -c 5000 /dev/zero > grown; head -c 5000 /dev/zero > made; echo agent > other`)
		end(t, turn)
		left := look(t, root)
		q := undo.Request{Dir: root, TakeOld: takeOld, DryRun: true}
		same(t, "a dry run keeps", []string{"grown", "made"}, keeps(back(t, s, q)))
		q.DryRun = false
		same(t, "kept", []string{"grown", "made"}, keeps(back(t, s, q)))
		is := look(t, root)
		for _, name := range []string{"grown", "made"} {
			same(t, name, left[name], is[name])
		}
		if is["other"] == left["other"] {
			t.Error("the small file is not restored")
		}
	}
}

// TestDeletionLeavesTheContentsOfManyRoots deletes one of two turns of a workspace with more than ten repositories
// outside of it.
func TestDeletionLeavesTheContentsOfManyRoots(t *testing.T) {
	base := t.TempDir()
	s, root := undo.Store{Dir: filepath.Join(base, "store")}, filepath.Join(base, "work")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, root, `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		git init -q --separate-git-dir ../git$i w$i; git -C w$i commit -q --allow-empty -m one
		git -C w$i config core.worktree ../work/w$i
		echo before $i > ../git$i/description; done`)
	turn := begin(t, s, root)
	sh(t, root, `echo x > file`)
	first := end(t, turn)
	was := sh(t, base, `sha256sum git*/description git*/config`)
	turn = begin(t, s, root)
	sh(t, root,
		`for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo agent $i > ../git$i/description; git -C w$i config a.b $i; done`)
	end(t, turn)
	if _, _, err := s.Delete(t.Context(), func(r undo.Record) bool { return r.ID == first.ID }); err != nil {
		t.Fatal(err)
	}
	out := back(t, s, undo.Request{Dir: root})
	same(t, "kept", []string{}, keeps(out))
	same(t, "the repositories", was, sh(t, base, `sha256sum git*/description git*/config`))
}

// TestWhoTruncatesAnObjectDoesNotReachTheSnapshot empties loose objects in place, through the names that git has.
func TestWhoTruncatesAnObjectDoesNotReachTheSnapshot(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `git init -q .; for i in 1 2 3; do echo $i > f$i; git add -A; git commit -qm $i; done`)
	said := state(t, root)
	turn := begin(t, s, root)
	sh(t, root, `chmod -R u+w .git/objects; for f in .git/objects/??/*; do : > $f; done; rm -rf .git f1`)
	end(t, turn)
	same(t, "a dry run keeps", []string{}, keeps(back(t, s, undo.Request{Dir: root, DryRun: true})))
	same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
	same(t, "git says", said, state(t, root))
	all, err := s.List(root)
	if err != nil {
		t.Fatal(err)
	}
	turn = begin(t, s, root)
	sh(t, root, `chmod -R u+w .git/objects; for f in .git/objects/??/*; do : > $f; done; rm -rf .git f1`)
	end(t, turn)
	if _, _, err := s.Delete(t.Context(), func(r undo.Record) bool { return r.ID == all[0].ID }); err != nil {
		t.Fatal(err)
	}
	back(t, s, undo.Request{Dir: root})
	same(t, "after a deletion git says", said, state(t, root))
}

// TestADamagedPackIsNotGivenBack writes into the packs of a snapshot after the turn.
func TestADamagedPackIsNotGivenBack(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `git init -q .; for i in 1 2 3; do echo $i > f$i; git add -A; git commit -qm $i; done; git gc -q`)
	turn := begin(t, s, root)
	sh(t, root, `rm -rf .git; echo agent > f1`)
	end(t, turn)
	sh(t, s.Dir, `for f in */git/*/objects/pack/*.pack; do chmod u+w $f; echo damaged >> $f; done`)
	out := back(t, s, undo.Request{Dir: root})
	if !slices.Contains(keeps(out), ".git") || !strings.Contains(fmt.Sprint(out.NotRestored), "damaged") {
		t.Errorf("kept %v", out.NotRestored)
	}
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		t.Error("a damaged repository is made")
	}
}

// TestSubmodulesComeBack destroys a repository with a submodule, whose .git is a file.
func TestSubmodulesComeBack(t *testing.T) {
	hermetic.Long(t)
	base := t.TempDir()
	root := filepath.Join(base, "work")
	sh(t, base, `git init -q lib; cd lib; echo lib > lib.c; git add -A; git commit -qm lib`)
	sh(t, base, `git init -q work; cd work; echo a > a; git add -A; git commit -qm a
		git -c protocol.file.allow=always submodule --quiet add ../lib sub; git commit -qm sub; echo dirty >> sub/lib.c`)
	is := func() string {
		return state(t, root) + sh(t, root, `cat sub/.git; cd sub; git status --porcelain; git fsck 2>&1`)
	}
	was, said := look(t, root), is()
	for _, script := range []string{
		`rm sub/.git`, `rm -rf sub`, `rm -rf .git`, `rm -rf .git sub`, `rm -rf .git/modules`,
		`rm sub/.git; git init -q sub`,
		`git -c protocol.file.allow=always submodule --quiet add ../lib again; git commit -qm again`,
		`git submodule --quiet deinit -f sub; git rm -qf sub; rm -rf .git/modules`,
	} {
		s := undo.Store{Dir: t.TempDir()}
		turn := begin(t, s, root)
		sh(t, root, script)
		left := look(t, root)
		end(t, turn)
		same(t, script+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		same(t, script, was, look(t, root))
		same(t, script+": git says", said, is())
		same(t, script+": redo keeps", []string{}, keeps(back(t, s, undo.Request{Dir: root, Redo: true})))
		same(t, script+": again", left, look(t, root))
		back(t, s, undo.Request{Dir: root})
	}
}

// TestALinkedWorktreeComesBack removes the file .git of one.
func TestALinkedWorktreeComesBack(t *testing.T) {
	base := t.TempDir()
	s, root := undo.Store{Dir: t.TempDir()}, filepath.Join(base, "linked")
	sh(t, base, `git init -q work; cd work; echo a > a; git add -A; git commit -qm a; git worktree add -q ../linked`)
	was := look(t, root)
	for _, script := range []string{`rm .git a`, `echo x > .git; rm a`, `rm .git; git init -q .; rm a`} {
		turn := begin(t, s, root)
		sh(t, root, script)
		end(t, turn)
		same(t, script+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		same(t, script, was, look(t, root))
	}
}

// TestADamagedSnapshotBlocksNothingElse damages the files of the last turn, one after another.
func TestADamagedSnapshotBlocksNothingElse(t *testing.T) {
	for _, file := range []string{"before-0", "after-0", "record.json"} {
		s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
		put(t, filepath.Join(root, "a"), "one")
		var last undo.Record
		for _, text := range []string{"two", "three"} {
			turn := begin(t, s, root)
			put(t, filepath.Join(root, "a"), text)
			put(t, filepath.Join(root, text), "made")
			last = end(t, turn)
		}
		named, err := filepath.Glob(filepath.Join(s.Dir, "*", "turns", last.ID, file))
		if err != nil || len(named) != 1 {
			t.Fatal(named, err)
		}
		if err := os.Truncate(named[0], 40); err != nil && file != "record.json" {
			t.Fatal(err)
		}
		for range 2 {
			_, err = s.Undo(t.Context(), undo.Request{Dir: root})
			var f *fault.Fault
			if !errors.As(err, &f) || !strings.Contains(err.Error(), "damaged") ||
				!strings.Contains(fmt.Sprint(f), last.ID) {
				t.Fatalf("%s: %v", file, err)
			}
		}
		deleted, _, err := s.Delete(t.Context(), func(r undo.Record) bool { return r.ID == last.ID })
		if err != nil || len(deleted) != 1 {
			t.Fatalf("%s: deleted are %v, %v", file, deleted, err)
		}
		if all, err := s.List(root); err != nil || len(all) != 1 {
			t.Fatalf("%s: left are %v, %v", file, all, err)
		}
		same(t, file, []string{"a"}, keeps(back(t, s, undo.Request{Dir: root})))
	}
}

// TestPathsAreOverwrittenByName restores some of what was changed by hand.
func TestPathsAreOverwrittenByName(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	was := look(t, root)
	turn := begin(t, s, root)
	sh(t, root, `echo agent > src/f1.go; echo agent > src/f2.go; git commit -qam agent`)
	end(t, turn)
	sh(t, root, `echo mine > src/f1.go; echo mine > src/f2.go; git commit -qam mine`)
	left := look(t, root)
	out := back(t, s, undo.Request{Dir: root, Overwrite: []string{"src/f2.go", ".git"}})
	same(t, "kept", []string{"src/f1.go"}, keeps(out))
	want := maps.Clone(was)
	want["src/f1.go"] = left["src/f1.go"]
	same(t, "after the undo", want, look(t, root))
	back(t, s, undo.Request{Dir: root, Redo: true})
	same(t, "after redo", left, look(t, root))
}

// TestConfigurationOfTheUsersStays changes what the turn changed too.
func TestConfigurationOfTheUsersStays(t *testing.T) {
	hermetic.Long(t)
	for name, change := range map[string]string{
		"config": `git config user.name %s`, "hook": `echo %s > .git/hooks/pre-commit`,
		"exclude": `echo %s > .git/info/exclude`,
	} {
		s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
		turn := begin(t, s, root)
		sh(t, root, fmt.Sprintf(change, "agent"))
		end(t, turn)
		sh(t, root, fmt.Sprintf(change, "mine"))
		left := look(t, root)
		same(t, name+": kept", []string{".git"}, keeps(back(t, s, undo.Request{Dir: root})))
		same(t, name, left, look(t, root))
	}
}

// TestAnAmbiguousNameIsRefused names two turns by the letters that they share.
func TestAnAmbiguousNameIsRefused(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	var ids []string
	for _, text := range []string{"one", "two"} {
		turn := begin(t, s, root)
		put(t, filepath.Join(root, "a"), text)
		ids = append(ids, end(t, turn).ID)
	}
	_, err := s.Undo(t.Context(), undo.Request{Dir: root, ID: ids[0][:3]})
	if !errors.Is(err, fault.Conflicting) || !strings.Contains(err.Error(), ids[0]) ||
		!strings.Contains(err.Error(), ids[1]) {
		t.Errorf("%v", err)
	}
}

// TestTheRepositoryOfBeforeIsFound removes and makes repositories, and asks for undo in several directories.
func TestTheRepositoryOfBeforeIsFound(t *testing.T) {
	hermetic.Long(t)
	for _, script := range []string{`rm -rf .git`, `git init -q sub`, `git init -q sub; rm -rf .git`} {
		for _, at := range []string{".", "sub", "sub/deep"} {
			s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
			sh(t, root, `mkdir -p sub/deep; echo x > sub/deep/file`)
			was := look(t, root)
			turn := begin(t, s, filepath.Join(root, "sub"))
			sh(t, root, script)
			end(t, turn)
			dir := filepath.Join(root, at)
			if all, err := s.List(dir); err != nil || len(all) != 1 {
				t.Errorf("%s: in %s, listed are %v, %v", script, at, all, err)
				continue
			}
			same(t, script, []string{}, keeps(back(t, s, undo.Request{Dir: dir})))
			same(t, script+" in "+at, was, look(t, root))
			back(t, s, undo.Request{Dir: dir, Redo: true})
			back(t, s, undo.Request{Dir: dir})
			same(t, script+" in "+at+" again", was, look(t, root))
		}
	}
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `mkdir sub`)
	turn := begin(t, s, filepath.Join(root, "sub"))
	sh(t, root, `git init -q .; echo x > sub/file`)
	end(t, turn)
	same(t, "made above", []string{"file"}, back(t, s, undo.Request{Dir: filepath.Join(root, "sub")}).Restored)
}

// TestAFailedEndGivesTheTurnUp has no workspace when the turn ends.
func TestAFailedEndGivesTheTurnUp(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	put(t, filepath.Join(root, "a"), "one")
	turn := begin(t, s, root)
	put(t, filepath.Join(root, "a"), "two")
	if err := errors.Join(os.Rename(root, root+".away"), os.WriteFile(root, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.End(t.Context(), time.Now()); err == nil {
		t.Fatal("a workspace that is gone has a snapshot")
	}
	if err := errors.Join(os.Remove(root), os.Rename(root+".away", root)); err != nil {
		t.Fatal(err)
	}
	out := back(t, s, undo.Request{Dir: root, ID: turn.ID(), TakeAll: true})
	same(t, "restored", []string{"a"}, out.Restored)
}

// TestAWorkspaceThatIsGoneComesBack removes all of it, in several ways.
func TestAWorkspaceThatIsGoneComesBack(t *testing.T) {
	hermetic.Long(t)
	for _, at := range []string{".", "src/deep"} {
		s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
		was, said := look(t, root), state(t, root)
		turn := begin(t, s, filepath.Join(root, at))
		sh(t, filepath.Dir(root), `rm -rf work`)
		end(t, turn)
		q := undo.Request{Dir: filepath.Join(root, at), DryRun: true}
		same(t, "a dry run keeps", []string{}, keeps(back(t, s, q)))
		q.DryRun = false
		same(t, "kept", []string{}, keeps(back(t, s, q)))
		same(t, "after the undo", was, look(t, root))
		same(t, "git says", said, state(t, root))
	}
}

// TestNoNameBlocksARestore has a file under a name that a restore might want, and a directory without permission.
func TestNoNameBlocksARestore(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `echo one > a; mkdir .omniagent-undo.tmp; echo x > .omniagent-undo.tmp/x`)
	was := look(t, root)
	turn := begin(t, s, root)
	sh(t, root,
		`echo two > a; rm -rf .omniagent-undo.tmp; mkdir .omniagent-undo.tmp; echo y > .omniagent-undo.tmp/y; chmod 555 .`)
	end(t, turn)
	out := back(t, s, undo.Request{Dir: root})
	sh(t, root, `chmod 755 .`)
	same(t, "kept", []string{}, keeps(out))
	delete(was, ".")
	is := look(t, root)
	delete(is, ".")
	same(t, "after the undo", was, is)
}

// TestNothingIsWrittenThroughALink puts a link in the place of git's objects.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	s, root, outside := undo.Store{Dir: t.TempDir()}, workspaceOf(t), t.TempDir()
	turn := begin(t, s, root)
	sh(t, root, `rm -rf .git/objects; ln -s `+outside+
		` .git/objects; echo x > .git/description; echo agent > src/f1.go`)
	end(t, turn)
	back(t, s, undo.Request{Dir: root})
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside are %v, %v", entries, err)
	}
}

// TestADirectoryWithAFileOfTheUsersIsKept makes a file in a directory of the turn's.
func TestADirectoryWithAFileOfTheUsersIsKept(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	turn := begin(t, s, root)
	sh(t, root, `mkdir -p made/empty; echo agent > made/a`)
	end(t, turn)
	sh(t, root, `echo mine > made/empty/mine`)
	out := back(t, s, undo.Request{Dir: root})
	same(t, "restored", []string{"made/a"}, out.Restored)
	same(t, "kept", []string{"made/empty"}, keeps(out))
	is := look(t, root)
	if is["made/empty/mine"] == "" || is["made/a"] != "" {
		t.Errorf("there is %v", is)
	}
	same(t, "redo", []string{}, keeps(back(t, s, undo.Request{Dir: root, Redo: true})))
	if is := look(t, root); is["made/a"] == "" || is["made/empty/mine"] == "" {
		t.Errorf("after redo there is %v", is)
	}
}

// TestAStoreWithBracketsInItsNameWorks has a pattern in the path of the store, and then no access to it.
func TestAStoreWithBracketsInItsNameWorks(t *testing.T) {
	s, root := undo.Store{Dir: filepath.Join(t.TempDir(), "a[x]", "undo")}, t.TempDir()
	for _, text := range []string{"one", "two", "three"} {
		turn := begin(t, s, root)
		put(t, filepath.Join(root, "a"), text)
		end(t, turn)
	}
	all, err := s.All()
	if err != nil || len(all) != 3 {
		t.Fatalf("all are %v, %v", all, err)
	}
	deleted, _, err := s.Delete(t.Context(), func(r undo.Record) bool { return r.ID == all[2].ID })
	if err != nil || len(deleted) != 1 {
		t.Errorf("deleted are %v, %v", deleted, err)
	}
	back(t, s, undo.Request{Dir: root})
	if text, err := os.ReadFile(filepath.Join(root, "a")); err != nil || string(text) != "two" {
		t.Errorf("a is %q, %v", text, err)
	}
	if err := errors.Join(os.RemoveAll(s.Dir), os.Symlink(s.Dir, s.Dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.All(); !errors.Is(err, fault.PermissionDenied) {
		t.Errorf("a store that cannot be read gives %v", err)
	}
}

// TestADirectoryThatIsGoneIsMadeAgain removes by hand the directories of what the turn has deleted.
func TestADirectoryThatIsGoneIsMadeAgain(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `mkdir -p d/e/empty; echo a > d/e/f; chmod 700 d`)
	was := look(t, root)
	turn := begin(t, s, root)
	sh(t, root, `rm -r d/e/*; chmod 711 d`)
	end(t, turn)
	sh(t, root, `rm -r d`)
	out := back(t, s, undo.Request{Dir: root, TakeOld: true})
	same(t, "kept", []string{}, keeps(out))
	same(t, "after the undo", was, look(t, root))
	turn = begin(t, s, root)
	sh(t, root, `rm -r d/e/*`)
	end(t, turn)
	sh(t, root, `rm -r d/e`)
	same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
	same(t, "after the undo", was, look(t, root))
}
