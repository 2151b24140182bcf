package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/process"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ground is a place with a workspace, a secret, and something outside that shall not change. It is not beneath /tmp, which commands do not see.
type ground struct {
	dir, root, outside, secret, temp, state string
}

func newGround(t testing.TB) ground {
	t.Helper()
	base := "/var/lib"
	if os.Geteuid() != 0 {
		base, _ = os.Getwd()
	}
	dir, err := os.MkdirTemp(base, ".omniagent-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	g := ground{dir, dir + "/root", dir + "/outside", dir + "/secret", dir + "/temp", dir + "/state"}
	for _, d := range []string{g.root, g.outside, g.secret, g.temp, g.state} {
		must(t, os.Mkdir(d, 0o700))
	}
	must(t, os.WriteFile(g.secret+"/key", []byte("secret"), 0o600))
	must(t, os.WriteFile(g.outside+"/file", []byte("outside"), 0o600))
	return g
}

func (g ground) policy() Policy {
	return Policy{
		Root: g.root, Temp: g.temp, Hidden: []string{g.secret, g.dir + "/absent"},
		Protected: []string{".git/hooks", ".git/config", ".claude", ".mcp.json"},
	}
}

func (g ground) repository(t testing.TB) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "a"}, {"config", "user.email", "a@example.com"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = g.root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
}

// walls are of the tier that is asked for.
func (g ground) walls(t testing.TB, tier Tier, change ...func(*Policy)) *Walls {
	t.Helper()
	p := g.policy()
	for _, f := range change {
		f(&p)
	}
	w, err := Open(p, Report{OS: "linux", Tier: Namespaces}, Options{Tier: tier, State: g.state})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

type result struct {
	out    string
	ending process.Ending
}

func (g ground) run(t testing.TB, w *Walls, argv ...string) result {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	must(t, err)
	var out bytes.Buffer
	p, err := w.Plan(process.Plan{Argv: argv, Path: path, Dir: g.root, Env: os.Environ(), Stdout: &out, Stderr: &out})
	must(t, err)
	c, err := process.Start(p)
	must(t, err)
	e := c.Wait()
	return result{out.String(), e}
}

func (g ground) sh(t testing.TB, w *Walls, line string) result {
	t.Helper()
	return g.run(t, w, "bash", "-c", line)
}

func TestSmoke(t *testing.T) {
	for _, tier := range []Tier{Namespaces, Landlock} {
		t.Run(tier.String(), func(t *testing.T) {
			g := newGround(t)
			g.repository(t)
			w := g.walls(t, tier)
			t.Logf("%q", w.Claim())
			for _, line := range []string{
				"id; pwd; ls -la; cat /proc/self/status | grep -E 'Cap|NoNew|Seccomp:'; ls /dev; ps ax",
				"echo x > " + g.outside + "/file; echo y > here; cat " + g.secret + "/key; mount | wc -l; ls -la /tmp",
				"git commit --allow-empty -m x; git status; touch .git/hooks/a; mv .git .g; echo > .git/commondir; ls -la .git",
				"kill -SEGV $$", "exit 7", "trap 'echo term' TERM; kill $$",
			} {
				r := g.sh(t, w, line)
				t.Logf("%s\n%s%+v", line, r.out, r.ending)
			}
			must(t, w.Close())
			list, _ := filepath.Glob(g.root + "/.*")
			t.Log(strings.Join(list, " "))
			list, _ = filepath.Glob(g.root + "/*")
			t.Log(strings.Join(list, " "))
			list, _ = filepath.Glob(g.state + "/walls/*")
			t.Log(strings.Join(list, " "))
		})
	}
}
