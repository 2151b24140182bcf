package process

import (
	"slices"

	"omniagent/internal/sys/guardwait"
)

// The guard is this program again, started under another name with one argument. No flag has that name: if main does
// not call IsGuard, the second process ends with a usage error.
const (
	guardName     = guardwait.Name
	guardArgument = "--omniagent-guard"
)

// IsGuard reports whether this process was started to be the guard of a child. Before main does anything else:
//
//	if process.IsGuard(os.Args) {
//		os.Exit(process.Guard())
//	}
func IsGuard(args []string) bool { return slices.Equal(args, []string{guardName, guardArgument}) }
