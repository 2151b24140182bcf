package undo_test

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the hash of git
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/testkit/hermetic"
)

// packed makes a repository with a pack, loose objects and an unreachable one.
func packed(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, root, `git init -q .; for i in 1 2 3; do echo $i > f$i; git add -A; git commit -qm $i; done; git gc -q
		for i in 4 5; do echo $i > f$i; git add -A; git commit -qm $i; done
		echo unreachable | git hash-object -w --stdin > ../loose`)
	return root
}

// unreachable is what git says of the object that nothing refers to.
const unreachable = `; git cat-file -p $(cat ../loose)`

// TestATurnThatOnlyDestroysObjectsIsTakenBack has nothing else changed.
func TestATurnThatOnlyDestroysObjectsIsTakenBack(t *testing.T) {
	hermetic.Long(t)
	for _, script := range []string{
		`rm -rf .git/objects`, `rm -f .git/objects/pack/*`, `git prune --expire=now`, `rm -f .git/objects/pack/*.idx`,
		`chmod -R u+w .git/objects; for f in .git/objects/??/*; do : > $f; done`,
		`rm -rf .git/objects; touch x`, `rm -f .git/objects/pack/*; git pack-refs --all`,
	} {
		s, root := undo.Store{Dir: t.TempDir()}, packed(t)
		said := sh(t, root, `git fsck 2>&1; git log --stat`+unreachable)
		turn := begin(t, s, root)
		sh(t, root, script)
		end(t, turn)
		// A turn after it must not make the objects be forgotten.
		turn = begin(t, s, root)
		end(t, turn)
		planned := back(t, s, undo.Request{Dir: root, DryRun: true})
		if len(planned.NotRestored) > 0 || len(planned.Restored) == 0 {
			t.Errorf("%s: a dry run gives %v, %v", script, planned.Restored, planned.NotRestored)
		}
		out := back(t, s, undo.Request{Dir: root})
		same(t, script+": kept", []string{}, keeps(out))
		same(t, script+": as planned", planned.Restored, out.Restored)
		same(t, script, said, sh(t, root, `git fsck 2>&1; git log --stat`+unreachable))
		back(t, s, undo.Request{Dir: root, Redo: true})
		back(t, s, undo.Request{Dir: root})
		same(t, script+" again", said, sh(t, root, `git fsck 2>&1; git log --stat`+unreachable))
	}
}

// TestAGitAtWorkPacksMeanwhile: what it packs and removes while objects are pinned is there in the pack.
func TestAGitAtWorkPacksMeanwhile(t *testing.T) {
	root := packed(t)
	s := undo.Store{Dir: t.TempDir()}
	for i := range 3 {
		sh(t, root, `for i in $(seq 400); do echo "blob
data <<EOF
$i `+strings.Repeat("x", i+1)+`
EOF"; done | git -c fastimport.unpackLimit=1000 fast-import --quiet`)
		gc := exec.Command("git", "-C", root, "gc", "-q", "--prune=now")
		gc.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if err := gc.Start(); err != nil {
			t.Fatal(err)
		}
		turn := begin(t, s, root)
		sh(t, root, `echo changed > f1`)
		end(t, turn)
		if err := gc.Wait(); err != nil {
			t.Fatal(err)
		}
		back(t, s, undo.Request{Dir: root})
		same(t, "the file", "1\n", sh(t, root, `cat f1; git fsck 2>&1 | grep -v dangling`))
	}
}

// TestPackingDestroysNothing: a turn that only packs is not one that changed something.
func TestPackingDestroysNothing(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, packed(t)
	turn := begin(t, s, root)
	sh(t, root, `git repack -n -q -a -d -k; git prune-packed`)
	if r := end(t, turn); r.Files != 0 {
		t.Errorf("changed are %v", r.Changed)
	}
	if all, err := s.List(root); err != nil || len(all) > 0 {
		t.Errorf("listed are %v, %v", all, err)
	}
}

// TestObjectsOfHiddenRepositoriesComeBack: of one in an ignored directory, and of a submodule without its working tree.
func TestObjectsOfHiddenRepositoriesComeBack(t *testing.T) {
	hermetic.Long(t)
	s, root := undo.Store{Dir: t.TempDir()}, packed(t)
	sh(t, root, `echo vendor/ > .gitignore; mkdir vendor; git init -q vendor/r; cd vendor/r; echo r > r; git add r
		git commit -qm r; git gc -q; echo s > s; git add s; git commit -qm s`)
	sh(t, root, `git -c protocol.file.allow=always submodule --quiet add ./vendor/r sub; git commit -qm sub
		git submodule --quiet deinit -f sub`)
	is := func() string {
		return sh(t, root,
			`git -C vendor/r fsck 2>&1; git -C vendor/r log --stat; git --git-dir .git/modules/sub fsck 2>&1`)
	}
	said := is()
	for _, script := range []string{
		`rm -rf vendor`, `git clean -qffdx`, `rm -rf vendor/r/.git`, `rm -rf vendor/r/.git/objects`,
		`rm -rf .git/modules/sub/objects`, `rm -rf .git/modules`,
	} {
		turn := begin(t, s, root)
		sh(t, root, script)
		if is() == said {
			t.Errorf("%s destroys nothing", script)
		}
		end(t, turn)
		same(t, script+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		if now := is(); now != said || strings.Contains(now, "fatal") {
			same(t, script, said, now)
		}
	}
}

// TestWhoWritesIntoAPackDoesNotReachTheSnapshot writes into packs in place, in several ways, while the turn has a
// second name of them.
func TestWhoWritesIntoAPackDoesNotReachTheSnapshot(t *testing.T) {
	hermetic.Long(t)
	for _, script := range []string{
		`: > $f`, `echo x >> $f`, `until truncate -s 100 $f 2>/dev/null; do :; done`,
		`dd if=/dev/zero of=$f bs=1 seek=30 count=9 conv=notrunc 2>/dev/null`,
		`cp -p $f ../was; echo x >> $f; touch -r ../was $f`,
	} {
		s, root := undo.Store{Dir: t.TempDir()}, packed(t)
		said := sh(t, root, `git fsck 2>&1; git log --stat`+unreachable)
		turn := begin(t, s, root)
		for _, g := range turn.Cover().Gaps {
			if g.Path == root {
				t.Skipf("this file system has no leases: %s", g.Why)
			}
		}
		sh(t, root, `for f in .git/objects/pack/*; do chmod u+w $f; `+script+`; done`)
		if sh(t, root, `git fsck 2>&1; git log --stat`+unreachable) == said {
			t.Fatalf("%s destroys nothing", script)
		}
		end(t, turn)
		same(t, script+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		same(t, script, said, sh(t, root, `git fsck 2>&1; git log --stat`+unreachable))
	}
}

// TestWhoWritesIntoAPackBetweenTurnsDoesNotReachEarlierSnapshots: no lease is held then, as while a program that a turn
// left running goes on.
func TestWhoWritesIntoAPackBetweenTurnsDoesNotReachEarlierSnapshots(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, packed(t)
	was := sh(t, root, `git log --stat; cat src/*`)
	turn := begin(t, s, root)
	sh(t, root, `rm -rf src .git/refs`)
	end(t, turn)
	sh(t, root, `for f in .git/objects/pack/*; do chmod u+w $f; echo damaged > $f; done`)
	same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
	same(t, "the repository", was, sh(t, root, `git log --stat; cat src/*`))
}

// TestPacksThatAreDamagedInBothPlacesAreNamed damages them without a turn's notice.
func TestPacksThatAreDamagedInBothPlacesAreNamed(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, packed(t)
	turn := begin(t, s, root)
	for _, pattern := range []string{root + "/.git/objects/pack/*", s.Dir + "/*/git/*/objects/pack/*"} {
		sh(t, root, `for f in `+pattern+`; do chmod u+w $f; : > $f; done`)
	}
	end(t, turn)
	out := back(t, s, undo.Request{Dir: root})
	same(t, "kept", []string{".git"}, keeps(out))
	if !strings.Contains(out.NotRestored[0].Reason, "damaged") {
		t.Errorf("kept is %v", out.NotRestored)
	}
}

// TestALinkedWorktreeInsideComesBack: its state is in the repository of the workspace.
func TestALinkedWorktreeInsideComesBack(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, packed(t)
	sh(t, root, `echo trees/ > .gitignore; git add .gitignore; git commit -qm ignore
		git worktree add -q trees/side; echo x > trees/side/x
		git -C trees/side add x; echo y > trees/side/y`)
	is := func() string {
		return sh(t, root, `git worktree list; git -C trees/side status --porcelain=v2 --branch; git -C trees/side log --oneline
			git -C trees/side fsck --no-dangling 2>&1`)
	}
	was, said := look(t, root), is()
	for _, script := range []string{
		`git -C trees/side commit -qam agent`, `git worktree remove --force trees/side`, `rm -rf trees`,
		`rm -rf .git`, `git -C trees/side checkout -q -f --detach HEAD~1; git -C trees/side clean -qfdx`,
	} {
		turn := begin(t, s, root)
		sh(t, root, script)
		end(t, turn)
		same(t, script+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		same(t, script, said, is())
		same(t, script, was, look(t, root))
	}
}

// TestWhereObjectsAreBorrowedComesBack has turns destroy the file that names another repository, whose objects are
// borrowed.
func TestWhereObjectsAreBorrowedComesBack(t *testing.T) {
	base := t.TempDir()
	s, root := undo.Store{Dir: t.TempDir()}, filepath.Join(base, "work")
	sh(t, base, `git init -q base; cd base; echo one > f; git add f; git commit -qm one; cd ..
		git clone -q --shared base work; cd work; echo two > f; git commit -qam two`)
	is := func() string {
		return state(t, root) + sh(t, root, `git log --oneline; cat .git/objects/info/alternates`)
	}
	said := is()
	for _, script := range []string{
		`rm -rf .git`, `rm .git/objects/info/alternates; echo x > new`, `rm .git/objects/info/alternates`,
		`rm -r .git/objects`, `: > .git/objects/info/alternates`,
	} {
		turn := begin(t, s, root)
		sh(t, root, script)
		end(t, turn)
		same(t, script+": kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		same(t, script, said, is())
	}
	turn := begin(t, s, root)
	sh(t, root, `git clone -q --shared ../base inside`)
	end(t, turn)
	back(t, s, undo.Request{Dir: root})
	same(t, "a clone is gone", said, is())
	same(t, "redo keeps", []string{}, keeps(back(t, s, undo.Request{Dir: root, Redo: true})))
	same(t, "the clone again", "one\n", sh(t, root, `cd inside; git fsck; git log --format=%s; git status -s`))
}

// TestAnIndexOfOtherPacksDoesNotComeBack has an index of several packs, which names packs that are gone later.
func TestAnIndexOfOtherPacksDoesNotComeBack(t *testing.T) {
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	const repack = `; git repack -adq --write-midx`
	sh(t, root, `git init -q; echo a > f; git add f; git commit -qm one`+repack)
	turn := begin(t, s, root)
	sh(t, root, `echo b > f`)
	end(t, turn)
	sh(t, root, `git commit -qam two`+repack)
	said := state(t, root)
	turn = begin(t, s, root)
	sh(t, root, `rm -rf .git`)
	end(t, turn)
	same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
	same(t, "git says", said, state(t, root))
}

// TestGitsIndexIsNotBelieved has a turn write an index that names another content for a file of the user's.
func TestGitsIndexIsNotBelieved(t *testing.T) {
	for name, limit := range map[string]int64{"small": 0, "too large": 8} {
		t.Run(name, func(t *testing.T) {
			s, root := undo.Store{Dir: t.TempDir(), FileLimit: limit}, t.TempDir()
			sh(t, root, `git init -q .; echo "user's own work" > f; `)
			turn := begin(t, s, root)
			sh(t, root, `blob=$(echo "agent text here" | git hash-object -w --stdin)
				git update-index --add --cacheinfo 100644,$blob,f
				chmod 600 f; chmod 644 f
				sleep 0.1 # a file that is as new as the snapshot is read in any case`)
			claimFor(t, root, "f")
			end(t, turn)
			turn = begin(t, s, root)
			sh(t, root, `echo garbage > f; echo x > new`)
			end(t, turn)
			out, want := back(t, s, undo.Request{Dir: root}), "user's own work\n"
			if limit > 0 {
				want = "garbage\n"
				same(t, "kept", []string{"f"}, keeps(out))
			}
			same(t, "f", want, sh(t, root, `cat f`))
		})
	}
}

// claimFor gives the only entry of a name in git's index the status of the file.
func claimFor(t *testing.T, root, name string) {
	t.Helper()
	index := filepath.Join(root, ".git", "index")
	data, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	is := workspace.StatusOf(info)
	at := bytes.Index(data, append([]byte{0, byte(len(name))}, name...)) - 60
	for i, n := range []int64{is.Changed / 1e9, is.Changed % 1e9, is.Modified / 1e9, is.Modified % 1e9} {
		binary.BigEndian.PutUint32(data[at+4*i:], uint32(n)) //nolint:gosec // as git records them
	}
	binary.BigEndian.PutUint32(data[at+20:], uint32(is.Inode)) //nolint:gosec // the same
	binary.BigEndian.PutUint32(data[at+36:], uint32(is.Size))  //nolint:gosec // the same
	sum := sha1.Sum(data[:len(data)-sha1.Size])                //nolint:gosec // the hash of git
	if err := os.WriteFile(index, append(data[:len(data)-sha1.Size], sum[:]...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTwoStoresOfOneRepository: what another store has of a repository's objects is covered, and a clone's are not.
func TestTwoStoresOfOneRepository(t *testing.T) {
	root, known := packed(t), filepath.Join(t.TempDir(), "known")
	one, two := undo.Store{Dir: t.TempDir(), Known: known}, undo.Store{Dir: t.TempDir(), Known: known}
	for _, s := range []undo.Store{one, two, one} {
		turn := begin(t, s, root)
		if gaps := turn.Gaps(); len(gaps) > 0 {
			t.Errorf("%v", gaps)
		}
		turn.Drop()
	}
	sh(t, root, `git clone -q . ../clone`)
	turn := begin(t, one, root)
	defer turn.Drop()
	if len(turn.Gaps()) == 0 {
		t.Error("the objects of a clone are no gap")
	}
}
