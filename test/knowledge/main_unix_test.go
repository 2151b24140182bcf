//go:build unix

package knowledge

import (
	"os"
	"path/filepath"
	"testing"

	"omniagent/internal/cli/command"
	"omniagent/internal/sys/process"
	"omniagent/internal/walls/sandbox"
)

// TestMain lets the test binary be the program, with its guard and its stage, and the sixth agent.
func TestMain(m *testing.M) {
	switch {
	case process.IsGuard(os.Args) || sandbox.IsStage(os.Args) || filepath.Base(os.Args[0]) == "omniagent":
		os.Exit(enlarged().Main())
	case filepath.Base(os.Args[0]) == "sixth":
		os.Exit(sixthMain())
	}
	os.Exit(m.Run())
}

// enlarged are the parts of the program with one more of each.
func enlarged() command.Parts {
	p := command.Ours()
	p.Agents = append(p.Agents, newSixth())
	p.APIs = append(p.APIs, fifthAPI())
	p.Tools = append(p.Tools, stampEntry())
	return p
}
