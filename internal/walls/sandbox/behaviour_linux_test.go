package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// TestBehaviour looks at what a command sees, and how it ends.
func TestBehaviour(t *testing.T) {
	hermetic.Long(t)
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			g := newGround(t)
			must(t, os.MkdirAll(g.root+"/sub dir", 0o700))
			w := g.walls(t, tier)
			for _, c := range []struct {
				line, out string
				exit      int
				signal    string
			}{
				{"exit 7", "", 7, ""},
				{"kill -SEGV $$", "", -1, "SIGSEGV"},
				{"kill -KILL $$", "", -1, "SIGKILL"},
				{"exit 139", "", 139, ""},
				{"pwd; cd 'sub dir'; pwd -P", g.root + "\n" + g.root + "/sub dir\n", 0, ""},
				{"echo x > new && cat new && rm new", "x\n", 0, ""},
				{"echo x > /tmp/y && cat /tmp/y 2>/dev/null; true", map[Tier]string{Namespaces: "x\n"}[tier], 0, ""},
				{"f=$(mktemp) && echo z > $f && cat $f && rm $f", "z\n", 0, ""},
				{
					"echo to stderr > /dev/stderr; echo x > /dev/null; head -c 3 /dev/zero | od -An -c",
					"to stderr\n  \\0  \\0  \\0\n", 0, "",
				},
				{"trap 'echo caught' TERM; kill $$; echo on", "caught\non\n", 0, ""},
				{"(sleep 100 & ) ; (setsid sleep 100 &); echo left", "left\n", 0, ""},
				{"cat <(echo process substitution)", "process substitution\n", 0, ""},
				{"echo $0 \"$MARK\"", "bash with blanks and = signs\n", 0, ""},
				{"cat", "input", 0, ""},
				{
					"mkdir -p a/b && mv a/b c && rm -r a c && ln -s x y && rm y && mkfifo p && rm p && echo ok", "ok\n",
					0,
					"",
				},
				{"ulimit -c", "0\n", 0, ""},
			} {
				var out bytes.Buffer
				p, err := w.Plan(process.Plan{
					Argv: []string{"bash", "-c", c.line}, Path: "/bin/bash", Dir: g.root, Env: append(os.Environ(),
						"MARK=with blanks and = signs"),
					Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &out,
				})
				must(t, err)
				child, err := process.Start(p)
				must(t, err)
				e := child.Wait()
				if got := out.String(); tier == Landlock && strings.Contains(c.line, "/tmp/y") {
					continue
				} else if got != c.out || e.ExitCode != c.exit || e.Signal != c.signal {
					t.Errorf("%s: %q, %+v", c.line, got, e)
				}
			}
			if r := g.run(t, w, g.attacker, "ends"); r.ending.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
			p, err := w.Plan(process.Plan{Argv: []string{"not there"}, Path: "/not/there", Dir: g.root})
			must(t, err)
			child, err := process.Start(p)
			must(t, err)
			if e := child.Wait(); e.ExitCode != exitNotThere {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestAsked: a command is asked first, and killed then.
func TestAsked(t *testing.T) {
	for _, tier := range tiers(t) {
		t.Run(tier.String(), func(t *testing.T) {
			g := newGround(t)
			w := g.walls(t, tier)
			cases := []struct {
				line, out string
				exit      int
				signal    string
			}{
				{"trap 'echo asked; exit 3' TERM; echo ready; while :; do sleep 0.01; done", "ready\nasked\n", 3, ""},
				{"echo ready; sleep 100", "ready\n", -1, "SIGTERM"},
				{"trap '' TERM; echo ready; while :; do sleep 0.01; done", "ready\n", -1, "SIGKILL"},
				// What a shell leaves behind when it dies has its grace.
				{"bash -c \"trap 'sleep 0.2; echo cleaned > cleaned; exit' TERM; echo ready; while :; do sleep 0.01; " +
					"done\"; true", "ready\n", -1, "SIGTERM"},
				// One that outlasts the grace does not make it look as if the shell had.
				{"(trap '' TERM; while :; do sleep 0.01; done) & echo ready; wait", "ready\n", -1, "SIGTERM"},
				{
					"(trap '' TERM; while :; do sleep 0.01; done) & trap 'exit 4' TERM; echo ready; wait", "ready\n", 4,
					"",
				},
			}
			t.Run("cases", func(t *testing.T) {
				for i, c := range cases {
					t.Run(strconv.Itoa(i), func(t *testing.T) {
						t.Parallel() // it waits most of the time
						grace := hermetic.Patience
						if strings.Contains(c.line, "trap '' TERM") { // it outlasts every grace
							grace = 2 * time.Second
						}
						ours, theirs, err := os.Pipe()
						must(t, err)
						p, err := w.Plan(process.Plan{
							Argv: []string{"bash", "-c", c.line}, Path: "/bin/bash", Dir: g.root, Stdout: theirs,
							Grace: grace,
						})
						must(t, err)
						child, err := process.Start(p)
						must(t, err)
						_ = theirs.Close()
						word := make([]byte, 6)
						_, err = io.ReadFull(ours, word)
						must(t, err)
						child.End(syscall.SIGTERM)
						e := child.Wait()
						rest, _ := io.ReadAll(ours)
						_ = ours.Close()
						if got := string(word) + string(rest); got != c.out || e.ExitCode != c.exit ||
							e.Signal != c.signal || !e.Ended {
							t.Errorf("%s: %q %+v", c.line, got, e)
						}
					})
				}
			})
			if !exists(g.root + "/cleaned") {
				t.Error("what the shell had started got no grace")
			}
		})
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

// TestGit commits, in a repository and in a linked worktree.
func TestGit(t *testing.T) {
	hermetic.Long(t)
	const work = "echo x > file && git add file && git commit -qm one && git switch -qc other && git commit -q " +
		"--allow-empty -m two && git stash list && git log --oneline | wc -l"
	for _, tier := range tiers(t) {
		g := newGround(t)
		g.repository(t)
		if r := g.sh(t, g.walls(t, tier), work); r.out != "2\n" {
			t.Errorf("%s: %+v", tier, r)
		}
		g = newGround(t)
		common := g.dir + "/common"
		must(t, os.Mkdir(common, 0o700))
		git(t, common, "init", "-q")
		git(t, common, "config", "user.name", "a")
		git(t, common, "config", "user.email", "a@example.com")
		git(t, common, "commit", "-q", "--allow-empty", "-m", "zero")
		must(t, os.Remove(g.root))
		git(t, common, "worktree", "add", "-q", g.root)
		dirs := GitDirs(g.root)
		if want := []string{common + "/.git", common + "/.git/worktrees/root"}; !slices.Equal(dirs, want) {
			t.Errorf("%q", dirs)
		}
		w := g.walls(t, tier, func(p *Policy) { p.Write = dirs })
		if r := g.sh(t, w, work); r.out != "3\n" {
			t.Errorf("%s: %+v", tier, r)
		}
		if tier != Namespaces {
			continue
		}
		for _, line := range []string{
			"echo evil > " + common + "/.git/hooks/pre-commit", "echo evil >> " + common +
				"/.git/config", "echo evil > " + common + "/.git/commondir",
			"echo evil > " + dirs[1] + "/commondir", "mv " + dirs[1] + " " + common + "/.git/elsewhere", "mv " +
				common + "/.git/worktrees " + common + "/.git/w2",
			"rm .git", "echo 'gitdir: /' > .git", "mv .git g",
		} {
			if r := g.sh(t, w, line); r.ending.ExitCode == 0 {
				t.Errorf("%s: %+v", line, r)
			}
		}
	}
}

// TestGitDirs: a repository does not get more by saying so.
func TestGitDirs(t *testing.T) {
	g := newGround(t)
	victim := g.dir + "/victim"
	must(t, os.Mkdir(victim, 0o700))
	git(t, victim, "init", "-q")
	git(t, victim, "commit", "-q", "--allow-empty", "-m", "zero")
	git(t, victim, "worktree", "add", "-q", g.dir+"/tree")
	own := victim + "/.git/worktrees/tree"
	write := func(path, text string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for name, make := range map[string]func(){
		"none":         func() {},
		"another's":    func() { write(g.root+"/.git", "gitdir: "+own+"\n") },
		"the main one": func() { write(g.root+"/.git", "gitdir: "+victim+"/.git\n") },
		"one of its own": func() {
			write(g.root+"/.git", "gitdir: own/worktrees/x\n")
			write(g.root+"/own/worktrees/x/gitdir", g.root+"/.git\n")
			write(g.root+"/own/worktrees/x/commondir", victim+"/.git\n")
		},
		"in the workspace": func() {
			write(g.root+"/own/worktrees/x/commondir", "../..\n")
			write(g.root+"/own/HEAD", "ref: refs/heads/x")
			write(g.root+"/own/refs/x", "")
			write(g.root+"/own/objects/x", "")
		},
		"a directory": func() { must(t, os.Remove(g.root+"/.git")); must(t, os.Mkdir(g.root+"/.git", 0o700)) },
		"a link": func() {
			must(t, os.Remove(g.root+"/.git"))
			must(t, os.Symlink(g.dir+"/tree/.git", g.root+"/.git"))
		},
		"not where git puts": func() {
			must(t, os.Remove(g.root+"/.git"))
			write(g.outside+"/x/gitdir", g.root+"/.git\n")
			write(g.outside+"/x/commondir", victim+"/.git\n")
			write(g.root+"/.git", "gitdir: "+g.outside+"/x\n")
		},
	} {
		_ = os.RemoveAll(g.root)
		must(t, os.Mkdir(g.root, 0o700))
		if name != "none" && name != "another's" && name != "the main one" && name != "one of its own" {
			write(g.root+"/.git", "gitdir: own/worktrees/x\n")
			write(g.root+"/own/worktrees/x/gitdir", g.root+"/.git\n")
		}
		make()
		if dirs := GitDirs(g.root); dirs != nil {
			t.Errorf("%s: %q", name, dirs)
		}
	}
	if dirs := GitDirs(g.dir + "/tree"); !slices.Equal(dirs, []string{victim + "/.git", own}) {
		t.Errorf("%q", dirs)
	}
}

// TestHosts: a command reaches its proxy, and nothing else.
func TestHosts(t *testing.T) {
	if tiers(t)[0] != Namespaces {
		if _, err := Open(newGround(t).policy(), Report{Tier: Landlock}, Options{}); err != nil {
			t.Error(err)
		}
		g := newGround(t)
		p := g.policy()
		p.Network.Serve = func(net.Listener) func() { return nil }
		if w, err := Open(p, Report{Tier: Landlock}, Options{}); err == nil {
			t.Errorf("%+v", w.Enforced())
		}
		return
	}
	g := newGround(t)
	outside, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer outside.Close()
	var stopped sync.WaitGroup
	w := g.walls(t, Namespaces, func(p *Policy) {
		p.Network.Serve = func(l net.Listener) func() {
			stopped.Add(1)
			s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "proxy for ", r.URL)
			})}
			go func() { _ = s.Serve(l) }()
			return func() { _ = s.Close(); stopped.Done() }
		}
	})
	if c := w.Enforced(); c.Network != "hosts" {
		t.Errorf("%+v", c)
	}
	for range 3 {
		r := g.run(t, w, g.attacker, "fetches", "http://example.com/x", outside.Addr().String())
		if r.out != "proxy for http://example.com/x\n" {
			t.Errorf("%+v", r)
		}
	}
	stopped.Wait()
}

// fetches asks the proxy, and then tries to go past it.
func fetches(url, past string) error {
	r, err := http.Get(url)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r.Body)
	fmt.Println(string(text))
	if c, err := net.DialTimeout("tcp", past, time.Second); err == nil {
		fmt.Println("reached", c.RemoteAddr())
	}
	return err
}

// forks makes processes until it may not.
func forks() error {
	for count := 0; count < 1000; count++ {
		if _, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "50"},
			&syscall.ProcAttr{Files: []uintptr{0, 1, 2}}); err != nil {
			fmt.Println(count)
			return nil
		}
	}
	return errors.New("1000 processes")
}

// allocates takes more memory than it may.
func allocates() error {
	block := make([]byte, 3<<30)
	fmt.Println(len(block))
	return nil
}

// TestLimits: a command that makes processes without end, or takes memory without end, is refused.
func TestLimits(t *testing.T) {
	hermetic.Long(t)
	for _, tier := range tiers(t) {
		g := newGround(t)
		w := g.walls(t, tier, func(p *Policy) { p.Limits = Limits{Processes: 400} })
		numbers := !strings.Contains(strings.Join(w.Enforced().Holes, "\n"), "the number of processes")
		if numbers {
			r := g.run(t, w, g.attacker, "forks")
			count, err := strconv.Atoi(strings.TrimSpace(r.out))
			if err != nil || count > 420 || count < 300 {
				t.Errorf("%s: %+v", tier, r)
			}
		}
		w = g.walls(t, tier, func(p *Policy) { p.Limits = Limits{Memory: 1 << 30} })
		limits := g.sh(t, w, "ulimit -d")
		if r := g.run(t, w, g.attacker, "allocates"); limits.out == "1048576\n" && r.ending.ExitCode == 0 {
			t.Errorf("%s: %+v", tier, r)
			// more with the race detector
		} else if limits.out != "1048576\n" && ownData() < 1<<40 {
			t.Errorf("%s: %+v", tier, limits)
		}
	}
}

// TestReadOnlySome: a policy may name what can be read.
func TestReadOnlySome(t *testing.T) {
	for _, tier := range tiers(t) {
		g := newGround(t)
		must(t, os.Mkdir(g.dir+"/library", 0o700))
		must(t, os.WriteFile(g.dir+"/library/book", []byte("read\n"), 0o600))
		w := g.walls(t, tier, func(p *Policy) { p.Read = []string{g.dir + "/library"} })
		r := g.sh(t, w,
			"cat ../library/book; cat ../outside/file || echo no; head -c 4 /etc/passwd >/dev/null && echo system; "+
				"echo x > own && cat own")
		if want := "read\ncat: ../outside/file: Permission denied\nno\nsystem\nx\n"; r.out != want {
			t.Errorf("%s: %q", tier, r.out)
		}
	}
}

// TestExplain compares what is said with what happens.
func TestExplain(t *testing.T) {
	hermetic.Long(t)
	g := newGround(t)
	must(t, os.MkdirAll(g.root+"/.git/hooks", 0o700))
	must(t, os.MkdirAll(g.root+"/src", 0o700))
	for _, tier := range tiers(t) {
		p := g.policy()
		w := g.walls(t, tier)
		for _, path := range []string{
			g.root, g.root + "/src", g.root + "/.git", g.root + "/.git/hooks",
			g.root + "/.mcp.json", g.outside, g.secret, g.dir, "/", "/etc", "/usr/bin", g.temp,
		} {
			effects := p.Explain(path, Report{Tier: tier})
			if len(effects) != 2 || effects[0].Access != "read" || effects[1].Access != "write" ||
				effects[0].Why == "" || effects[1].Why == "" {
				t.Fatalf("%+v", effects)
			}
			t.Logf("%s %s: %+v", tier, path, effects)
			if path == g.temp {
				continue
			}
			r := g.sh(t, w, "cd '"+path+"' 2>/dev/null && ls >/dev/null 2>&1 && echo read; f='"+path+
				"/.new'; echo x 2>/dev/null >\"$f\" && echo write && rm \"$f\"; true")
			if tier == Namespaces && exists(path) && strings.Contains(r.out, "read") != effects[0].Allowed {
				t.Errorf("%s: %q %+v", path, r.out, effects[0])
			}
			if strings.Contains(r.out, "write") != effects[1].Allowed {
				t.Errorf("%s %s: %q %+v", tier, path, r.out, effects[1])
			}
		}
	}
}

// TestBeneathTmp: a workspace there is still where it was, and its neighbours are not.
func TestBeneathTmp(t *testing.T) {
	if tiers(t)[0] != Namespaces {
		t.Skip("this tier has no /tmp of its own")
	}
	dir, err := os.MkdirTemp("/tmp", "omniagent-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	g := groundIn(dir)
	for _, d := range []string{
		g.root + "/.git/hooks", g.outside, g.secret, g.temp, g.state, dir + "/more",
		dir + "/book",
	} {
		must(t, os.MkdirAll(d, 0o700))
	}
	must(t, os.WriteFile(g.outside+"/file", []byte("outside"), 0o600))
	must(t, os.WriteFile(dir+"/book/page", []byte("read\n"), 0o600))
	w := g.walls(t, Namespaces, func(p *Policy) {
		p.Write, p.Read = []string{dir + "/more"},
			append(systemDirs(), dir+"/book/page")
	})
	r := g.sh(t, w,
		"pwd; ls ..; echo x > own; echo y > ../more/own; cat ../book/page; echo no > ../book/page; echo no > "+
			".git/hooks/x; echo no > ../new; mv ../root ../r2")
	want := g.root + "\nbook\nmore\nroot\nread\n"
	if !strings.HasPrefix(r.out, want) || r.ending.ExitCode == 0 {
		t.Errorf("%+v", r)
	}
	for path, there := range map[string]bool{
		"/root/own": true, "/more/own": true, "/new": false,
		"/root/.git/hooks/x": false, "/r2": false,
	} {
		if exists(dir+path) != there {
			t.Errorf("%s: %v", path, !there)
		}
	}
	if text, _ := os.ReadFile(dir + "/book/page"); string(text) != "read\n" {
		t.Errorf("%q", text)
	}
}
