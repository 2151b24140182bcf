package fork_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
)

// TestTierIsNotWeakened: files that a command can put into the repository do not make the next fork a copy, which has
// the network of the machine.
func TestTierIsNotWeakened(t *testing.T) {
	for name, script := range map[string]string{
		"a long ref":         "head -c 2000000 /dev/zero >.git/refs/junk",
		"a long branch":      "head -c 2000000 /dev/zero >.git/refs/heads/junk",
		"a FIFO as refs":     "mkfifo .git/packed-refs",
		"a long packed-refs": "truncate -s 70M .git/packed-refs",
		"a directory":        "mkdir .git/packed-refs",
		"a link to a FIFO":   "mkfifo .git/pipe; ln -s pipe .git/packed-refs",
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			g.must(g.dir, "git init -q -b main; git commit -q --allow-empty -m first; "+script)
			if f := g.make("try", ""); f.Tier != fork.Overlay {
				t.Errorf("the tier is %s", f.Tier)
			}
		})
	}
}

// TestUnfitWorkspace: a workspace whose branches cannot be copied has no fork, instead of a weaker one. The path of a
// branch is short enough for the workspace, and too long for a layer.
func TestUnfitWorkspace(t *testing.T) {
	const longest = 4095 // bytes of a path, without the zero at its end
	g := newGround(t)
	g.must(g.dir, "git init -q -b main; git commit -q --allow-empty -m first")
	path := filepath.Join(g.dir, ".git", "refs", "heads")
	for len(path) < longest-210 {
		path = filepath.Join(path, strings.Repeat("x", 100))
	}
	path = filepath.Join(path, strings.Repeat("x", longest-len(path)-1))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := g.store.Make(t.Context(), fork.Wanted{Dir: g.dir})
	if !errors.Is(err, fault.Unsafe) || !strings.Contains(err.Error(), "cannot be copied") {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestNoSecretInAFork: a link in the git directory, which a command can make, does not bring what it leads to into a
// fork, where the command could read it.
func TestNoSecretInAFork(t *testing.T) {
	for _, name := range []string{"HEAD", "packed-refs", "index", "notes"} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			secret := filepath.Join(filepath.Dir(g.dir), "secret")
			g.must(g.dir, "git init -q -b main; git commit -q --allow-empty -m first; echo ref: refs/heads/canary >"+
				secret+"; ln -sf "+secret+" .git/"+name)
			f, err := g.store.Make(t.Context(), fork.Wanted{Dir: g.dir})
			if !errors.Is(err, fault.Unsafe) || !strings.Contains(err.Error(), secret) {
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
}
