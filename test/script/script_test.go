package script

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"omniagent/internal/command"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"omniagent": func() { os.Exit(command.Main()) },
	})
}

// TestScript runs every page. A page begins in an empty repository, with an empty home and USER=reader. $BIN holds the program and
// nothing else, for pages that hide other programs.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                filepath.Join("testdata", "script"),
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			home, project := filepath.Join(env.WorkDir, "home"), filepath.Join(env.WorkDir, "project")
			for _, dir := range []string{home, filepath.Join(project, ".git")} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return err
				}
			}
			env.Cd = project
			env.Setenv("HOME", home)
			env.Setenv("USERPROFILE", home)
			env.Setenv("USER", "reader")
			env.Setenv("BIN", filepath.SplitList(env.Getenv("PATH"))[0])
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else the race detector makes each call a second longer
			return nil
		},
	})
}
