package fork_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// To remove or replace one name of a file does not change what its other names have.
func TestApplyToHardLinks(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		g.must(g.dir, "echo 1 >first; ln first second; ln first third; ln first zz; ln first zzz")
		f := g.make("try", tier)
		g.run(f, "rm first zz; echo 2 >new; mv new second; echo 3 >new; mv new third; rm zzz")
		if out := g.apply(f); len(out.Conflicts) > 0 || len(out.Applied) != 5 {
			t.Errorf("%+v", out)
		}
		if got := g.sh(g.dir, "cat second third; ls first zz zzz 2>&1 | wc -l"); got != "2\n3\n3\n" {
			t.Errorf("%q", got)
		}
		if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); err != nil {
			t.Fatal(err)
		}
		if got := g.sh(g.dir, "cat first second third zz zzz"); got != "1\n1\n1\n1\n1\n" {
			t.Errorf("%q", got)
		}
	})
}

// The names of a file are names of one file in a copy too. In an overlay the kernel parts them.
func TestHardLinksInACopy(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		g.must(g.dir, "echo 1 >first; ln first src/second")
		f := g.make("try", tier)
		g.run(f, "echo 2 >>first; cat src/second >>seen")
		want := "1\n2\n"
		if tier == fork.Overlay {
			want = "1\n"
		}
		if out := g.apply(f); len(out.Conflicts) > 0 {
			t.Errorf("%+v", out)
		}
		if got := g.read("seen"); got != want {
			t.Errorf("%q", got)
		}
		if got := g.read("first"); got != "1\n2\n" {
			t.Errorf("%q", got)
		}
	})
}

// What the fork and the workspace have changed comes together, and undo takes it back.
func TestApply(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		f := g.make("try", tier)
		g.run(f, `sed -i s/^10$/ten/ src/numbers; echo new >src/new; rm src/one; chmod 700 run; mkdir -p deep/er
			ln -sf src/two link; echo theirs >src/two; echo more >>staged; rm -r empty; echo KEY >.env
			rm modules/ignored; mkdir modules/ignored; echo x >modules/ignored/x; printf 'a\0b' >binary`)
		g.must(g.dir, `sed -i s/^90$/ninety/ src/numbers; echo mine >src/two; echo own >src/own`)
		before := look(t, g.dir)
		out := g.apply(f)
		want := fork.Outcome{
			Turn: out.Turn, Merged: []string{"src/numbers"},
			Applied: []string{
				".env", "binary", "deep", "deep/er", "empty", "link", "modules/ignored", "modules/ignored/x", "run",
				"src/new", "src/one", "staged",
			},
			Conflicts: []fork.Conflict{{
				Path: "src/two", Marked: true,
				Reason: "the workspace and the fork have changed the same lines; both stand in it, between marks",
			}},
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Error(diff)
		}
		marked := "<<<<<<< workspace\nmine\n=======\ntheirs\n>>>>>>> fork try\n"
		if got := g.read("src/two"); got != marked {
			t.Errorf("%q", got)
		}
		if got := g.read("src/numbers"); !strings.Contains(got, "\nten\n") || !strings.Contains(got, "\nninety\n") {
			t.Errorf("%q", got)
		}
		if got := g.sh(g.dir,
			"cat link .env src/own src/new modules/ignored/x; ls -d run empty src/one deep/er"); got !=
			marked+"KEY\nown\nnew\nx\nls: cannot access 'empty': No such file or directory\n"+
				"ls: cannot access 'src/one': No such file or directory\ndeep/er\nrun\n" {
			t.Errorf("%s", got)
		}
		stand := func(o fork.Outcome) bool { return len(o.Conflicts) == 1 && o.Conflicts[0].Path == "src/two" }
		if again := g.apply(f); again.Turn != "" || len(again.Applied)+len(again.Merged) > 0 || !stand(again) {
			t.Errorf("again: %+v", again)
		}
		g.run(f, "sed -i s/^50$/fifty/ src/numbers")
		if again := g.apply(f); !cmp.Equal(again.Merged, []string{"src/numbers"}) || !stand(again) {
			t.Errorf("after more: %+v", again)
		}
		for range 2 {
			if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); err != nil {
				t.Fatal(err)
			}
		}
		again := g.apply(f)
		if len(again.Applied) != len(want.Applied) {
			t.Errorf("once it was taken back: %+v", again)
		}
		if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); err != nil {
			t.Fatal(err)
		}
		after := look(t, g.dir)
		for name, was := range before {
			mode, _, _ := strings.Cut(was, " ")
			if !strings.HasPrefix(after[name], mode) || name != ".git/index" && sumIn(was) != sumIn(after[name]) {
				t.Errorf("%s is not back: %q, %q", name, was, after[name])
			}
		}
	})
}

func sumIn(looked string) string {
	if parts := strings.Fields(looked); len(parts) > 1 {
		return parts[1]
	}
	return ""
}

// Commits become commits of the branch, with what is staged, if the workspace has not moved; else a branch.
func TestApplyCommits(t *testing.T) {
	hermetic.Long(t)
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		f, other := g.make("try", tier), g.make("other", tier)
		g.run(f, "echo 2 >src/2; git add src; git commit -qm second; echo 3 >src/3; git add src/3; git gc -q "+
			"--prune=now")
		status, log := g.run(f, "git status --porcelain"), g.run(f, "git log --format=%H")
		out := g.apply(f)
		if out.Commits != 1 || out.Branch != "main" || !out.InPlace || len(out.Conflicts) > 0 {
			t.Errorf("%+v", out)
		}
		if got := g.sh(g.dir, "git log --format=%H"); got != log {
			t.Errorf("log %s, want %s", got, log)
		}
		if got := g.sh(g.dir, "git status --porcelain"); got != status {
			t.Errorf("status:\n%s\nwant:\n%s", got, status)
		}
		if got := g.sh(g.dir, "git fsck --no-dangling --no-progress 2>&1"); got != "" {
			t.Error(got)
		}
		g.run(f, "git commit -qam third")
		if out = g.apply(f); out.Commits != 1 || !out.InPlace {
			t.Errorf("the next: %+v", out)
		}
		for range 2 {
			if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); err != nil {
				t.Fatal(err)
			}
		}
		if out = g.apply(f); out.Commits != 2 || !out.InPlace {
			t.Errorf("once they were taken back: %+v", out)
		}
		g.run(other, "git checkout -qb feature; echo f >src/f; git add src/f; git commit -qm feature")
		out = g.apply(other)
		if out.Commits != 1 || out.Branch != "fork/other" || out.InPlace || g.read("src/f") != "f\n" {
			t.Errorf("%+v", out)
		}
		if got := g.sh(g.dir, "git log -1 --format=%s fork/other; git rev-parse --abbrev-ref HEAD"); got !=
			"feature\nmain\n" {
			t.Error(got)
		}
		third := g.make("third", tier)
		g.run(third, "git checkout -qb feature; echo g >src/g; git add src/g; git commit -qm feature")
		if out = g.apply(third); out.Branch != "feature" || !out.InPlace {
			t.Errorf("%+v", out)
		}
		if got := g.sh(g.dir, "git rev-parse --abbrev-ref HEAD"); got != "feature\n" {
			t.Error(got)
		}
		if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); err != nil {
			t.Fatal(err)
		}
		if got := g.sh(g.dir, "git rev-parse --abbrev-ref HEAD; ls src/g 2>/dev/null"); got != "main\n" {
			t.Error(got)
		}
	})
}

// A commit in the workspace does not move the branches of the fork.
func TestBranchesStand(t *testing.T) {
	g := newRepository(t)
	f := g.make("try", "")
	was := g.run(f, "git rev-parse HEAD")
	g.must(g.dir, "git commit -qam mine; git branch more; git pack-refs --all")
	if got := g.run(f, "git rev-parse HEAD"); got != was {
		t.Errorf("HEAD moved from %s to %s", was, got)
	}
}

// Without a repository everything is brought home all the same.
func TestApplyWithoutGit(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newGround(t)
		g.must(g.dir, "seq 20 >numbers; echo a >a; echo b >b")
		f := g.make("", tier)
		g.run(f, "sed -i s/^2$/two/ numbers; rm a; echo c >c")
		g.must(g.dir, "sed -i s/^19$/nineteen/ numbers; echo mine >a")
		out := g.apply(f)
		if !cmp.Equal(out.Merged, []string{"numbers"}) || !cmp.Equal(out.Applied, []string{"c"}) ||
			len(out.Conflicts) != 1 || out.Conflicts[0].Path != "a" || g.read("a") != "mine\n" {
			t.Errorf("%+v", out)
		}
	})
}

// Bad input gets an answer that says what to do.
func TestRefused(t *testing.T) {
	g := newRepository(t)
	f := g.make("try", "")
	check := func(what string, err error, code fault.Code, words string) {
		t.Helper()
		if !errors.Is(err, code) || !strings.Contains(err.Error()+fault.Of(err).Suggestion, words) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := g.store.Make(t.Context(), fork.Wanted{Dir: g.dir, Name: "try"})
	check("a name twice", err, fault.AlreadyExists, "try")
	_, err = g.store.Make(t.Context(), fork.Wanted{Dir: g.dir, Name: "../try"})
	check("a bad name", err, fault.ArgError, "../try")
	_, err = g.store.Open("nobody")
	check("an unknown name", err, fault.NotFoundCode, "fork list")
	_, err = f.Dial("127.0.0.1:1")
	check("nothing runs", err, fault.Conflicting, "fork run")
	var out bytes.Buffer
	work := g.start(f, "read x", &out)
	_ = work
	g2 := &ground{t: t, dir: g.dir, store: g.store, snapshots: g.snapshots}
	if _, err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	g2.must(filepath.Dir(g.dir), "mv project elsewhere")
	_, err = f.Apply(t.Context(), g.snapshots, fork.Request{})
	check("the workspace is gone", err, fault.FileMissing, "no longer exists")
	_, err = f.Changes(t.Context())
	check("the workspace is gone", err, fault.FileMissing, "no longer exists")
	if _, err = f.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	g2.must(filepath.Dir(g.dir), "mv elsewhere project; mkdir linked; cd project; git worktree add -q ../linked")
	_, err = g.store.Make(t.Context(), fork.Wanted{Dir: filepath.Join(filepath.Dir(g.dir), "linked"), Tier: fork.Copy})
	check("a linked worktree", err, fault.ServiceDown, "its repository is outside of it")
	if _, err := os.Stat(g.dir); err != nil {
		t.Error(err)
	}
}

// A linked worktree has its repository elsewhere, which is covered too: what is destroyed there and what is committed.
func TestLinkedWorktree(t *testing.T) {
	g := newRepository(t)
	g.must(g.dir, "git commit -qam all; git worktree add -q -b side ../linked")
	main, linked := look(t, g.dir), filepath.Join(filepath.Dir(g.dir), "linked")
	w := &ground{t: t, dir: linked, store: g.store, snapshots: g.snapshots}
	f := w.make("linked", fork.Overlay)
	w.run(f, "echo l >l; git add l; git commit -qm linked; git gc -q --prune=now; git branch -D main 2>/dev/null "+
		"|| true")
	if diff := cmp.Diff(main, look(t, g.dir)); diff != "" {
		t.Errorf("the repository was changed: %s", diff)
	}
	out := w.apply(f)
	if out.Commits != 1 || !out.InPlace || out.Branch != "side" {
		t.Errorf("%+v", out)
	}
	if got := w.sh(linked,
		"git log -1 --format=%s; git status --porcelain; git fsck --no-dangling 2>&1 | grep -v Check"); got !=
		"linked\n" {
		t.Error(got)
	}
	ruin := w.make("ruin", fork.Overlay)
	main = look(t, g.dir)
	w.run(ruin, "rm -rf ./* \"$(git rev-parse --git-common-dir)\"/* || true")
	if diff := cmp.Diff(main, look(t, g.dir)); diff != "" {
		t.Errorf("the repository was changed: %s", diff)
	}
}

// A submodule's files come home, and its repository is as private as all else.
func TestSubmodule(t *testing.T) {
	g := newRepository(t)
	g.must(filepath.Dir(g.dir), "git init -q -b main part; cd part; echo p >p; git add p; git commit -qm p")
	g.must(g.dir, "git -c protocol.file.allow=always submodule add -q ../part part; git commit -qam part")
	before := look(t, g.dir)
	f := g.make("", "")
	g.run(f, "cd part; echo q >q; git add q; git commit -qm q; git gc -q --prune=now; rm p")
	if diff := cmp.Diff(before, look(t, g.dir)); diff != "" {
		t.Errorf("the workspace was changed: %s", diff)
	}
	if out := g.apply(f); !cmp.Equal(out.Applied, []string{"part/p", "part/q"}) || len(out.Conflicts) > 0 {
		t.Errorf("%+v", out)
	}
	g.run(f, "git commit -qam 'another part'")
	if out := g.apply(f); out.Commits != 1 || len(out.Conflicts) != 1 || out.Conflicts[0].Path != "part" ||
		!strings.Contains(out.Conflicts[0].Reason, "exists only in the fork") {
		t.Errorf("a commit with a submodule's that stays in the fork: %+v", out)
	}
}

// What the user has staged since stays staged, and commits arrive beside.
func TestDirtyIndex(t *testing.T) {
	g := newRepository(t)
	f := g.make("try", "")
	g.run(f, "echo c >c; git add c; git commit -qm c")
	g.must(g.dir, "echo own >own; git add own")
	if out := g.apply(f); out.InPlace || out.Branch != "fork/try" || !cmp.Equal(out.Applied, []string{"c"}) {
		t.Errorf("%+v", out)
	}
	if got := g.sh(g.dir, "git diff --cached --name-only; git log -1 --format=%s"); got != "own\nstaged\nfirst\n" {
		t.Error(got)
	}
	g.run(f, "echo d >d; git add d; git commit -qm d")
	if out := g.apply(f); out.Branch != "fork/try" || out.Commits != 1 {
		t.Errorf("%+v", out)
	}
	if got := g.sh(g.dir, "git log --format=%s fork/try"); got != "d\nc\nfirst\n" {
		t.Error(got)
	}
}

// A workspace that is reached over a link is the same one.
func TestOverALink(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		g.must(filepath.Dir(g.dir), "ln -s project link")
		before := look(t, g.dir)
		w := &ground{t: t, dir: filepath.Join(filepath.Dir(g.dir), "link"), store: g.store, snapshots: g.snapshots}
		f := w.make("", tier)
		w.run(f, "rm -rf src; echo x >x")
		if diff := cmp.Diff(before, look(t, g.dir)); diff != "" {
			t.Errorf("the workspace was changed: %s", diff)
		}
	})
}

// A branch never has what git ignores. Where git cannot tell for a path, no branch is made.
func TestABranchTakesNothingIgnored(t *testing.T) {
	hermetic.Long(t)
	g := newRepository(t)
	g.must(filepath.Dir(g.dir), "git init -q -b main part; cd part; echo p >p; git add p; git commit -qm p")
	g.must(g.dir, "git -c protocol.file.allow=always submodule add -q ../part part; git add .; git commit -qam part")
	f := g.make("try", "")
	g.run(f, "echo q >part/q; echo KEY >.env; echo new >new")
	branch, count, err := f.Branch(t.Context(), "new")
	if err != nil || branch != "fork/try" || count != 1 {
		t.Fatalf("%s, %d commits, %v", branch, count, err)
	}
	if got := g.sh(g.dir, "git show --format= --name-only fork/try"); got != "new\n" {
		t.Error(got)
	}
	f = g.make("beyond", "")
	g.run(f, `rm link; mkdir link; echo x >link/x; echo KEY >.env; echo '*.o' >link/.gitignore; echo o >link/y.o
		git init -q own; echo n >own/n; printf a >'two
lines'; ln -s new other; chmod +x src/one; head -c 20000000 /dev/zero >large`)
	if branch, _, err = f.Branch(t.Context(), "new"); branch != "fork/beyond" || err != nil {
		t.Fatalf("%s, %v", branch, err)
	}
	got := g.sh(g.dir, "git diff-tree -r -z --no-commit-id --format= --raw fork/beyond | tr '\\0' '|'")
	for _, want := range []string{"D|link|", "A|link/x|", "A|link/.gitignore|", "A|two\nlines|", "120000", "A|large|"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for _, wrong := range []string{"own", ".env", "y.o"} {
		if strings.Contains(got, wrong) {
			t.Errorf("%s is in %s", wrong, got)
		}
	}
	if got := g.sh(g.dir, "git cat-file -p fork/beyond:link/x; git fsck 2>&1 | grep -v dangling; git status --porcelain"); got != "x\n" {
		t.Error(got)
	}
}
