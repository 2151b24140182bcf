package undo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// TestRandomScriptsOverTrees takes random destructive scripts back in what people work with: a large repository, a
// project for npm with its modules installed, a repository with submodules, and a directory without git.
func TestRandomScriptsOverTrees(t *testing.T) {
	hermetic.Long(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	for name, c := range map[string]struct {
		grow  string
		from  func(t *testing.T) string // $FROM in grow; nil: nothing
		large uint64                    // of so many scripts one is run
	}{
		"Go's tree": {`git config gc.auto 0 # it would go on in the background
			cp -r "$FROM/src" go && git add go && git commit -qm go; git gc -q
			echo dirty >>go/fmt/print.go`, goRoot, 16},
		"npm": {`echo node_modules/ >>.gitignore; git commit -qam npm; mkdir node_modules
			cp -r "$FROM/@google" node_modules`, modules, 8},
		"submodules": {`git init -q ../lib; echo lib >../lib/lib.c; git -C ../lib add .; git -C ../lib commit -qm lib
			for name in one two; do git -c protocol.file.allow=always submodule --quiet add ../lib $name; done
			git commit -qm submodules; echo dirty >>one/lib.c`, nil, 1},
		"no git": {`rm -rf .git`, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, root, from := undo.Store{Dir: t.TempDir()}, workspaceOf(t), ""
			if c.from != nil {
				from = c.from(t)
			}
			sh(t, root, "FROM="+from+"\n"+c.grow)
			said, was := state(t, root), look(t, root)
			if len(was) < 30 || strings.HasPrefix(said, "fatal:") {
				t.Fatalf("%d files, %.200s", len(was), said)
			}
			for seed := range scripts(32) / c.large {
				takeBack(t, s, root, 1000+seed, was, said)
			}
		})
	}
}

func goRoot(t *testing.T) string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("there is no go: ", err)
	}
	return strings.TrimSpace(string(out))
}

// modules are what npm has installed for the tests with real agents.
func modules(t *testing.T) string {
	dir := filepath.Dir(os.Getenv("OMNIAGENT_TEST_AGENTS"))
	if _, err := os.Stat(filepath.Join(dir, "@google")); err != nil {
		t.Skip("OMNIAGENT_TEST_AGENTS names no modules: ", err)
	}
	return dir
}
