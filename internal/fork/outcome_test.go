package fork_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
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
			out, err := f.Apply(t.Context(), g.snapshots, false)
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
