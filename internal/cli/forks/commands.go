// Package forks has the commands about private copies of a workspace, and what other commands need to work in one: how
// one is made, which network it has, and how its changes come home.
package forks

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
)

// commands makes the commands of this package from the parts of the program.
type commands struct{ parts.Parts }

// Commands lists the commands by their paths. One is made when it is looked at.
func Commands(p parts.Parts) []contract.Registered {
	m := commands{p}
	return []contract.Registered{
		{Path: "fork apply", Make: m.forkApply},
		{Path: "fork delete", Make: forkDelete},
		{Path: "fork diff", Make: forkDiff},
		{Path: "fork list", Make: forkList},
		{Path: "fork open", Make: forkOpen},
		{Path: "fork run", Make: forkRun},
	}
}
