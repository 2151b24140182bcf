package fork_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// settle returns when the clock for file times has moved on, so that what was written before is certainly older than
// what comes next.
func (g *ground) settle() {
	g.t.Helper()
	probe := filepath.Join(filepath.Dir(g.dir), "clock")
	at := func() time.Time {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			g.t.Fatal(err)
		}
		info, err := os.Stat(probe)
		if err != nil {
			g.t.Fatal(err)
		}
		return info.ModTime()
	}
	for began := at(); at().Sub(began) < 30*time.Millisecond; {
		g.sh(g.dir, "true")
	}
}

func reasons(out fork.Outcome) map[string]string {
	all := map[string]string{}
	for _, c := range out.Conflicts {
		all[c.Path] = c.Reason
	}
	return all
}

// What was moved into the workspace later is the person's, however old its files are.
func TestApplyKeepsWhatWasMovedIn(t *testing.T) {
	hermetic.Long(t)
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newGround(t)
		g.must(g.dir, `git init -q -b main; mkdir -p dist src deep/er; echo 'dist/' >.gitignore; echo b >dist/b
			seq 5 >src/f; echo a >src/a; echo x >deep/er/x; git add . && git commit -qm first
			mkdir -p ../photos/more ../next ../other; echo p >../photos/note; echo q >../photos/more/note
			echo mine >../next/f; echo a >../next/a; echo own >../other/x`)
		g.settle()
		f := g.make("try", tier)
		g.run(f, "rm -rf dist; mkdir dist; echo new >dist/b; echo fork >src/f; rm -r deep/er; echo file >deep/er")
		g.must(g.dir, `mv ../photos dist/photos; mv src src.old; mv ../next src
			mv deep deep.old; mkdir deep; mv ../other deep/er`)
		changes, err := f.Changes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			if strings.HasPrefix(c.Path, "dist/photos") {
				t.Errorf("the fork did not change %s", c.Path)
			}
		}
		out := g.apply(f)
		for name, want := range map[string]string{
			"dist/photos/note": "p\n", "dist/photos/more/note": "q\n", "src.old/f": "1\n2\n3\n4\n5\n", "src/a": "a\n",
			"deep/er/x": "own\n", "dist/b": "new\n",
		} {
			if got := g.read(name); got != want {
				t.Errorf("%s has %q, want %q", name, got, want)
			}
		}
		if got := g.read("src/f"); !strings.Contains(got, "mine\n") || reasons(out)["src/f"] == "" {
			t.Errorf("src/f has %q: %+v", got, out)
		}
		if reasons(out)["deep/er"] == "" {
			t.Errorf("%+v", out)
		}
	})
}

// A whole workspace that took the place of the forked one is the person's too.
func TestApplyToAnotherWorkspace(t *testing.T) {
	g := newGround(t)
	g.must(g.dir, "echo a >a; mkdir ../project.new; echo mine >../project.new/a")
	g.settle()
	f := g.make("try", "")
	g.run(f, "echo fork >a")
	g.must(filepath.Dir(g.dir), "mv project project.old; mv project.new project")
	if out := g.apply(f); !strings.Contains(g.read("a"), "mine\n") || reasons(out)["a"] == "" {
		t.Errorf("%q: %+v", g.read("a"), out)
	}
}

// What the snapshot does not have stays, because undo could not bring it back.
func TestApplyKeepsWhatUndoCannotRestore(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newGround(t)
		g.snapshots.FileLimit, g.snapshots.IgnoredLimit = 1000, 1500
		g.must(g.dir, `git init -q -b main; echo "out*" >.gitignore; mkdir out out2; seq 1000 >tracked; git add .
			git commit -qm first; seq 1000 >large; seq 1000 >replaced; seq 1000 >mode; seq 10 >small
			seq 1000 >out/large; seq 10 >out2/small; mkfifo pipe`)
		g.settle()
		f := g.make("try", tier)
		g.run(f, "rm -r large tracked small out out2 pipe; echo fork >replaced; chmod 755 mode")
		planned, err := f.Apply(t.Context(), g.snapshots, fork.Request{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		out := g.apply(f)
		kept := map[string]string{}
		for _, name := range []string{"large", "out/large", "pipe", "replaced"} {
			kept[name] = "the snapshot does not have what is here, so undo could not bring it back"
		}
		if tier != fork.Overlay {
			delete(kept, "pipe") // a copy has no pipes
		}
		if diff := cmp.Diff(kept, reasons(out)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(kept, reasons(planned)); diff != "" {
			t.Errorf("planned: %s", diff)
		}
		got := g.sh(g.dir, "ls; ls out; stat -c %a mode")
		if strings.Contains(got, "small") || strings.Contains(got, "tracked") ||
			!strings.HasSuffix(got, "large\n755\n") {
			t.Errorf("%s", got)
		}
		if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); err != nil {
			t.Fatal(err)
		}
		if g.read("small") == "" || g.read("out2/small") == "" || g.read("tracked") == "" {
			t.Error(g.sh(g.dir, "ls . out2"))
		}
	})
}

// What git tracks and the workspace had lost before the fork began is new in the fork.
func TestApplyBringsBackWhatWasLost(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		g.must(g.dir, "rm src/one run; mkdir more; echo x >more/x")
		g.must(g.dir, "git add more/x; git commit -qm more; rm -r more")
		g.settle()
		f := g.make("try", tier)
		g.run(f, "echo one >src/one; echo other >run; mkdir more; echo x >more/x")
		out := g.apply(f)
		want := []string{"more", "more/x", "run", "src/one"}
		if !cmp.Equal(out.Applied, want) || len(out.Conflicts) > 0 {
			t.Errorf("%+v", out)
		}
		if got := g.sh(g.dir, "cat src/one run more/x"); got != "one\nother\nx\n" {
			t.Errorf("%q", got)
		}
	})
}
