// Package sessions has the commands about stored conversations: the commands of session, and usage.
package sessions

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
)

// commands makes the commands of this package from the parts of the program.
type commands struct{ parts.Parts }

// Commands returns the commands of this package.
func Commands(p parts.Parts) []contract.Registered {
	m := commands{p}
	return []contract.Registered{
		{Path: "session delete", Make: sessionDelete},
		{Path: "session events", Make: sessionEvents},
		{Path: "session export", Make: sessionExport},
		{Path: "session fork", Make: sessionFork},
		{Path: "session list", Make: m.sessionList},
		{Path: "session search", Make: m.sessionSearch},
		{Path: "session show", Make: sessionShow},
		{Path: "usage", Make: m.usage},
	}
}
