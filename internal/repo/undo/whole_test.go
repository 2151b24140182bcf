package undo_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"omniagent/internal/repo/undo"
)

// mount mounts something at a directory, or skips the test.
func mount(t *testing.T, at string, args ...string) {
	t.Helper()
	if exec.Command("mount", append(args, at)...).Run() != nil {
		t.Skip("nothing can be mounted")
	}
	t.Cleanup(func() { _ = exec.Command("umount", at).Run() })
}

// TestTheStateOfGitStaysWithoutItsObjects has a turn destroy objects that cannot be given back, for several reasons.
func TestTheStateOfGitStaysWithoutItsObjects(t *testing.T) {
	const destroy = `git branch -D -q side; git reset -q --hard HEAD~1; git reflog expire --expire=now --all
		git gc -q --prune=now; echo agent > own`
	for name, c := range map[string]struct{ before, more, after string }{
		"the disk is full":           {``, ``, `dd if=/dev/zero of=fill bs=4096 2> /dev/null`},
		"objects are a link":         {`mv .git/objects ../elsewhere; ln -s ../../elsewhere .git/objects`, ``, ``},
		"a file is where packs were": {``, `rm -rf .git/objects/pack; echo > .git/objects/pack`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base := undo.Store{Dir: t.TempDir()}, t.TempDir()
			if name == "the disk is full" {
				mount(t, base, "-t", "tmpfs", "-o", "size=4m", "tmpfs")
			}
			root := filepath.Join(base, "work")
			sh(t, base, `git init -q -b main work; cd work; echo mine > own; git add own; git commit -qm one
				head -c 900000 /dev/urandom > big; git add big; git commit -qm two; git branch side; git gc -q; `+c.before)
			turn := begin(t, s, root)
			sh(t, root, destroy+"\n"+c.more)
			covered := turn.Cover()
			end(t, turn)
			sh(t, root, c.after)
			is := `cat .git/HEAD .git/packed-refs; ls .git/refs/heads; git ls-files -s; cat .git/logs/HEAD`
			left := sh(t, root, is)
			out := back(t, s, undo.Request{Dir: root})
			if !slices.Contains(keeps(out), ".git") {
				t.Errorf("kept are %v", out.NotRestored)
			}
			for _, path := range out.Restored {
				if path != "own" && path != "big" {
					t.Errorf("restored is %s", path)
				}
			}
			same(t, "the state", left, sh(t, root, is))
			if linked := len(covered.Gaps) > 0; linked != (name == "objects are a link") {
				t.Errorf("gaps are %v", covered.Gaps)
			}
		})
	}
}

// TestTheStateOfGitStaysWithoutRoom has the disk full when a directory .git is to be restored. Some of its files would
// still fit.
func TestTheStateOfGitStaysWithoutRoom(t *testing.T) {
	const change = `git checkout -q -b side HEAD~1; git rm -q -r .; git commit -qm gone; git gc -q`
	for name, c := range map[string]struct {
		turn string
		free int // bytes
		kept string
	}{
		"some of it fits":              {change, 100_000, ".git"},
		"another file takes the room":  {change + `; rm -r .cache`, 3_200_000, ".cache/big"},
		"nothing is left of it":        {`rm -rf .git`, 1_450_000, ".git"},
		"there is a file in its place": {`rm -rf .git; echo x > .git`, 300_000, ".git"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, base := undo.Store{Dir: t.TempDir()}, t.TempDir()
			mount(t, base, "-t", "tmpfs", "-o", "size=16m", "tmpfs")
			root := filepath.Join(base, "work")
			sh(t, base, `git init -q -b main work; cd work; touch $(seq -f file-of-many-names-%g 4000)
				mkdir .cache; head -c 3000000 /dev/urandom > .cache/big; echo .cache > .git/info/exclude
				git add .; git commit -qm one; echo mine > own; git add own; git commit -qm two
				head -c 1000000 /dev/urandom | git hash-object -w --stdin`)
			const is = `cat .git/HEAD .git/packed-refs .git 2>&1; git ls-files -s; cat .git/logs/HEAD
				find .git -type f -not -path '*/objects/*' | sort`
			was := sh(t, root, is)
			turn := begin(t, s, root)
			sh(t, root, c.turn)
			id := end(t, turn).ID
			sh(t, root, `mkdir -p ../fill; head -c `+strconv.Itoa(c.free)+` /dev/zero > ../spare
				dd if=/dev/zero of=../fill/all bs=4096 2> /dev/null; rm ../spare`)
			left := sh(t, root, is)
			out := back(t, s, undo.Request{Dir: root})
			kept := keeps(out)
			passes := func(k undo.NotRestored) bool { return k.Cause == undo.CauseTemporary }
			if !slices.Contains(kept, c.kept) || !slices.ContainsFunc(out.NotRestored, passes) {
				t.Errorf("kept are %v", out.NotRestored)
			}
			if slices.Contains(kept, ".git") {
				same(t, "the state", left, sh(t, root, is))
			}
			sh(t, root, `rm -r ../fill`)
			same(t, "kept with room", []string{}, keeps(back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true})))
			same(t, "with room", was, sh(t, root, is))
			same(t, "git says", "main\nmine\n", sh(t, root, `git branch --show-current; cat own; git status -s
				git fsck --no-dangling`))
		})
	}
}

// TestWhatFilledTheDiskIsRemovedFirst has a turn fill the disk, so that there is no room for objects.
func TestWhatFilledTheDiskIsRemovedFirst(t *testing.T) {
	base := t.TempDir()
	mount(t, base, "-t", "tmpfs", "-o", "size=4m", "tmpfs")
	s, root := undo.Store{Dir: t.TempDir()}, filepath.Join(base, "work")
	sh(t, base, `git init -q -b main work; cd work; echo one > f; git add f; git commit -qm one
		head -c 900000 /dev/urandom > big; git add big; git commit -qm two; git gc -q`)
	was, said := look(t, root), state(t, root)
	turn := begin(t, s, root)
	sh(t, root, `rm -rf .git big; dd if=/dev/zero of=fill bs=4096 2> /dev/null`)
	end(t, turn)
	same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
	same(t, "after the undo", was, look(t, root))
	same(t, "git says", said, state(t, root))
}

// TestFilesOfAnotherFileSystemComeBack has another file system inside the workspace, and another view of this one.
func TestFilesOfAnotherFileSystemComeBack(t *testing.T) {
	for name, args := range map[string][]string{
		"another one": {"-t", "tmpfs", "tmpfs"}, "the same one": {"--bind", t.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			sh(t, root, `mkdir vol`)
			mount(t, filepath.Join(root, "vol"), args...)
			sh(t, root, `mkdir vol/d; echo one > vol/f; echo one > vol/d/f; ln -s f vol/l; git init -q vol/r; echo one > a`)
			was := look(t, root)
			turn := begin(t, s, root)
			sh(t, root, `echo agent > vol/f; rm -r vol/d vol/l; echo x > vol/r/.git/description; echo agent > a`)
			end(t, turn)
			same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, "after the undo", was, look(t, root))
		})
	}
}

// TestTheModeOfTheWorkspaceComesBack also where the workspace itself is gone or cannot be written.
func TestTheModeOfTheWorkspaceComesBack(t *testing.T) {
	for name, script := range map[string]string{
		"closed":   `chmod 700 .`,
		"open":     `chmod -R 777 .`,
		"git":      `chmod 700 .git; chmod 750 .git/refs .git/refs/heads; chmod 600 .git/config`,
		"readonly": `rm a; chmod 500 .`,
		"gone":     `rm -rf "$PWD"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root := undo.Store{Dir: t.TempDir()}, smallWork(t)
			sh(t, root, `chmod 751 .`)
			mode := func() string { // of all but git's objects
				return sh(t, filepath.Dir(root), `find work -name objects -prune -o -printf '%m %P\n' | sort`)
			}
			was := mode()
			turn := begin(t, s, root)
			sh(t, root, script)
			id := end(t, turn).ID
			left := mode()
			same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
			same(t, "after undo", was, mode())
			if name == "gone" {
				return // nobody can say redo there
			}
			same(t, "redo keeps", []string{}, keeps(back(t, s, undo.Request{Dir: root, Redo: true})))
			same(t, "after redo", left, mode())
			if name == "git" {
				return // that turn did not change the mode of the workspace itself
			}
			sh(t, root, `chmod 711 .`)
			same(t, "changed by hand", []string{"."}, keeps(back(t, s, undo.Request{Dir: root})))
			back(t, s, undo.Request{Dir: root, ID: id, TakeOld: true})
			same(t, "with --take-old", was, mode())
		})
	}
}
