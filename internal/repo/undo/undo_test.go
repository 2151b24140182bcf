package undo_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/touch"
	"omniagent/internal/testkit/hermetic"
)

// sh runs a script in a directory. A step of it may fail.
func sh(t testing.TB, dir, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_EDITOR=true",
		"GIT_OPTIONAL_LOCKS=0", "FILTER_BRANCH_SQUELCH_WARNING=1")
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// look is an independent walk: type, mode and bytes of each path; of .git without its objects.
func look(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if filepath.Base(path) == "objects" && strings.Contains(rel, ".git") {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if text = fmt.Sprintf(" %x", sha256.Sum256(data)); filepath.Base(path) == "index" {
				text = "" // git writes it anew to note what it saw of files: state tells what it lists
			}
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
		}
		all[rel] = info.Mode().String() + text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// state is what git says of a repository, with whole hashes: how short git makes them depends on how many there are.
func state(t testing.TB, root string) string {
	return sh(t, root, `[ -d .git ] || exit 0
		git fsck --no-dangling --no-progress 2>&1; git status --porcelain=v2 --branch --ignored
		git -c core.abbrev=40 reflog --all; git for-each-ref; git ls-files -s`)
}

// workspaceOf makes a dirty workspace of a repository.
func workspaceOf(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, root, `git init -q -b main .; mkdir -p src/deep doc empty/inner
		for i in 1 2 3 4 5 6 7 8 9; do echo "line $i" > src/f$i.go; echo "d $i" > src/deep/d$i.txt; done
		printf 'dist/\n*.log\n.env\n' > .gitignore; ln -s src/f1.go link; chmod 755 src/f2.go; head -c 30000 /dev/urandom > doc/blob.bin
		git add -A; git commit -qm one; echo two >> src/f1.go; git commit -qam two; git branch side; git tag v1
		git checkout -q side; echo side > side.txt; git add side.txt; git commit -qm side; git checkout -q main
		echo three >> src/f3.go; git commit -qam three; git gc -q
		echo four > src/f4.go; git commit -qam four
		echo stashed >> src/f5.go; git stash -q
		echo dirty >> src/f6.go; echo staged >> src/f7.go; git add src/f7.go; echo both >> src/f7.go
		echo new > untracked.txt; mkdir dist; echo built > dist/out.js; echo x > a.log; echo SECRET=1 > .env; chmod 600 .env
		chmod 700 doc`)
	return root
}

func begin(t testing.TB, s undo.Store, dir string) *undo.Turn {
	t.Helper()
	turn, err := s.Begin(t.Context(), undo.Origin{Dir: dir, Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	turn.Watch(touch.Only(func(string) bool { return true }))
	return turn
}

func end(t testing.TB, turn *undo.Turn) undo.Record {
	t.Helper()
	r, err := turn.End(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func back(t testing.TB, s undo.Store, q undo.Request) undo.Outcome {
	t.Helper()
	out, err := s.Undo(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// steps are what destroys. Each may fail.
func steps() []string {
	return []string{
		"git reset -q --hard", "git reset -q --hard HEAD~2", "git clean -qfdx", "git clean -qfd", "rm -rf src",
		"rm -rf .git",
		"rm -rf ./* .env", "git stash drop -q", "git stash pop -q", "git stash clear", "git branch -D side",
		"git reflog expire --expire=now --all", "git gc -q --prune=now", "git repack -qad; git prune-packed",
		"git commit -qam agent", "git add -A; git commit -qm agent", "git checkout -q side", "git checkout -q -b fresh",
		"git rebase -q side", "git rebase side; git rebase --abort", "git merge -q side", "git merge side; true",
		"git tag -d v1",
		"git pack-refs --all", "git config user.name Eve", "git checkout -q -- .", "git rm -rqf src", "git mv src lib",
		"sed -i s/line/LINE/ src/*.go", "mv src lib", "mv doc/blob.bin blob", "chmod -R 700 src",
		"chmod 000 untracked.txt", "chmod -R go-rwx .git/refs .git/hooks", "chmod -R 777 .",
		"ln -sf /etc/passwd link", "rm link; mkdir link; echo x > link/y", "rm -rf doc; echo doc > doc",
		"rmdir empty/inner",
		"rm untracked.txt; ln -s nowhere untracked.txt", "echo agent > .env", "rm -rf dist; ln -s src dist",
		"mkdir -p a/b/c; echo z > a/b/c/z",
		"touch -d 2001-01-01 src/f1.go", "printf same > untracked.txt; printf emas > untracked.txt", ": > src/f8.go",
		"git init -q nested; echo n > nested/n", "git worktree add -q other-$$ side", "rm .git/index",
		"rm -rf .git/refs",
		"git update-ref -d refs/heads/main", "cp -r src copy", "git switch -q --detach HEAD~1",
		"git filter-branch -f --msg-filter cat HEAD",
	}
}

// scripts is how many random scripts are run: UNDO_SCRIPTS of scripts/test, or else that many.
func scripts(times int) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("OMNIAGENT_UNDO_SCRIPTS"), 10, 32); err == nil {
		return n
	}
	return uint64(times)
}

// TestRandomScriptsAreTakenBack runs random destructive scripts and takes each back, then back again, and back.
func TestRandomScriptsAreTakenBack(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	const lanes = 4
	for lane := range uint64(lanes) {
		t.Run(strconv.FormatUint(lane, 10), func(t *testing.T) {
			t.Parallel()
			s := undo.Store{Dir: t.TempDir()}
			root := workspaceOf(t)
			said, was := state(t, root), look(t, root)
			for seed := lane; seed < scripts(hermetic.Times(60, 8)); seed += lanes {
				takeBack(t, s, root, seed, was, said)
			}
		})
	}
}

// takeBack runs one script. Git is asked after every third one only: it takes most of the time.
func takeBack(t *testing.T, s undo.Store, root string, seed uint64, was map[string]string, said string) {
	dice := rand.New(rand.NewPCG(seed, 18))
	var script []string
	all := steps()
	for range 1 + dice.IntN(4) {
		script = append(script, all[dice.IntN(len(all))])
	}
	text := strings.Join(script, "\n")
	turn := begin(t, s, root)
	sh(t, root, text)
	left := look(t, root)
	if r := end(t, turn); r.Files == 0 {
		if diff := cmp.Diff(was, left); diff != "" {
			t.Fatalf("script %d was taken for nothing:\n%s\n%s", seed, text, diff)
		}
		return
	}
	out := back(t, s, undo.Request{Dir: root})
	if diff := cmp.Diff(was, look(t, root)); diff != "" || len(out.NotRestored) > 0 {
		t.Fatalf("script %d is not taken back:\n%s\nkept %v\n(-was +is):\n%s", seed, text, out.NotRestored, diff)
	}
	if dice.IntN(3) > 0 {
		return
	}
	if diff := cmp.Diff(said, state(t, root)); diff != "" {
		t.Fatalf("after script %d git says (-was +is):\n%s\n%s", seed, text, diff)
	}
	if dice.IntN(2) > 0 {
		return
	}
	out = back(t, s, undo.Request{Dir: root, Redo: true})
	if diff := cmp.Diff(left, look(t, root)); diff != "" || len(out.NotRestored) > 0 {
		t.Fatalf("script %d is not done again:\n%s\nkept %v\n(-was +is):\n%s", seed, text, out.NotRestored, diff)
	}
	back(t, s, undo.Request{Dir: root})
	if diff := cmp.Diff(said, state(t, root)); diff != "" {
		t.Fatalf("script %d is not taken back again:\n%s\n%s", seed, text, diff)
	}
}

// times are the names, sizes, modes and times of all that is in directories.
func times(t testing.TB, dirs ...string) string {
	t.Helper()
	return sh(t, "/", `find `+strings.Join(dirs, " ")+` -printf '%p %T@ %s %m\n' | sort`)
}

// TestADryRunWritesNothing looks at the workspace and at the snapshots before and after.
func TestADryRunWritesNothing(t *testing.T) {
	if dir := os.Getenv("UNDO_TEST_DIR"); dir != "" {
		begin(t, undo.Store{Dir: os.Getenv("UNDO_TEST_STORE")}, dir)
		return
	}
	base := t.TempDir()
	s, root := undo.Store{Dir: filepath.Join(base, "snapshots")}, workspaceOf(t)
	request := undo.Request{Dir: root, DryRun: true}
	dry := func(want int, kept ...string) {
		t.Helper()
		was := times(t, base, root)
		out, err := s.Undo(t.Context(), request)
		if want < 0 && !errors.Is(err, fault.NotFoundCode) || want >= 0 && err != nil {
			t.Fatal(err)
		}
		if len(out.Restored) < want {
			t.Errorf("it would restore %v only", out.Restored)
		}
		var names []string
		for _, k := range out.NotRestored {
			names = append(names, k.Path)
		}
		if diff := cmp.Diff(kept, names); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(was, times(t, base, root)); diff != "" {
			t.Errorf("written (-was +is):\n%s", diff)
		}
	}
	dry(-1)
	turn := begin(t, s, root)
	sh(t, root, `rm -rf src; echo agent > made; git add -A; git commit -qm agent`)
	end(t, turn)
	sh(t, root, `GIT_OPTIONAL_LOCKS=1 git status`)
	dry(20)
	sh(t, root, `echo mine > made`)
	dry(20, "made")
	back(t, s, undo.Request{Dir: root})
	cmd := exec.Command(os.Args[0], "-test.run=TestADryRunWritesNothing$")
	cmd.Env = append(os.Environ(), "UNDO_TEST_DIR="+root, "UNDO_TEST_STORE="+s.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sh(t, root, `git reset -q --hard; rm -rf doc`)
	if _, err := s.Undo(t.Context(), undo.Request{Dir: root, DryRun: true}); !errors.Is(err, fault.Conflicting) {
		t.Errorf("a dry run of a turn whose process died gives %v", err)
	}
	all, err := s.List(root)
	if err != nil {
		t.Fatal(err)
	}
	request.ID, request.TakeAll = all[0].ID, true
	dry(2)
}

// TestWhatChangesRightAfterTheTurnStays changes a file between the end of a turn and its second snapshot.
func TestWhatChangesRightAfterTheTurnStays(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	was := look(t, root)
	turn := begin(t, s, root)
	sh(t, root, `echo agent > src/f1.go; echo agent > src/f2.go; echo agent > made`)
	at := time.Now()
	sh(t, root, `sleep 0.05 # the clock of files is a slow one
		echo mine > src/f1.go; echo mine > mine`)
	mine := look(t, root)
	if _, err := turn.End(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, k := range back(t, s, undo.Request{Dir: root}).NotRestored {
		kept = append(kept, k.Path)
	}
	if diff := cmp.Diff([]string{"mine", "src/f1.go"}, kept, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	want := maps.Clone(was)
	want["src/f1.go"], want["mine"] = mine["src/f1.go"], mine["mine"]
	if diff := cmp.Diff(want, look(t, root)); diff != "" {
		t.Errorf("(-want +is):\n%s", diff)
	}
}

// TestASharedDirectoryIsNoWorkspace: a repository that anybody can put into /tmp does not cover the directories in it.
func TestASharedDirectoryIsNoWorkspace(t *testing.T) {
	shared := t.TempDir()
	work := filepath.Join(shared, "work")
	sh(t, shared, `mkdir .git work`)
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	want, err := filepath.EvalSymlinks(work)
	if root, failed := (undo.Store{Dir: t.TempDir()}).Root(work); err != nil || failed != nil || root != want {
		t.Errorf("it covers %s, %v %v", root, failed, err)
	}
}

// TestWithoutGit takes back what happened in a directory that has no repository.
func TestWithoutGit(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root,
		`mkdir -p a/b empty; echo 1 > a/one; echo 2 > a/b/two; ln -s a/one link; chmod 600 a/one; touch -d 2001-01-01 a/b/two`)
	was := look(t, root)
	turn := begin(t, s, root)
	sh(t, root, `rm -rf a empty; echo x > a; ln -sfn a link; echo new > new`)
	r := end(t, turn)
	left := look(t, root)
	if out := back(t, s, undo.Request{Dir: root, DryRun: true}); len(out.Restored) == 0 || len(out.NotRestored) > 0 {
		t.Errorf("a dry run finds %v and keeps %v", out.Restored, out.NotRestored)
	}
	if diff := cmp.Diff(left, look(t, root)); diff != "" {
		t.Fatalf("a dry run changed something:\n%s", diff)
	}
	back(t, s, undo.Request{Dir: root, ID: r.ID[:12]})
	if diff := cmp.Diff(was, look(t, root)); diff != "" {
		t.Fatalf("(-was +is):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(root, "a/b/two"))
	if err != nil || info.ModTime().Year() != 2001 {
		t.Errorf("the time of a restored file is %v, %v", info.ModTime(), err)
	}
	if _, err := s.Undo(t.Context(), undo.Request{Dir: root}); !errors.Is(err, fault.NotFoundCode) {
		t.Errorf("a second undo gives %v", err)
	}
}

// TestWhatIsChangedByHandStays changes files after the turn.
func TestWhatIsChangedByHandStays(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	was := look(t, root)
	turn := begin(t, s, root)
	sh(t, root, `echo agent > src/f1.go; echo agent > src/f2.go; echo agent > made; git add -A; git commit -qm agent`)
	end(t, turn)
	sh(t, root, `echo mine > src/f1.go; git commit -qam mine`)
	mine := look(t, root)
	out := back(t, s, undo.Request{Dir: root})
	var kept []string
	for _, k := range out.NotRestored {
		kept = append(kept, k.Path)
	}
	if diff := cmp.Diff([]string{"src/f1.go", ".git"}, kept, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	is := look(t, root)
	for name, want := range map[string]string{
		"src/f1.go": mine["src/f1.go"], "src/f2.go": was["src/f2.go"], "made": "",
		".git/refs/heads/main": mine[".git/refs/heads/main"],
	} {
		if is[name] != want {
			t.Errorf("%s is %q, not %q", name, is[name], want)
		}
	}
	back(t, s, undo.Request{Dir: root, Redo: true})
	if diff := cmp.Diff(mine, look(t, root)); diff != "" {
		t.Fatalf("redo (-want +got):\n%s", diff)
	}
	back(t, s, undo.Request{Dir: root, TakeOld: true})
	if diff := cmp.Diff(was, look(t, root)); diff != "" {
		t.Fatalf("with the old ones (-want +got):\n%s", diff)
	}
}

// TestADirectoryWithSomethingElseStays puts files into directories that the turn made. A dry run says the same.
func TestADirectoryWithSomethingElseStays(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	turn := begin(t, s, root)
	sh(t, root, `mkdir -p a/b/c d/e repo; git init -q repo
		echo agent | tee a/b/c/made a/made d/e/made d/made > /dev/null`)
	end(t, turn)
	sh(t, root, `echo mine > a/b/mine; mkdir -p d/e/f/g; echo mine > d/e/f/g/mine`)
	said := back(t, s, undo.Request{Dir: root, DryRun: true})
	out := back(t, s, undo.Request{Dir: root})
	sorted := cmpopts.SortSlices(strings.Compare)
	want := []undo.NotRestored{
		{Path: "a/b", Reason: "it contains files that the turn did not create"},
		{Path: "d/e", Reason: "it contains files that the turn did not create"},
	}
	if diff := cmp.Diff(want, out.NotRestored) + cmp.Diff(said.NotRestored, out.NotRestored) +
		cmp.Diff(said.Restored, out.Restored, sorted); diff != "" {
		t.Errorf("%s", diff)
	}
	if left := sh(t, root, "find a d repo -type f 2>/dev/null; true"); left != "a/b/mine\nd/e/f/g/mine\n" {
		t.Errorf("left are\n%s", left)
	}
}

// TestAMereLookIsNoChange has git refresh its index between the turn and the undo.
func TestAMereLookIsNoChange(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	was := look(t, root)
	turn := begin(t, s, root)
	sh(t, root, `git add -A; git commit -qm agent; touch src/*.go`)
	end(t, turn)
	sh(t, root, `GIT_OPTIONAL_LOCKS=1 git status; git update-index -q --really-refresh`)
	if out := back(t, s, undo.Request{Dir: root}); len(out.NotRestored) > 0 {
		t.Errorf("kept %v", out.NotRestored)
	}
	if diff := cmp.Diff(was, look(t, root)); diff != "" {
		t.Fatalf("(-was +is):\n%s", diff)
	}
}

// TestAKilledRestoreIsCompleted kills a process that takes a turn back, at many moments.
func TestAKilledRestoreIsCompleted(t *testing.T) {
	hermetic.Long(t)
	if dir := os.Getenv("UNDO_TEST_DIR"); dir != "" {
		_, err := undo.Store{Dir: os.Getenv("UNDO_TEST_STORE")}.Undo(t.Context(), undo.Request{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	sh(t, root, `for i in $(seq 400); do echo $i > doc/n$i; done`)
	was := look(t, root)
	dice, resumed := rand.New(rand.NewPCG(1, 1)), 0
	for range kills(t) {
		turn := begin(t, s, root)
		sh(t, root, `rm -rf src doc link .git`)
		end(t, turn)
		killed(t, "TestAKilledRestoreIsCompleted", s, root, time.Duration(dice.IntN(120))*time.Millisecond)
		out, err := s.Undo(t.Context(), undo.Request{Dir: root})
		if err != nil && !errors.Is(err, fault.NotFoundCode) {
			t.Fatal(err)
		}
		if out.Resumed {
			resumed++
		}
		if diff := cmp.Diff(was, look(t, root)); diff != "" || len(out.NotRestored) > 0 {
			t.Fatalf("kept %v (-was +is):\n%s", out.NotRestored, diff)
		}
	}
	t.Logf("%d of %d were completed", resumed, kills(t))
}

// kills is how often a process is killed.
func kills(t *testing.T) int { return hermetic.Often(t, "OMNIAGENT_KILLS", 12) }

// killed starts a test in a process of its own and kills it after a time.
func killed(t *testing.T, test string, s undo.Store, root string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+test+"$")
	cmd.Env = append(os.Environ(), "UNDO_TEST_DIR="+root, "UNDO_TEST_STORE="+s.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	clock := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	clock.Stop()
}

// TestAKilledSnapshotLosesNothing kills a process that takes the snapshots of a turn and destroys everything between
// them, at many moments.
func TestAKilledSnapshotLosesNothing(t *testing.T) {
	hermetic.Long(t)
	if dir := os.Getenv("UNDO_TEST_DIR"); dir != "" {
		turn := begin(t, undo.Store{Dir: os.Getenv("UNDO_TEST_STORE")}, dir)
		for _, name := range []string{"src", ".git", "doc", "link", "untracked.txt"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		end(t, turn)
		return
	}
	root := workspaceOf(t)
	was := look(t, root)
	dice, back := rand.New(rand.NewPCG(2, 2)), 0
	for range kills(t) {
		s := undo.Store{Dir: t.TempDir()} // so that the first snapshot has all to do
		killed(t, "TestAKilledSnapshotLosesNothing", s, root, time.Duration(20+dice.IntN(100))*time.Millisecond)
		out, err := s.Undo(t.Context(), undo.Request{Dir: root, TakeOld: true, TakeAll: true})
		if err != nil && !errors.Is(err, fault.NotFoundCode) {
			t.Fatal(err)
		}
		if err == nil {
			back++
		}
		if diff := cmp.Diff(was, look(t, root)); diff != "" || len(out.NotRestored) > 0 {
			t.Fatalf("kept %v (-was +is):\n%s", out.NotRestored, diff)
		}
		if all, err := s.List(root); err != nil || len(all) != 0 && len(all) != 2 {
			t.Fatalf("left are %v, %v", all, err)
		}
	}
	t.Logf("%d of %d had begun", back, kills(t))
}

// TestATurnWhoseProcessDiedIsTakenBackByName leaves a turn without its end. What was changed since then may be
// somebody else's, so that its identifier is asked for.
func TestATurnWhoseProcessDiedIsTakenBackByName(t *testing.T) {
	if dir := os.Getenv("UNDO_TEST_DIR"); dir != "" {
		begin(t, undo.Store{Dir: os.Getenv("UNDO_TEST_STORE")}, dir)
		return
	}
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	was := look(t, root)
	cmd := exec.Command(os.Args[0], "-test.run=TestATurnWhoseProcessDiedIsTakenBackByName$")
	cmd.Env = append(os.Environ(), "UNDO_TEST_DIR="+root, "UNDO_TEST_STORE="+s.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sh(t, root, `git reset -q --hard; git clean -fdxq; echo mine > mine`)
	left := look(t, root)
	_, err := s.Undo(t.Context(), undo.Request{Dir: root})
	if !errors.Is(err, fault.Conflicting) || !strings.Contains(err.Error(), "died") {
		t.Errorf("without its name: %v", err)
	}
	if diff := cmp.Diff(left, look(t, root)); diff != "" {
		t.Fatalf("a refused undo changed something (-was +is):\n%s", diff)
	}
	all, err := s.List(root)
	if err != nil || len(all) != 1 || !all[0].Abandoned || !all[0].Ended.IsZero() { // so that it can be resumed
		t.Fatalf("listed are %+v, %v", all, err)
	}
	// No calls are recorded, so nothing says what the agent changed.
	for _, dry := range []bool{true, false} {
		out, err := s.Undo(t.Context(), undo.Request{Dir: root, ID: all[0].ID, DryRun: dry})
		if err != nil || len(out.Restored) > 0 || !slices.ContainsFunc(out.NotRestored, func(k undo.NotRestored) bool {
			return k.Path == "mine" && k.Cause == undo.CauseUncertain
		}) {
			t.Fatalf("dry %t: %v: restored %q, kept %+v", dry, err, out.Restored, out.NotRestored)
		}
	}
	if diff := cmp.Diff(left, look(t, root)); diff != "" {
		t.Fatalf("what may be somebody else's was changed (-was +is):\n%s", diff)
	}
	if all, err = s.List(root); err != nil || len(all) != 1 || all[0].Files > 0 || all[0].Doubtful == 0 {
		t.Fatalf("listed are %+v, %v", all, err)
	}
	back(t, s, undo.Request{Dir: root, ID: all[0].ID, TakeAll: true})
	if diff := cmp.Diff(was, look(t, root)); diff != "" {
		t.Fatalf("(-was +is):\n%s", diff)
	}
}

// TestNothingIsWrittenIntoTheRepository looks at times and bytes before and after a turn without changes.
func TestNothingIsWrittenIntoTheRepository(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, workspaceOf(t)
	was := times(t, root)
	if r := end(t, begin(t, s, root)); r.Files != 0 {
		t.Errorf("%d files changed: %v", r.Files, r.Changed)
	}
	if diff := cmp.Diff(was, times(t, root)); diff != "" {
		t.Errorf("(-was +is):\n%s", diff)
	}
	if all, err := s.List(root); err != nil || len(all) > 0 {
		t.Errorf("a turn without changes is kept: %v, %v", all, err)
	}
}
