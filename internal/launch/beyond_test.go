package launch

import (
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
)

// TestBeyond: which path of a call is outside of what an agent has, and which directory would open it.
func TestBeyond(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir, other := filepath.Join(home, "code/app"), filepath.Join(home, "code/other")
	for _, path := range []string{dir, other, filepath.Join(home, ".config/x")} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(other, "s.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := &AgentWalls{walls: &policy.AgentWalls{}, homes: []string{home}, dir: dir, keptBy: "--add-dir DIR"}
	a.explain = func(path string) ([]sandbox.Effect, error) {
		within := filepath.Dir(path) == dir || path == "/etc/hosts"
		return []sandbox.Effect{{Allowed: within}, {Allowed: within}}, nil
	}
	read := func(path string) *event.Call { return &event.Call{Kind: event.Read, Path: path} }
	shell := func(line string) *event.Call { return &event.Call{Kind: event.Shell, Command: line} }
	for _, c := range []struct {
		call *event.Call
		want outside
	}{
		{nil, outside{}},
		{read(filepath.Join(dir, "a")), outside{}},
		{read("a"), outside{}},
		{read(other + "/missing"), outside{}},
		{read(other + "/s.txt"), outside{other + "/s.txt", true, other}},
		{read("../other/s.txt"), outside{other + "/s.txt", true, other}},
		{read(other), outside{other, true, other}},
		{read(filepath.Join(home, ".config/x")), outside{filepath.Join(home, ".config/x"), true, ""}},
		{shell("cat /etc/hosts a"), outside{}},
		{shell("echo x >/tmp/omniagent-no-such-file; cat '../other/s.txt'"), outside{other + "/s.txt", true, other}},
		{shell("echo x >/tmp/omniagent-no-such-file"), outside{"/tmp/omniagent-no-such-file", false, ""}},
		{shell("echo x >~/notes"), outside{home + "/notes", false, ""}},
		{shell("cp x " + other + "/new"), outside{other + "/new", false, other}},
	} {
		got, is := a.beyond(c.call)
		if got != c.want || is != (c.want != outside{}) {
			t.Errorf("%+v: %+v, %v", c.call, got, is)
		}
	}
}
