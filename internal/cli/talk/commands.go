// Package talk has the commands that hold conversations: in a terminal, for a program over its standard input, for an
// editor, and for other agents.
package talk

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
		{Path: "acp", Make: m.acpCommand},
		{Path: "chat", Make: m.chat},
		{Path: "mcp", Make: m.mcpServer},
		{Path: "start", Make: m.start},
	}
}
