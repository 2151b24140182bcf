//go:build unix

package walk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// program is the built program; repository is the folder it was built from.
var program, repository string

// TestMain builds the program once, without the race detector or coverage: as it is handed out.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "walk-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		repository, _ = filepath.Abs(filepath.Join("..", ".."))
		program = filepath.Join(dir, "omniagent")
		build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/omniagent")
		build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "the program does not build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}
