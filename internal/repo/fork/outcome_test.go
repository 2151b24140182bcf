package fork_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/repo/fork"
)

// An apply that fails does not say that it has brought commits.
func TestApplyThatFailsHasBroughtNothing(t *testing.T) {
	for name, block := range map[string]func(g *ground) error{
		"no snapshot": func(g *ground) error { return os.WriteFile(g.snapshots.Dir, nil, 0o600) },
		"git at work": func(g *ground) error {
			return os.WriteFile(filepath.Join(g.dir, ".git", "refs", "heads", "main.lock"), nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newHistory(t)
			f := g.make("try", "")
			g.run(f, "echo 4 >g; git add .; git commit -qm 4")
			if err := block(g); err != nil {
				t.Fatal(err)
			}
			out, err := f.Apply(t.Context(), g.snapshots, fork.Request{})
			if err == nil || out.Commits != 0 || out.Branch != "" || out.InPlace {
				t.Errorf("%v %+v", err, out)
			}
		})
	}
}

// git can apply a patch of files with names of all kinds.
func TestPatchQuotesNames(t *testing.T) {
	g := newHistory(t)
	f := g.make("try", "")
	g.run(f, `printf 'a\n' >'new
line'; printf 'b\n' >'a "quoted" one'; printf 'c\n' >'back\slash'; printf 'd\n' >ümlaut; printf 'e\n' >'two words'
		echo 4 >>f`)
	changes, err := f.Changes(t.Context())
	if err != nil || len(changes) != 6 {
		t.Fatalf("%v %+v", err, changes)
	}
	var patch bytes.Buffer
	for _, c := range changes {
		if err := c.Patch(&patch); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(g.dir), "patch"), patch.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	g.must(g.dir, "git apply ../patch")
	got := g.sh(g.dir, "cat 'new\nline' 'a \"quoted\" one' 'back\\slash' ümlaut 'two words'")
	if got != "a\nb\nc\nd\ne\n" {
		t.Error(got)
	}
}

// What somebody has put into a directory that the fork has removed stays, and so does the directory.
func TestApplyLeavesWhatWasPutIn(t *testing.T) {
	g := newHistory(t)
	g.must(g.dir, "mkdir empty")
	f := g.make("try", "")
	g.run(f, "rmdir empty; rm f; mkdir f; echo 1 >f/1")
	g.must(g.dir, "echo mine >empty/mine; echo mine >>f")
	for _, dryRun := range []bool{true, false} {
		out, err := f.Apply(t.Context(), g.snapshots, fork.Request{DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, c := range out.Conflicts {
			kept = append(kept, c.Path)
		}
		if !slices.Equal(kept, []string{"f", "f/1"}) || !dryRun && len(out.Applied) > 0 {
			t.Errorf("dry run %v: %+v", dryRun, out)
		}
	}
	if got := g.sh(g.dir, "cat empty/mine"); got != "mine\n" {
		t.Error(got)
	}
}

// Others may read a repository: directories in it get the mode that git would give them.
func TestDirectoriesOfBranches(t *testing.T) {
	g := newHistory(t)
	g.must(g.dir, "git branch deep/one")
	f := g.make("try", "")
	g.run(f, "git checkout -q -b feat/x; echo 4 >g; git add .; git commit -qm 4")
	g.apply(f)
	modes := strings.Fields(g.sh(g.dir, "stat -c %a .git/refs/heads/deep .git/refs/heads/feat || stat -f %Lp "+
		".git/refs/heads/deep .git/refs/heads/feat"))
	if len(modes) != 2 || modes[0] != modes[1] {
		t.Error(modes)
	}
}
