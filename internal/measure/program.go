package measure

import (
	"fmt"
	"os"
)

// WithProgram builds omniagent from the module at root, gives the file to run, which is the tests of a package, and
// takes it away. It returns the exit status.
func WithProgram(root string, run func(file string) int) int {
	dir, err := os.MkdirTemp("", "built-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	built, err := Build(root, "./cmd/omniagent", dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run(built.File)
}
