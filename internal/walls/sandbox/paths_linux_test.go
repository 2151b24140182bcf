package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// plantings are ways to plant something in a workspace, by paths that do not begin with its own. Each is a line of
// bash, with the directory above the workspace as $1 and its name as $2.
func plantings() []string {
	return []string{
		"mv /proc/self/cwd/.git /proc/self/cwd/evil", "mv .git evil", "mv $1/$2/.git $1/evil",
		"mkdir /proc/self/cwd/.claude && echo evil > /proc/self/cwd/.claude/x",
		"mkdir /proc/$$/cwd/.claude && echo evil > /proc/$$/cwd/.claude/x",
		"for d in /tmp /var/tmp /dev/shm; do mkdir -p $d/$2/.claude; echo evil > $d/$2/.claude/x; echo evil >> " +
			"$d/$2/.mcp.json; " +
			"echo evil >> $d/$2/.git/config; done",
		"exec 7<.; echo evil >> /dev/fd/7/.git/config; mkdir /proc/self/fd/7/.claude; echo evil > /dev/fd/7/.mcp.json",
		"exec 7<.git; echo evil >> /dev/fd/7/config; echo evil > /proc/self/fd/7/hooks/pre-commit",
		"echo evil >> /proc/self/root$1/$2/.git/config",
		"cd .git; echo evil >> ../$(printf './%.0s' {1..50})/.git/config",
		"python3 -c 'import os, ctypes; l = ctypes.CDLL(None); " +
			"l.renameat2(-100, b\".git\", -100, b\"sub\", 2); l.renameat2(-100, b\"sub\", -100, b\".claude\", 2)'",
		"mv $1/$2 $1/moved; mkdir -p $1/$2/.claude; echo evil > $1/$2/.claude/x; echo evil >> $1/moved/.mcp.json",
		"cd .git && exec 8<config && echo evil >> /proc/self/fd/8", "mv sub .claude", "ln -s sub .claude",
		"mv sub/x .mcp.json",
		"ln sub/x .mcp.json", "cp sub/x .git/config.lock && mv .git/config.lock .git/config",
		"python3 -c 'import os; f = os.open(\".git/hooks\", os.O_TMPFILE | os.O_RDWR); os.write(f, b\"evil\"); " +
			"os.link(\"/proc/self/fd/%d\" % f, \".git/hooks/pre-commit\", src_dir_fd=f, follow_symlinks=True)'",
	}
}

// TestEveryPlace: a workspace is protected wherever it lies, by whatever path it is reached, and also if commands may
// write the directory that holds it. Without OMNIAGENT_WHOLE=matrices each place is tried once in each tier, and once
// with such a directory.
func TestEveryPlace(t *testing.T) {
	hermetic.Long(t)
	own, _ := os.UserHomeDir()
	inEachTier(t, func(t *testing.T, tier Tier) {
		for i, base := range []string{"/tmp", "/var/tmp", own, "/var/lib", "/dev/shm"} {
			for _, wide := range []bool{false, true} {
				if wide == ((i+int(tier))%2 == 0) && !hermetic.Matrices() {
					continue
				}
				t.Run(fmt.Sprintf("%s %v", base, wide), func(t *testing.T) {
					g := newGround(t)
					dir, err := os.MkdirTemp(base, ".test-")
					if err != nil {
						t.Skipf("nothing can be made there: %v", err)
					}
					t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
					g.root = dir + "/work"
					must(t, os.Mkdir(g.root, 0o700))
					g.repository(t)
					must(t, os.Mkdir(g.root+"/sub", 0o700))
					must(t, os.WriteFile(g.root+"/sub/x", []byte("evil"), 0o600))
					w := g.walls(t, tier, func(p *Policy) {
						if wide {
							p.Write = []string{dir}
						}
					})
					lines := "(" + strings.Join(plantings(), "\n)\n(") + "\n)"
					r := g.run(t, w, "bash", "-c", lines, "bash", dir, "work")
					intact(t, g.root, r.out)
					if r = g.sh(t, w,
						"echo x > sub/y && mv sub sub2 && echo x > /proc/self/cwd/sub2/z"); r.ending.ExitCode != 0 ||
						!exists(g.root+"/sub2/z") {
						t.Errorf("what is not protected cannot be written: %+v", r)
					}
				})
			}
		}
	})
}

// intact reports what was planted.
func intact(t *testing.T, root, line string) {
	t.Helper()
	found, _ := exec.Command("grep", "-rlsw", "evil", root+"/.git/config", root+"/.git/hooks", root+"/.mcp.json",
		root+"/.claude").Output()
	if _, err := os.Lstat(root + "/.claude"); err == nil || len(found) > 0 || !exists(root+"/.git/HEAD") {
		t.Fatalf("planted: %s, %v\n%s", found, err, line)
	}
}

// TestMountedTwice: a workspace that is mounted at a second place, in a directory that commands may write, is protected
// there too.
func TestMountedTwice(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only the superuser mounts")
	}
	g := newGround(t)
	g.repository(t)
	must(t, os.MkdirAll(g.root+"/sub", 0o700))
	must(t, os.MkdirAll(g.dir+"/more/again", 0o700))
	must(t, os.MkdirAll(g.dir+"/more/part", 0o700))
	cmd := exec.Command("/proc/self/exe", "twice", g.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		t.Error(line)
	}
	intact(t, g.root, string(out))
}

// twice mounts a workspace twice, and tries to plant something by its second names.
func twice(dir string) error {
	g := groundIn(dir)
	for _, mount := range [][2]string{
		{"", "/"},
		{g.root, dir + "/more/again"},
		{g.root + "/.git", dir + "/more/part"},
	} {
		flags := uintptr(unix.MS_BIND)
		if mount[0] == "" {
			flags = unix.MS_REC | unix.MS_PRIVATE
		}
		if err := unix.Mount(mount[0], mount[1], "", flags, ""); err != nil {
			return err
		}
	}
	for _, tier := range []Tier{Namespaces, Landlock} {
		p := g.policy()
		p.Write = []string{dir + "/more"}
		w, err := Open(p, Report{OS: "linux", Tier: Namespaces}, Options{Tier: tier, State: g.state})
		if err != nil {
			return err
		}
		const line = `cd more; for d in again ../root; do echo evil >> $d/.git/config; mkdir $d/.claude; echo evil > $d/.mcp.json
			echo evil > $d/.git/hooks/pre-commit; mv $d/.git $d/git; done 2> /dev/null
			(echo evil >> part/config; echo evil > part/hooks/pre-commit; mv part/hooks part/h) 2> /dev/null; echo x > again/sub/plain`
		plan, err := w.Plan(process.Plan{
			Argv: []string{"bash", "-c", "cd ..; " + line}, Path: "/bin/bash", Dir: g.root,
			Env: []string{"PATH=/usr/bin:/bin"}, Stdout: os.Stdout, Stderr: os.Stderr,
		})
		if err != nil {
			return err
		}
		child, err := process.Start(plan)
		if err != nil {
			return err
		}
		child.Wait()
		for _, name := range []string{"/.claude", "/.mcp.json", "/.git/hooks/pre-commit"} {
			if exists(g.root + name) {
				fmt.Println(tier, "planted", name)
			}
		}
		if text, err := os.ReadFile(g.root + "/.git/config"); err != nil || strings.Contains(string(text), "evil") {
			fmt.Println(tier, "changed the configuration", err)
		}
		if !exists(filepath.Join(g.root, "sub/plain")) {
			fmt.Println(tier, "could not write")
		}
		_ = os.Remove(g.root + "/sub/plain")
		if err := w.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestSecondNames: a protected file that has a second name by a hard link is not changed by that either.
func TestSecondNames(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		must(t, os.WriteFile(g.root+"/hook.sh", []byte("mine\n"), 0o700))
		must(t, os.Link(g.root+"/hook.sh", g.root+"/.git/hooks/pre-commit"))
		must(t, os.WriteFile(g.root+"/.mcp.json", []byte("mine\n"), 0o600))
		must(t, os.Link(g.root+"/.mcp.json", g.root+"/servers.json"))
		must(t, os.MkdirAll(g.root+"/.claude/a/b", 0o700))
		must(t, os.WriteFile(g.root+"/.claude/a/b/deep", []byte("mine\n"), 0o600))
		must(t, os.Link(g.root+"/.claude/a/b/deep", g.root+"/deep"))
		must(t, os.WriteFile(g.root+"/a", []byte("a\n"), 0o600))
		r := g.sh(t, g.walls(t, tier), `for f in hook.sh servers.json deep; do echo evil >> $f; echo evil > $f; : > $f; truncate -s 0 $f
			exec 7<$f; echo evil > /proc/self/fd/7; exec 7<>$f; ln $f twin; echo evil >> twin; rm twin; mv $f other; echo evil >> other
			done; ln a b && echo b >> a && echo c > b`)
		for name, want := range map[string]string{
			"/.git/hooks/pre-commit": "mine\n", "/.mcp.json": "mine\n", "/.claude/a/b/deep": "mine\n",
			"/a": "c\n",
		} {
			if text, err := os.ReadFile(g.root + name); err != nil || string(text) != want {
				t.Errorf("%s: %q %v %+v", name, text, err, r)
			}
		}
	})
}
