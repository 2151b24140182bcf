package fork_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/snapshot"
	"omniagent/internal/testkit/hermetic"
)

// Modes of tracked files come together like their content.
func TestApplyModes(t *testing.T) {
	hermetic.Long(t)
	for name, c := range map[string]struct{ fork, here, mode, content, status string }{
		"the fork's, touched":      {"chmod +x s", "touch s", "755", "a\nb\nc\n", "mode"},
		"the fork's, edited":       {"chmod +x s", "echo d >>s", "755", "a\nb\nc\nd\n", "mode"},
		"the fork's, gone, edited": {"chmod -x x", "sed -i s/a/A/ x", "644", "A\nb\nc\n", "mode"},
		"the fork's of a private":  {"chmod +x s", "echo d >>s; chmod 600 s", "700", "a\nb\nc\nd\n", "mode"},
		"mine, edited there":       {"echo d >>s", "chmod 755 s", "755", "a\nb\nc\nd\n", "modified"},
		"mine, gone, edited there": {"echo d >>x", "chmod 644 x", "644", "a\nb\nc\nd\n", "modified"},
		"mine and theirs, the same": {
			"echo d >>s; chmod +x s", "chmod +x s; sed -i s/a/A/ s", "755", "A\nb\nc\nd\n", "modified",
		},
		"the fork's, binary": {"chmod +x z", "printf 'b\\0' >z", "755", "b\x00", "mode"},
		"mine, binary there": {"printf 'b\\0' >z", "chmod +x z", "755", "b\x00", "modified"},
	} {
		t.Run(name, func(t *testing.T) {
			tiers(t, func(t *testing.T, tier fork.Tier) {
				g := newGround(t)
				g.must(g.dir, `git init -q -b main; printf 'a\nb\nc\n' | tee s >x; printf 'a\0' >z; chmod 644 s z
					chmod 755 x; git add .; git commit -qm first`)
				g.settle()
				f := g.make("try", tier)
				g.run(f, c.fork)
				g.must(g.dir, c.here)
				file := c.fork[len(c.fork)-1:]
				changes, err := f.Changes(t.Context())
				if err != nil || len(changes) != 1 || changes[0].Path != file ||
					changes[0].Status != snapshot.Status(c.status) {
					t.Errorf("%v %+v", err, changes)
				}
				if out := g.apply(f); len(out.Applied)+len(out.Merged) != 1 || len(out.Conflicts) > 0 {
					t.Errorf("%+v", out)
				}
				if diff := cmp.Diff(c.content, g.read(file)); diff != "" {
					t.Error(diff)
				}
				if got := g.sh(g.dir, "stat -c %a "+file); got != c.mode+"\n" {
					t.Errorf("mode %s, want %s", got, c.mode)
				}
				if again := g.apply(f); len(again.Applied)+len(again.Merged)+len(again.Conflicts) > 0 {
					t.Errorf("again: %+v", again)
				}
			})
		})
	}
}

// Where git does not look at modes, neither does an apply.
func TestApplyWithoutModes(t *testing.T) {
	g := newGround(t)
	g.must(g.dir, `git init -q -b main; git config core.fileMode false; chmod 755 . ; echo a >s; chmod 777 s; git add .
		git commit -qm first`)
	g.settle()
	f := g.make("try", "")
	g.run(f, "touch s")
	g.must(g.dir, "touch s")
	if changes, err := f.Changes(t.Context()); err != nil || len(changes) > 0 {
		t.Errorf("%v %+v", err, changes)
	}
}
