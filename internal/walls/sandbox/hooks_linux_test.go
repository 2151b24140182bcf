package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoCommandWritesAHook: whatever way a person's configuration leads to the directory of hooks, git outside of the
// walls runs nothing that a command wrote.
func TestNoCommandWritesAHook(t *testing.T) {
	for name, c := range map[string]struct{ setting, dir, before string }{ // ROOT is the workspace, LINK a link to it
		"a name":                      {"hk", "hk", ""},
		"the workspace":               {"ROOT", ".", ""},
		"the workspace, by a link":    {"LINK", ".", ""},
		"through a link":              {"LINK/hk", "hk", ""},
		"through a link and back":     {"LINK/sub/../hk", "hk", ""},
		"beside where a link leads":   {"in/../hk", "sub/hk", ""},
		"beside a link of its own":    {"in/../hk", "own/hk", "mkdir -p own/deep; ln -sfn own/deep in; "},
		"with a tab":                  {"my\thk", "my hk", ""},
		"with a blank that continues": {"hk \\\n", "hk ", ""},
		"up to a NUL":                 {"hk\x00x", "hk", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			g.repository(t)
			link := filepath.Join(g.outside, "ws")
			must(t, os.Symlink(g.root, link))
			must(t, os.MkdirAll(filepath.Join(g.root, "sub", "deep"), 0o755))
			must(t, os.Symlink(filepath.Join("sub", "deep"), filepath.Join(g.root, "in")))
			file, err := os.OpenFile(filepath.Join(g.root, ".git", "config"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			value := strings.NewReplacer("ROOT", g.root, "LINK", link).Replace(c.setting)
			_, err = file.WriteString("[core]\nhooksPath = " + value + "\n")
			must(t, err)
			must(t, file.Close())
			made := filepath.Join(g.outside, "made")
			hook := filepath.Join(c.dir, "pre-commit")
			line := "mkdir -p '" + c.dir + "'; printf '#!/bin/sh\\n: >" + made + "\\n' >'" + hook + "'; " +
				"chmod +x '" + hook + "'"
			w, err := Open(g.policy(), Report{OS: "linux", Tier: Namespaces}, Options{Tier: Namespaces, State: g.state})
			if err == nil { // a NUL is refused
				g.sh(t, w, c.before+line)
				must(t, w.Close())
			}
			commit := exec.Command("git", "commit", "-q", "--allow-empty", "-m", "x")
			commit.Dir = g.root
			out, _ := commit.CombinedOutput()
			if _, err := os.Lstat(made); err == nil {
				t.Errorf("git ran the hook of a command: %s", out)
			}
		})
	}
}
