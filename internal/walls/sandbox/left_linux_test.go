package sandbox

import (
	"slices"
	"testing"
)

// TestLeft: what an agent leaves in its home directory and in /tmp is listed, and neither its own files, nor the
// workspace, nor what we put there. A file of ours counts when it is changed.
func TestLeft(t *testing.T) {
	t.Parallel()
	a := newAgentHome(t, nil)
	for _, c := range []struct {
		line string
		want []string
	}{
		{"echo b >>a; echo x >~/.agent/new; echo '{}' >~/.agent.json; mkdir -p ~/empty /tmp/empty", nil},
		{"echo x >/tmp/x; mkdir -p ~/d/e; echo x >~/d/e/f; ln -s / ~/link", []string{
			"/tmp/x", a.home + "/d/e/f", a.home + "/link",
		}},
		{"git config --global user.name x; rm ~/link /tmp/x", []string{a.home + "/.gitconfig", a.home + "/d/e/f"}},
	} {
		a.says(t, c.line)
		slices.Sort(c.want) // the home of the test lies anywhere
		if got := a.walls.Left(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", c.line, got, c.want)
		}
	}
}
