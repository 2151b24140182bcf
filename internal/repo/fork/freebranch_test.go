package fork_test

import (
	"errors"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
)

// TestBranchesAreTaken: refs that a command can plant do not make Apply search for ever.
func TestBranchesAreTaken(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		branch string // "" if there is a fault
	}{
		"a ref instead of the directory": {
			`printf '%s refs/heads\n' $(git rev-parse HEAD) >.git/packed-refs`, "fork/try",
		},
		"a ref below each name": {`for n in '' $(seq -f -%.0f 2 200); do
			printf '%s refs/heads/fork/try%s/x\n' $(git rev-parse HEAD) "$n"; done >.git/packed-refs`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, f := newStaging(t, "")
			g.must(g.dir, "git commit -q --allow-empty -m other; "+c.script)
			out, err := f.Apply(t.Context(), g.snapshots, fork.Request{})
			if c.branch == "" && !errors.Is(err, fault.Conflicting) || c.branch != "" && (err != nil ||
				out.Branch != c.branch) {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}
