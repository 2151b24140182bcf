package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

func inEachTier(t *testing.T, f func(t *testing.T, tier Tier)) {
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) { f(t, tier) })
	}
}

// TestSameNames: behind the walls and outside the same names are there, and none is made for the walls.
func TestSameNames(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		must(t, os.WriteFile(g.root+"/file", nil, 0o600))
		w := g.walls(t, tier)
		r := g.sh(t, w, "ls -A; mkdir -p .claude 2>/dev/null; ls -A")
		if r.out != "file\nfile\n" {
			t.Errorf("inside: %q", r.out)
		}
		if entries, _ := os.ReadDir(g.root); len(entries) != 1 {
			t.Errorf("outside: %v", entries)
		}
	})
}

// TestReplacedMeanwhile: a person, or the person's git, replaces protected files while a command tries to write them.
func TestReplacedMeanwhile(t *testing.T) {
	hermetic.Long(t)
	for name, replace := range map[string]func(g ground) error{
		"git changes its configuration": func(g ground) error {
			cmd := exec.Command("git", "config", "branch.x.remote", "origin")
			cmd.Dir = g.root
			return cmd.Run()
		},
		"an editor writes a file that is there": func(g ground) error {
			must(t, os.WriteFile(g.root+"/new", []byte("{}"), 0o600))
			return os.Rename(g.root+"/new", g.root+"/.mcp.json")
		},
		"a file comes that was not there": func(g ground) error {
			return os.WriteFile(g.root+"/.envrc", []byte("export A=b\n"), 0o600)
		},
		"a directory goes and comes": func(g ground) error {
			return errors.Join(os.Rename(g.root+"/.git/hooks", g.root+"/.git/hooks.old"),
				os.Mkdir(g.root+"/.git/hooks", 0o700))
		},
		"the repository goes and comes": func(g ground) error {
			return errors.Join(os.Rename(g.root+"/.git", g.dir+"/git"), os.Rename(g.dir+"/git", g.root+"/.git"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inEachTier(t, func(t *testing.T, tier Tier) {
				g := newGround(t)
				g.repository(t)
				must(t, os.WriteFile(g.root+"/.mcp.json", []byte("{}"), 0o600))
				must(t, unix.Mkfifo(g.root+"/begun", 0o600))
				w := g.walls(t, tier, func(p *Policy) { p.Protected = append(p.Protected, ".envrc") })
				replaced := make(chan error, 1)
				go func() {
					_, err := os.ReadFile(g.root + "/begun")
					replaced <- errors.Join(err, replace(g), os.WriteFile(g.root+"/over", nil, 0o600))
				}()
				r := g.sh(t, w, `echo > begun; for i in $(seq 400); do for f in .git/config .git/hooks/evil .mcp.json .envrc; do
					echo evil >> $f; mv -f new2 $f; ln -f evil $f; done; test -e over && break; sleep 0.01; done 2>/dev/null
					for f in .git/config .git/hooks/evil .mcp.json .envrc; do echo evil >> $f; done 2>/dev/null; true`)
				must(t, <-replaced)
				if found, _ := exec.Command("grep", "-rl", "evil", g.root).Output(); len(found) > 0 ||
					r.ending.ExitCode != 0 {
					t.Errorf("written: %s %+v", found, r)
				}
			})
		})
	}
}

// racer changes the path of a call while the call is made, in memory and by links, and counts nothing: what it writes
// into a protected file is found there.
func racer(dir string) error {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(os.Chdir(dir))
	must(os.Mkdir("way", 0o700))
	must(os.Mkdir("way2", 0o700))
	must(os.WriteFile("way/config", nil, 0o600))
	must(os.Symlink("way", "link"))
	var over atomic.Bool
	path := []byte("link//config\x00") // of the same length as the other
	other, mine := []byte(".git//config\x00"), []byte("link//config\x00")
	flip := func(f func(odd bool)) {
		for i := 0; !over.Load(); i++ {
			f(i%2 == 1)
		}
	}
	go flip(func(odd bool) { copy(path, map[bool][]byte{true: other, false: mine}[odd]) })
	go flip(func(odd bool) {
		_ = os.Remove("link2")
		_ = os.Symlink(map[bool]string{true: ".git", false: "way"}[odd], "link2")
		_ = os.Rename("link2", "link")
	})
	go flip(func(bool) { _ = os.Rename("way", "way3"); _ = os.Rename("way3", "way") })
	tries, opened := 0, 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); tries++ {
		at := unix.AT_FDCWD
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), uintptr(unsafe.Pointer(&path[0])),
			unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			_, _ = unix.Write(int(fd), []byte("evil\n"))
			_ = unix.Close(int(fd))
			opened++
		}
		_, _, _ = unix.Syscall(unix.SYS_FCHMODAT, uintptr(at), uintptr(unsafe.Pointer(&path[0])), 0o606)
	}
	over.Store(true)
	runtime.KeepAlive(path)
	fmt.Println(tries, opened)
	return nil
}

// TestRace has the path change between the look and the act.
func TestRace(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		before, err := os.ReadFile(g.root + "/.git/config")
		must(t, err)
		must(t, os.Chmod(g.root+"/.git/config", 0o640))
		r := g.run(t, g.walls(t, tier), g.attacker, "races", g.root)
		after, err := os.ReadFile(g.root + "/.git/config")
		must(t, err)
		if string(after) != string(before) {
			t.Errorf("%d lines reached it", strings.Count(string(after), "evil"))
		}
		info, err := os.Stat(g.root + "/.git/config")
		must(t, err)
		if tier == Landlock && info.Mode() != 0o640 { // with namespaces a claim says that it can be changed
			t.Errorf("its mode is %v", info.Mode())
		}
		var tries, opened int
		if _, err := fmt.Sscan(r.out, &tries, &opened); err != nil || tries < 100 || r.ending.ExitCode != 0 {
			t.Errorf("too little was tried: %+v", r)
		}
		t.Logf("%d tries, %d of them opened a file", tries, opened)
	})
}

// TestOrdinaryJobs in a workspace go as they do without walls: names, contents, modes and links are the same.
func TestOrdinaryJobs(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		for name, line := range map[string]string{
			"modes": "umask 077; echo y > y; umask 022; (umask 007; echo w > w); echo v > v; umask 027; echo a > a; " +
				"mkdir d; mkfifo p; (umask 077; echo b > b; mkdir e); install -m 751 a c; " +
				"touch -d 2020-01-02T03:04:05Z t; cp -a t u",
			"links": "echo a > a; ln a b; ln -s a c; ln -s /nowhere d; ln -sfn b c; mv d e; rm b; mkdir copy; " +
				"cp -a a c e copy; ln -L a f; ln -P c g",
			"moves": "mkdir -p a/b/c; echo x > a/b/c/f; mv a z; mv z/b .; mv -n b/c/f g; mkdir y; mv -T y z; echo y " +
				"> h; mv -f h g; " +
				"rmdir b/c b; python3 -c 'import os; os.rename(\"g\", \"z/g\")'",
			"writes": "echo 1 > a; echo 2 >> a; echo 3 | tee -a a > /dev/null; truncate -s 4 a; dd if=/dev/zero of=b " +
				"bs=1 count=3 " +
				"2>/dev/null; : > c; echo over > c; exec 3<>d; echo x >&3; echo y > /dev/fd/3; exec 3>&-; (echo sub " +
				"> /dev/stdout) > e",
			"errors": "mkdir a; for l in 'mkdir a' 'rmdir a/b' 'echo > a' 'echo > a/b/c' 'mkdir x/y' 'mv no a' 'mv a " +
				"no/x' 'ln a b' " +
				"'rm a' 'echo > a/' 'mkdir .' 'rmdir .' 'ln -s x a/../a' 'mv a a/b' 'unlink a' 'mkdir a/' 'touch b/' " +
				"'truncate -s 1 a' 'mv . x' 'rmdir /' 'ln -T no b'; do LC_ALL=C bash -c \"$l\" 2>&1 | sed 's/.*: " +
				"//'; done > said",
			"slashes": "mkdir d e; echo f > f; ln -s d ld; ln -s no dang; for l in 'rmdir ld/' 'mkdir dang/' " +
				"'mkdir dang' " +
				"'mv -T ld/ x' 'mv -T f f2/' 'mv -T e e2/' 'echo > f/' 'echo >> f/' 'ln -s a nn/' 'unlink f/' " +
				"'unlink ld/' 'ln f g/' " +
				"'ln f/ g' 'mkfifo p/' 'truncate -s 1 f/' 'touch ld/' 'echo > ld/g'; do LC_ALL=C bash -c \"$l\" " +
				"2>&1 | " +
				"sed 's/.*: //'; done > said",
			"sockets": "python3 -c 'import os, stat; os.mknod(\"s\", 0o644 | stat.S_IFSOCK)'",
			"deep": "python3 -c '\nimport os\nfor i in range(30): os.mkdir(\"z\" * 200); os.chdir(\"z\" * 200)\n" +
				"open(\"f\", \"w\").write(\"x\"); os.mkdir(\"d\"); os.rename(\"f\", \"d/g\"); os.unlink(\"d/g\"); " +
				"os.rmdir(\"d\")\n" +
				"for i in range(30): os.chdir(\"..\"); os.rmdir(\"z\" * 200)\n'",
			"processes": "mkdir d; echo x > /proc/self/cwd/y; exec 7<d; echo x > /dev/fd/7/y; ln y /proc/self/fd/7/z",
			"pipes": "mkfifo p; (sleep 0.1; cat p > out) & echo through > p; wait; (exec 9<>p; echo more >&9; head " +
				"-1 <&9) > out2",
			"archives": "mkdir -p s/t; seq 1000 > s/t/n; ln s/t/n s/h; ln -s t/n s/l; chmod 640 s/t/n; tar cf a.tar " +
				"s; rm -r s; tar xf a.tar; " +
				"rm a.tar",
			"programs": "printf '#!/bin/sh\\necho ran\\n' > x; chmod +x x; for i in $(seq 50); do cp x y; ./y; " +
				"done > out",
			"unnamed": "python3 -c '\nimport os\nf = os.open(\".\", os.O_TMPFILE | os.O_RDWR, 0o640)\nos.write(f, " +
				"b\"made\")\n" +
				"os.link(\"/proc/self/fd/%d\" % f, \"named\", src_dir_fd=f, follow_symlinks=True)\n'",
			"directories": "mkdir a; cd a; echo x > ../b; python3 -c '\nimport os\nd = os.open(\"..\", os.O_RDONLY)\n" +
				"os.mkdir(\"c\", dir_fd=d)\nos.rename(\"b\", \"c/b\", src_dir_fd=d, dst_dir_fd=d)\n" +
				"os.symlink(\"x\", \"s\", dir_fd=d)\nos.unlink(\"s\", dir_fd=d)\nf = os.open(\"c/n\", os.O_CREAT | " +
				"os.O_EXCL | os.O_WRONLY, dir_fd=d)\n'",
		} {
			t.Run(name, func(t *testing.T) {
				plain, walled := newGround(t), newGround(t)
				cmd := exec.Command("bash", "-c", line)
				cmd.Dir = plain.root
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if r := walled.sh(t, walled.walls(t, tier), line); r.ending.ExitCode != 0 {
					t.Errorf("%+v", r)
				}
				if want, got := looks(t, plain.root), looks(t, walled.root); got != want {
					t.Errorf("without walls\n%s\nbehind them\n%s", want, got)
				}
			})
		}
	})
}

// TestWordsOfTheKernel: of a protected name a command hears what it would hear without walls, as far as it changes
// nothing.
func TestWordsOfTheKernel(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		r := g.sh(t, g.walls(t, tier), `python3 -c '
import os, errno
def t(f):
	try: return f() and "ok"
	except OSError as e: return errno.errorcode[e.errno]
print(t(lambda: os.mkdir(".git/hooks")), t(lambda: os.unlink(".git/hooks/no")), t(lambda: os.rename(".claude/no", "x")),
	t(lambda: os.open(".git/config", os.O_CREAT | os.O_EXCL | os.O_RDWR)), t(lambda: os.open(".git/config", os.O_CREAT)),
	t(lambda: os.open(".git/config", os.O_RDWR)), t(lambda: os.open(".mcp.json", os.O_RDWR)), t(lambda: os.mkdir(".claude")))'
			git init -q . && rm -rf .claude && mkdir -p .git/hooks && echo fine`)
		if r.out != "EEXIST ENOENT ENOENT EEXIST ok EROFS ENOENT EROFS\nfine\n" {
			t.Errorf("%+v", r)
		}
	})
}

// looks is all that can be told of files but for the times at which they were made.
func looks(t *testing.T, root string) string {
	var b strings.Builder
	must(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var s unix.Stat_t
		must(t, unix.Lstat(path, &s))
		text, target := []byte{}, ""
		switch {
		case entry.Type().IsRegular():
			text, err = os.ReadFile(path)
		case entry.Type()&os.ModeSymlink != 0:
			target, err = os.Readlink(path)
		}
		age := ""
		if s.Mtim.Sec < 1600000000 {
			age = fmt.Sprint(s.Mtim.Sec)
		}
		fmt.Fprintf(&b, "%s %o %d:%d %d links %s %q %s\n", strings.TrimPrefix(path, root), s.Mode, s.Uid, s.Gid,
			s.Nlink, target,
			text, age)
		return err
	}))
	return b.String()
}

// TestGitMakesRepositories where none is, and follows branches.
func TestGitMakesRepositories(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		sh := func(dir, line string) {
			t.Helper()
			cmd := exec.Command("bash", "-c", line)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		sh(g.root, "git commit -q --allow-empty -m one && git branch side && mv .git ../outside/origin")
		w := g.walls(t, tier)
		env := "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; set -e; "
		r := g.sh(t, w,
			env+"git clone -q ../outside/origin . && git checkout -q --track origin/side && git commit -q "+
				"--allow-empty -m x && "+
				"git config branch.side.remote && git status -sb")
		if r.ending.ExitCode != 0 || !strings.Contains(r.out, "origin/side [ahead 1]") {
			t.Errorf("%+v", r)
		}
		for _, line := range []string{
			"git config core.fsmonitor evil", "git config alias.x '!evil'", "git remote set-url origin evil",
			"git remote add evil evil",
			"echo evil >> .git/config", "echo evil > .git/hooks/pre-commit",
			"mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
			"cp .git/config c; echo evil >> c; mv c .git/config", "git config core.hooksPath evil",
			"cp .git/config .git/config.lock; exec 5>>.git/config.lock; git config branch.evil.merge x; echo evil >&5",
			"ln .git/config evil; echo evil >> evil; rm evil", "echo evil >> .GIT/CONFIG",
			"git worktree add -q ../root/evil; rm -r evil; exit 1",
		} {
			g.sh(t, w, line)
			if found, _ := exec.Command("grep", "-rlsw", "evil", g.root+"/.git/config",
				g.root+"/.git/hooks").Output(); len(found) > 0 {
				t.Fatalf("%s: written: %s", line, found)
			}
		}
	})
}

// TestRepositoriesBeneath: what a repository below does not have yet stays absent, too.
func TestRepositoriesBeneath(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		must(t, os.Mkdir(g.root+"/app", 0o700))
		beneath := g
		beneath.root = g.root + "/app"
		beneath.repository(t)
		w := g.walls(t, tier, func(p *Policy) { p.Repositories = []string{beneath.root} })
		r := g.sh(t, w,
			"cd app; for d in . self ../app; do ln -sfn . self; mkdir -p $d/.claude/x; echo x > $d/.mcp.json; "+
				"mv self $d/.claude; echo x > $d/.git/commondir; echo x >> $d/.git/config; done 2>/dev/null; rm "+
				"-f self; "+
				"echo x > file")
		for _, name := range []string{".claude", ".mcp.json", ".git/commondir"} {
			if exists(beneath.root + "/" + name) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if !exists(beneath.root + "/file") {
			t.Errorf("%+v", r)
		}
	})
}

// TestHiddenNames: what has a hidden name is hidden from the next command, wherever it is.
func TestHiddenNames(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		if tier == Landlock {
			t.Skip("Landlock hides nothing")
		}
		g := newGround(t)
		g.repository(t)
		must(t, os.MkdirAll(g.root+"/a/keys/deep", 0o700))
		for _, name := range []string{"/a/.ENV", "/a/keys/deep/k", "/a/real", "/.git/x.env"} {
			must(t, os.WriteFile(g.root+name, []byte("secret"), 0o600))
		}
		must(t, os.Symlink("real", g.root+"/a/link.env"))
		w := g.walls(t, tier, func(p *Policy) { p.HiddenNames = []string{"*.env", "keys"} })
		r := g.sh(t, w, "cat a/.ENV a/keys/deep/k a/link.env a/real; cat .git/x.env")
		if strings.Count(r.out, "secret") != 1 {
			t.Errorf("%+v", r)
		}
		if r := g.sh(t, w, "mkdir b; echo own > b/.env && cat b/.env"); r.out != "own\n" {
			t.Errorf("%+v", r)
		}
		if r := g.sh(t, w, "cat b/.env; mv b c; cat c/.env; rm c/.env; mv c/.env x"); strings.Contains(r.out, "own") {
			t.Errorf("%+v", r)
		}
		if !exists(g.root + "/c/.env") {
			t.Error("a hidden file was removed")
		}
		for path, allowed := range map[string]bool{"/a/keys/other": false, "/a/new.env": false, "/a/keysx": true} {
			for _, e := range w.policy.Explain(g.root+path, Report{Tier: tier}) {
				if e.Allowed != allowed {
					t.Errorf("%s: %+v", path, e)
				}
			}
		}
		if os.Geteuid() == 0 {
			t.Log("a directory that cannot be listed is not tried: the superuser lists all")
		} else {
			must(t, os.Mkdir(g.root+"/shut", 0o700))
			must(t, os.WriteFile(g.root+"/shut/.env", []byte("secret"), 0o600))
			must(t, os.Chmod(g.root+"/shut", 0o111))
			if r := g.sh(t, w, "cat shut/.env"); strings.Contains(r.out, "secret") {
				t.Errorf("%+v", r)
			}
			must(t, os.Chmod(g.root+"/shut", 0o700))
		}
		for _, to := range []string{"..", "/usr", g.root} {
			link := g.root + "/a/way.env"
			must(t, os.Symlink(to, link))
			_, err := w.Plan(process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: g.root})
			if err == nil || !strings.Contains(err.Error(), link+", which leads to") {
				t.Errorf("a link to %s: %v", to, err)
			}
			must(t, os.Remove(link))
		}
		must(t, os.Mkdir(g.root+"/many", 0o700))
		for i := range mostNamed {
			must(t, os.WriteFile(fmt.Sprintf("%s/many/%d.env", g.root, i), nil, 0o600))
		}
		_, err := w.Plan(process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: g.root})
		if err == nil || !strings.Contains(err.Error(), "more than 1000 files") {
			t.Errorf("%v", err)
		}
	})
}

// TestKeptNames: a name is protected in every directory, but git goes on working with files of its own that match.
func TestKeptNames(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.root += "/x.lock" // the workspace itself does not count
		must(t, os.Mkdir(g.root, 0o700))
		g.repository(t)
		must(t, os.MkdirAll(g.root+"/a/b", 0o700))
		must(t, os.WriteFile(g.root+"/a/b/npm.lock", []byte("before"), 0o600))
		w := g.walls(t, tier, func(p *Policy) { p.KeptNames = []string{"*.Lock", "kept"} })
		r := g.sh(t, w, "echo x > a/b/npm.lock; echo x > a/NPM.LOCK; mkdir -p a/kept; echo y > a/kept/file; "+
			"echo x > file; mv file a/kept; cat a/b/npm.lock; git add file && git commit -qm one && git log --format=%s")
		if !strings.HasSuffix(r.out, "\nbeforeone\n") || exists(g.root+"/a/NPM.LOCK") || exists(g.root+"/a/kept") {
			t.Errorf("%+v", r)
		}
		report := Report{Tier: tier}
		for path, allowed := range map[string]bool{
			"/a/npm.lock": false, "/kept/a/file": false, "/a/file": true, "/.git/index.lock": true,
		} {
			for _, e := range w.policy.Explain(g.root+path, report) {
				if e.Access == "write" && e.Allowed != allowed {
					t.Errorf("%s: %+v", path, e)
				}
			}
		}
	})
}

// TestKeptNamesDoNotComeFromGit: no directory in which a protected name could be made takes the place of another one.
func TestKeptNamesDoNotComeFromGit(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		must(t, os.Mkdir(g.root+"/keys", 0o700))
		must(t, os.WriteFile(g.root+"/keys/a.pem", []byte("before"), 0o600))
		w := g.walls(t, tier, func(p *Policy) { p.KeptNames = []string{"*.pem"} })
		r := g.sh(t, w, `mkdir -p t/.git/in .git/in old; echo evil | tee t/.git/a.pem t/.git/in/a.pem .git/in/a.pem
			mv keys moved; mkdir -p more/deep; mv more other1; mv keys/a.pem more
			for d in t/.git/in .git/in t/.git; do mv $d keys
			python3 -c 'import ctypes, sys
ctypes.CDLL(None).renameat2(-100, b"old", -100, sys.argv[1].encode(), 2)' $d; done
			mv .git/in .git/out; mv t other; cat .git/out/a.pem`)
		found, _ := filepath.Glob(g.root + "/*/a.pem")
		if len(found) != 1 || found[0] != g.root+"/keys/a.pem" || !exists(g.root+"/other1/deep") ||
			!strings.HasSuffix(r.out, "evil\n") {
			t.Errorf("%v: %+v", found, r)
		}
	})
}

// TestSeenOutside: who watches the workspace from outside sees what a command writes while the
// command still runs.
func TestSeenOutside(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		w := g.walls(t, tier)
		watch, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		must(t, err)
		defer unix.Close(watch)
		_, err = unix.InotifyAddWatch(watch, g.root, unix.IN_CREATE|unix.IN_CLOSE_WRITE|unix.IN_MOVED_TO)
		must(t, err)
		seen := make(chan error, 1)
		go func() {
			block := make([]byte, 4096)
			_, err := unix.Read(watch, block)
			seen <- errors.Join(err, os.WriteFile(g.root+"/answer", nil, 0o600))
		}()
		r := g.sh(t, w, "echo x > file; until [ -e answer ]; do sleep 0.01; done; echo answered")
		if r.out != "answered\n" {
			t.Errorf("%+v", r)
		}
		must(t, <-seen)
	})
}

// TestObservable: where no process may read another one's memory, there is no supervisor.
func TestObservable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scope")
	for text, want := range map[string]bool{"0\n": true, "1\n": true, "2\n": false, "3\n": false} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if observable(file) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if !observable(file + ".none") {
		t.Error("a kernel without Yama")
	}
}

// TestWithoutASupervisor: a command whose supervisor was killed changes nothing, and it cannot kill or stop it.
func TestWithoutASupervisor(t *testing.T) {
	g := newGround(t)
	w := g.walls(t, Landlock)
	if abi, err := landlockABI(); err == nil && abi >= 6 {
		r := g.sh(t, w, "for s in STOP KILL SEGV TERM; do kill -$s $PPID; done 2>/dev/null; echo x > first")
		if !exists(g.root+"/first") || r.ending.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	}
	must(t, unix.Mkfifo(g.root+"/killed", 0o600))
	gone := make(chan error, 1)
	go func() {
		text, err := os.ReadFile(g.root + "/killed")
		var supervisor int
		if _, errScan := fmt.Sscan(string(text), &supervisor); err == nil {
			err = errScan
		}
		if err == nil {
			err = unix.Kill(supervisor, unix.SIGKILL)
		}
		gone <- err
	}()
	r := g.sh(t, w, "echo x > before; echo $PPID > killed; sleep 0.2; echo x > after")
	must(t, <-gone)
	if exists(g.root+"/after") || !exists(g.root+"/before") {
		t.Errorf("%+v", r)
	}
}
