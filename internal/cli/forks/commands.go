// Package forks has the "fork" commands. A fork is a private copy of a workspace. Other commands use this package to
// make a fork, to run a call again inside it, and to merge its changes into the workspace.
package forks

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
)

// Commands lists the commands of this package. Each is built only when it is needed.
func Commands(p parts.Parts) []contract.Registered {
	return []contract.Registered{
		{Path: "fork apply", Make: func() *contract.Command { return forkApply(p) }},
		{Path: "fork delete", Make: forkDelete},
		{Path: "fork diff", Make: forkDiff},
		{Path: "fork list", Make: forkList},
		{Path: "fork open", Make: forkOpen},
		{Path: "fork run", Make: forkRun},
	}
}
