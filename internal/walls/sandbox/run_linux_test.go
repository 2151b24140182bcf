package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// TestRunIsEmpty but for what /etc and PATH lead to: managers of versions have links there.
func TestRunIsEmpty(t *testing.T) {
	g := newGround(t)
	dir := g.runtime()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skip("no directory can be made in /run: ", err)
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	for _, path := range []string{dir + "/bin/plain", g.outside + "/bin/linked", dir + "/login", dir + "/named"} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, hermetic.WriteProgram(path, []byte("#!/bin/sh\necho ran\n"), 0o700))
	}
	must(t, os.Symlink(g.outside, dir+"/link"))
	path := strings.Join([]string{dir + "/bin", dir + "/link/bin", os.Getenv("PATH"), dir + "/absent", "/run"}, ":")
	t.Setenv("PATH", path)
	const line = `plain; linked; grep -q . /etc/resolv.conf || echo no; cat "$0/login" 2>&- || echo hidden;
		cat "$0/named" 2>&- || echo hidden; echo ${XDG_RUNTIME_DIR-unset}`
	says := func(plan func(process.Plan) (process.Plan, error)) string {
		var out bytes.Buffer
		p, err := plan(process.Plan{
			Argv: []string{"bash", "-c", line, dir}, Path: "/bin/bash", Dir: g.root, Stdout: &out, Stderr: &out,
			Env: append(os.Environ(), "XDG_RUNTIME_DIR="+dir),
		})
		must(t, err)
		c, err := process.Start(p)
		must(t, err)
		c.Wait()
		return out.String()
	}
	const want = "ran\nran\nhidden\nhidden\nunset\n"
	for _, tier := range tiers(t) {
		w := g.walls(t, tier, func(p *Policy) {
			p.Homes, p.Places = []string{g.state}, []Place{{Path: dir + "/named", Visibility: Shown}}
		})
		if got := says(w.Plan); got != strings.Replace(want, "hidden\nu", "#!/bin/sh\necho ran\nu", 1) {
			t.Errorf("%s: %q", tier, got)
		}
		for file, seen := range map[string]bool{
			dir + "/bin/plain": true, dir + "/login": false, dir + "/named": true, "/run": false,
		} {
			if e := w.policy.Explain(file, Report{Tier: tier})[0]; e.Allowed != seen || e.Why == "" {
				t.Errorf("%s: %s: %+v", tier, file, e)
			}
		}
	}
	inside := g
	inside.root = dir + "/workspace"
	must(t, os.Mkdir(inside.root, 0o700))
	for _, tier := range tiers(t) {
		r := inside.sh(t, inside.walls(t, tier), `echo x > file; mkdir sub; echo x > ../file; chmod 755 ..; cat file`)
		above, err := os.Stat(dir)
		must(t, err)
		if !strings.HasSuffix(r.out, "x\n") || !exists(inside.root+"/sub") || exists(dir+"/file") ||
			above.Mode().Perm() != 0o700 {
			t.Errorf("a workspace there, %s: %+v, %s", tier, r, above.Mode())
		}
		must(t, os.Remove(inside.root+"/sub"))
	}
	a := newAgentHome(t, nil)
	plan := func(p process.Plan) (process.Plan, error) {
		p.Dir = a.root
		return a.walls.Plan(p, a.needs)
	}
	if got := says(plan); got != want {
		t.Errorf("an agent: %q", got)
	}
}

// TestTmpOfOthers: with Landlock alone a workspace below /tmp is where it was, and its neighbours cannot be read.
func TestTmpOfOthers(t *testing.T) {
	tiers(t)
	dir, err := os.MkdirTemp("/tmp", "omniagent-test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	g := groundIn(dir)
	for _, d := range []string{g.root, g.outside, g.secret, g.temp, g.state, dir + "/more", dir + "/book"} {
		must(t, os.MkdirAll(d, 0o700))
	}
	must(t, os.WriteFile(g.outside+"/file", []byte("outside"), 0o600))
	must(t, os.WriteFile(dir+"/book/page", []byte("page\n"), 0o600))
	g.repository(t)
	w := g.walls(t, Landlock, func(p *Policy) {
		p.Write, p.Homes = []string{dir + "/more"}, []string{g.state}
		p.Places = []Place{{Path: dir + "/book", Visibility: Shown}}
	})
	r := g.sh(t, w, "echo x >own && cat own; echo y >../more/own && cat ../more/own; "+
		"echo z >$TMPDIR/t && cat $TMPDIR/t; cat ../book/page; git add own && git status --short; cat <<<here; "+
		"cat ../outside/file 2>&- || echo hidden; "+
		"cd /tmp; cat $(basename $(dirname $OLDPWD))/outside/file 2>&- || echo hidden")
	if want := "x\ny\nz\npage\nA  own\nhere\nhidden\nhidden\n"; r.out != want {
		t.Errorf("%q", r.out)
	}
	for file, seen := range map[string]bool{
		g.root + "/own": true, g.outside + "/file": false, dir + "/book/page": true, g.temp: true,
	} {
		if e := w.policy.Explain(file, Report{Tier: Landlock})[0]; e.Allowed != seen || e.Why == "" {
			t.Errorf("%s: %+v", file, e)
		}
	}
}
