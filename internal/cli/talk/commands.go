// Package talk has the commands that hold conversations: chat with a person in a terminal, start for a program, acp for
// an editor, and mcp for other agents.
package talk

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
)

// commands builds the commands of this package from the parts of the program.
type commands struct{ parts.Parts }

// Commands lists the commands of this package. Each is built only when it is needed.
func Commands(p parts.Parts) []contract.Registered {
	m := commands{p}
	return []contract.Registered{
		{Path: "acp", Make: m.acpCommand},
		{Path: "chat", Make: m.chat},
		{Path: "mcp", Make: m.mcpServer},
		{Path: "start", Make: m.start},
	}
}
