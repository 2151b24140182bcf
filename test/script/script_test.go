package script

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"omniagent/internal/cli/command"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/sandbox"
)

func TestMain(m *testing.M) {
	if sandbox.IsStage(os.Args) { // the program starts itself to build walls, under another name
		os.Exit(command.Main())
	}
	testscript.Main(m, map[string]func(){
		"omniagent": func() { os.Exit(command.Main()) },
	})
}

// TestScript runs the pages. A page begins in an empty repository, with an empty home and USER=reader. $BIN holds the
// program and nothing else, for pages that hide other programs; $WORK/docs holds the files that the manual shows.
func TestScript(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no pages: %v", err)
	}
	if !hermetic.Thorough() {
		few := pages[:0]
		for i := 0; i < len(pages); i += 5 {
			few = append(few, pages[i])
		}
		pages = few
		t.Log("only each fifth page: OMNIAGENT_WHOLE=1 go test runs all, and so does scripts/test")
	}
	testscript.Run(t, testscript.Params{
		Files:              pages,
		RequireUniqueNames: true,
		Cmds:               map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Condition:          condition,
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
			return documented(filepath.Join(env.WorkDir, "docs"))
		},
	})
}

// condition is "walls": the strongest walls of Linux can be built here.
func condition(name string) (bool, error) {
	if name != "walls" {
		return false, fmt.Errorf("there is no condition %s", name)
	}
	if runtime.GOOS != "linux" {
		return false, nil
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "walls-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		return false, err
	}
	// The name decides what the test's own program is.
	link := filepath.Join(dir, "omniagent")
	if err := os.Symlink(self, link); err != nil {
		return false, err
	}
	cmd := exec.Command(link, "sandbox", "run", "--walls", "namespaces", "--", "true")
	cmd.Dir, cmd.Env = filepath.Join(dir, "work"), []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	return cmd.Run() == nil, nil
}

// exits is the command "exits CODE program arguments": the program has to end with that exit code.
func exits(ts *testscript.TestScript, not bool, args []string) {
	if not || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program arguments")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s ended with exit code %d, want %s", args[1], code, args[0])
	}
}

// documented writes the files that the manual shows to people, so that scripts run them as they stand there: each code
// block with its name in a comment before it.
func documented(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	block := regexp.MustCompile("(?ms)^<!-- file: ([a-z.-]+) -->\n```[a-z]+\n(.*?)^```$")
	for _, page := range []string{"shim.md", "custom-agents.md"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
		if err != nil {
			return err
		}
		for _, found := range block.FindAllSubmatch(text, -1) {
			if err := hermetic.WriteProgram(filepath.Join(dir, string(found[1])), found[2], 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}
