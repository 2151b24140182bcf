//go:build unix

package walk

import (
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// program is the built program; repository is the folder it was built from.
var program, repository string

// TestMain builds the program once, without the race detector or coverage: as it is handed out.
func TestMain(m *testing.M) {
	hermetic.Signals()
	hermetic.AtOnce("6")
	repository, _ = filepath.Abs(filepath.Join("..", ".."))
	os.Exit(measure.WithProgram(repository, func(file string) int {
		program = file
		return hermetic.Sample(m, "TestBareCall", "TestHelpCommand", "TestFreshHome")
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}
