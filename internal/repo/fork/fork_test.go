package fork_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// ground is a workspace with a store of forks.
type ground struct {
	t         testing.TB
	dir       string // the workspace
	store     fork.Store
	snapshots undo.Store
}

// starter starts git with all of our variables.
func starter() process.Programs { return process.Programs{Env: os.Environ()} }

func newGround(t testing.TB) *ground {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{t: t, dir: filepath.Join(top, "project")}
	g.snapshots = undo.Store{Dir: filepath.Join(top, "undo"), Home: top}
	g.store = fork.Store{
		Dir: filepath.Join(top, "state", "forks"), Root: g.snapshots.Root, Undone: g.snapshots.TakenBack,
		Programs: starter(),
	}
	g.sh(top, "mkdir project")
	t.Cleanup(func() { // the kernel has made directories that nobody may enter
		all, err := g.store.List()
		for _, f := range all {
			if _, errDelete := f.Delete(context.Background()); err == nil {
				err = errDelete
			}
		}
		if err != nil {
			t.Error(err)
		}
	})
	return g
}

// newRepository is a ground with a repository, where something is staged, changed, untracked and ignored.
func newRepository(t testing.TB) *ground {
	g := newGround(t)
	g.must(g.dir, `git init -q -b main
		mkdir src modules empty; seq 100 >src/numbers; echo one >src/one; echo ignored >modules/ignored
		printf 'modules\n.env\n' >.gitignore; ln -s src/one link; printf '#!/bin/sh\n' >run; chmod 755 run
		git add . && git commit -qm first
		echo key >.env; echo two >src/two; echo changed >>src/one; echo staged >staged; git add staged`)
	hermetic.Settle(t) // what is as new as the fork counts as changed
	return g
}

func (g *ground) sh(dir, script string) string {
	g.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir, cmd.Env = dir, environment()
	out, _ := cmd.CombinedOutput()
	return string(out)
}

func (g *ground) must(dir, script string) {
	g.t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		g.t.Fatalf("%v\n%s", err, out)
	}
}

func environment() []string {
	return append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_EDITOR=true")
}

// make makes a fork in a tier, or ends the test with the reason why that does not work here.
func (g *ground) make(name string, tier fork.Tier) *fork.Fork {
	g.t.Helper()
	f, err := g.store.Make(g.t.Context(), fork.Wanted{Dir: g.dir, Name: name, Tier: tier})
	if err != nil {
		g.t.Fatal(err)
	}
	return f
}

// tiers runs a test in each tier that the machine has.
func tiers(t *testing.T, test func(t *testing.T, tier fork.Tier)) {
	for _, tier := range fork.Tiers() {
		t.Run(string(tier), func(t *testing.T) {
			g := newGround(t)
			g.must(g.dir, "echo x >x")
			if _, err := g.store.Make(t.Context(), fork.Wanted{Dir: g.dir, Tier: tier}); err != nil {
				if tier != fork.Reflink {
					t.Fatal(err)
				}
				t.Skipf("the file system cannot: %v", err)
			}
			test(t, tier)
		})
	}
}

// start starts a script in the fork.
func (g *ground) start(f *fork.Fork, script string, out *bytes.Buffer) *fork.Work {
	g.t.Helper()
	work, err := f.Start(g.t.Context(), process.Plan{
		Argv: []string{"sh", "-c", script}, Path: "/bin/bash", Dir: g.dir, Env: environment(), Stdout: out, Stderr: out,
	}, fork.Net{Word: "off"})
	if err != nil {
		g.t.Fatalf("%v\n%s", err, out.String())
	}
	return work
}

// run runs a script in the fork, and returns what it said.
func (g *ground) run(f *fork.Fork, script string) string {
	g.t.Helper()
	var out bytes.Buffer
	work := g.start(f, script, &out)
	ending, err := work.Wait()
	if err != nil || ending.ExitCode != 0 {
		g.t.Fatalf("%v %+v\n%s", err, ending, out.String())
	}
	return out.String()
}

func (g *ground) apply(f *fork.Fork) fork.Outcome {
	g.t.Helper()
	out, err := f.Apply(g.t.Context(), g.snapshots, fork.Request{})
	if err != nil {
		g.t.Fatal(err)
	}
	return out
}

func (g *ground) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(g.dir, name))
	return string(data)
}

// look is an independent walk: type, mode, bytes and time of each path.
func look(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
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
			text = fmt.Sprintf(" %x %d", sha256.Sum256(data), info.ModTime().UnixNano())
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
		}
		rel, _ := filepath.Rel(root, path)
		all[rel] = info.Mode().String() + text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Everything is in a fork, and nothing of what it does reaches the workspace.
func TestForkIsPrivate(t *testing.T) {
	hermetic.Long(t)
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		before, status := look(t, g.dir), g.sh(g.dir, "git --no-optional-locks status --porcelain --ignored")
		f := g.make("", tier)
		if f.Name != "project-1" || f.Tier != tier {
			t.Errorf("%+v", f.Record)
		}
		if got := g.run(f, "git --no-optional-locks status --porcelain --ignored"); got != status {
			t.Errorf("in the fork:\n%s\nwant:\n%s", got, status)
		}
		g.run(f, `cat .env modules/ignored src/two >/dev/null; git stash -q; git reset -q --hard; git clean -qfdx
			git branch other; git reflog expire --expire=now --all; git gc -q --prune=now
			rm -rf .git src; chmod 600 run; rm -rf ./* .env; echo new >new`)
		if diff := cmp.Diff(before, look(t, g.dir)); diff != "" {
			t.Errorf("the workspace was changed: %s", diff)
		}
		if got := strings.Fields(g.run(f, "ls -A")); !cmp.Equal(got, []string{".gitignore", "new"}) {
			t.Errorf("the fork has %q", got)
		}
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(g.store.Dir, "[^.]*")); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		if diff := cmp.Diff(before, look(t, g.dir)); diff != "" {
			t.Errorf("the workspace was changed: %s", diff)
		}
	})
}
