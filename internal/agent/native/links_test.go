package native

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"omniagent/internal/guard"
)

// TestLinksInCommands: what a link leads to is judged like a path that was written, however the link is met.
func TestLinksInCommands(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(top, name) }
	for _, name := range []string{"ws/sub/deep/a", "ws/b", "home/.ssh/key", "home/plain/file", "home/plain/sub/x"} {
		if err := os.MkdirAll(filepath.Dir(at(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"ws/key": at("home/.ssh/key"), "ws/note.txt": at("home/plain/file"), "ws/dir": at("home/plain/sub"),
		"ws/chain": "note.txt", "ws/own": "sub/deep", "ws/loop": "loop", "named": "ws", "ws/gone": "/none",
	} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{"ws", "named"} {
		place := guard.Place{Root: at(root), Dir: at(root), Home: at("home"), Leads: Leads}
		for command, want := range map[string]guard.Decision{
			"cat key": guard.Deny, "cat ./key": guard.Deny, "cat k*": guard.Deny, "head < key": guard.Deny,
			"grep x key b": guard.Deny, "cat note.txt": guard.Ask, "cat *.txt": guard.Ask, "cat chain": guard.Ask,
			"cat dir/x": guard.Ask, "cat dir/../file": guard.Ask, "cd dir && cat ../file": guard.Ask,
			"ls dir/": guard.Ask, "cat d?r/x": guard.Ask, "diff -r own sub": guard.Ask, "grep -r x dir": guard.Ask,
			"cat b": guard.Allow, "cat own/a": guard.Allow, "cat sub/../b": guard.Allow, "cat s*/*/a": guard.Allow,
			"cat loop": guard.Allow, "cat gone": guard.Allow, "ls": guard.Allow, "cd sub && cat deep/a": guard.Allow,
			"diff -r --no-dereference own sub": guard.Allow,
		} {
			if v := guard.Tools.Command(command, place); v.Decision != want {
				t.Errorf("%s in %s: %s, want %s: %+v", command, root, v.Decision, want, v.Reasons)
			}
		}
	}
	if got := Leads(at("ws/*")); slices.Contains(got, at("ws/b")) || !slices.Contains(got, at("home/.ssh/key")) {
		t.Errorf("%v", got)
	}
}
