package process

import (
	"slices"

	"omniagent/internal/vigil"
)

// The guard is this program again, started under another name with one argument. No flag of ours and none of a test
// binary is called so: where main does not ask IsGuard, the second process ends with a usage error.
const (
	guardName     = vigil.Name
	guardArgument = "--omniagent-guard"
)

// IsGuard says whether this process was started to be the guard of a child. Before main does anything else:
//
//	if process.IsGuard(os.Args) {
//		os.Exit(process.Guard())
//	}
func IsGuard(args []string) bool { return slices.Equal(args, []string{guardName, guardArgument}) }
