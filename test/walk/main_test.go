//go:build unix

package walk

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/measure"
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
		built, err := measure.Build(repository, "./cmd/omniagent", dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		program = built.File
		return m.Run()
	}())
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}
