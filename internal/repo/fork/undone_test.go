package fork_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// forget deletes all snapshots, with the records of what was undone.
func (g *ground) forget() {
	g.t.Helper()
	if _, _, err := g.snapshots.Delete(g.t.Context(), func(undo.Record) bool { return true }); err != nil {
		g.t.Fatal(err)
	}
	if left, err := g.snapshots.List(g.dir); err != nil || len(left) > 0 {
		g.t.Fatalf("%v %v", left, err)
	}
}

func (g *ground) undo() {
	g.t.Helper()
	if _, err := g.snapshots.Undo(g.t.Context(), undo.Request{Dir: g.dir}); err != nil {
		g.t.Fatal(err)
	}
}

// What was applied, undone and forgotten can be applied again.
func TestApplyAfterAForgottenUndo(t *testing.T) {
	hermetic.Long(t)
	scripts := map[string]string{
		"commits":  "echo 2 >src/2; git add src; git commit -qm second",
		"files":    "echo fork >src/one; rm src/numbers; echo new >new",
		"a file":   "echo new >new",
		"removed":  "rm src/numbers",
		"ignored":  "echo KEY >.env",
		"the mode": "chmod 600 run",
	}
	tiers(t, func(t *testing.T, tier fork.Tier) {
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) {
				g := newRepository(t)
				f := g.make("try", tier)
				g.run(f, script)
				first := g.apply(f)
				g.undo()
				g.forget()
				if changes, err := f.Changes(t.Context()); err != nil || len(changes) != len(first.Applied) {
					t.Errorf("%v, %+v", err, changes)
				}
				again := g.apply(f)
				again.Turn = first.Turn
				if diff := cmp.Diff(first, again); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}

// What was applied and stands is not brought again when its snapshot is gone, also if somebody changed it since.
func TestApplyAfterAForgottenApply(t *testing.T) {
	g := newRepository(t)
	f := g.make("try", "")
	g.run(f, "echo fork >src/one; rm src/numbers; echo 2 >src/2; git add src; git commit -qm second; echo KEY >.env")
	g.apply(f)
	g.forget()
	g.must(g.dir, "echo mine >.env; echo more >>src/one; git commit -qam third")
	if out := g.apply(f); len(out.Applied)+len(out.Merged)+len(out.Conflicts)+out.Commits > 0 {
		t.Errorf("%+v", out)
	}
	if g.read(".env") != "mine\n" || g.read("src/one") != "fork\nmore\n" {
		t.Errorf("%q %q", g.read(".env"), g.read("src/one"))
	}
	g.run(f, "echo again >.env2; git add -f .env2; git commit -qm fourth")
	if out := g.apply(f); out.Commits != 1 || out.InPlace || !cmp.Equal(out.Applied, []string{".env2"}) {
		t.Errorf("%+v", out)
	}
}

// What somebody else brought the workspace is not applied: when it goes again, the fork still differs and has it to
// apply.
func TestApplyOfWhatIsThereAlready(t *testing.T) {
	g := newRepository(t)
	const script = "echo fork >>src/one; rm src/numbers; echo new >new"
	one, two := g.make("one", ""), g.make("two", "")
	g.run(one, script)
	g.run(two, script)
	first := g.apply(one)
	if out := g.apply(two); len(out.Applied)+len(out.Merged)+len(out.Conflicts) > 0 {
		t.Errorf("applied what was there: %+v", out)
	}
	g.undo()
	changes, err := two.Changes(t.Context())
	if err != nil || len(changes) != 3 {
		t.Errorf("%v, %+v", err, changes)
	}
	if out := g.apply(two); !cmp.Equal(out.Applied, first.Applied) || g.read("new") != "new\n" {
		t.Errorf("%+v, before %+v", out, first)
	}
}

// What the workspace has of the fork, and more, needs no merge, and nothing is brought twice.
func TestApplyAfterTheSameByHand(t *testing.T) {
	g := newRepository(t)
	f := g.make("try", "")
	g.run(f, "sed -i s/^3$/three/ src/numbers; echo new >new")
	g.must(g.dir, "sed -i s/^3$/three/ src/numbers; echo new >new")
	if out := g.apply(f); len(out.Applied)+len(out.Merged)+len(out.Conflicts) > 0 {
		t.Errorf("%+v", out)
	}
	g.must(g.dir, "sed -i s/^1$/one/ src/numbers; rm new")
	if out := g.apply(f); !cmp.Equal(out.Applied, []string{"new"}) || len(out.Merged)+len(out.Conflicts) > 0 {
		t.Errorf("%+v", out)
	}
}
