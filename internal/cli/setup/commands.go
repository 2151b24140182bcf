// Package setup has the commands that set the program up: agents, models, login, config, and the install commands that
// write to the configuration of other programs. It also has status and doctor.
package setup

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
		{Path: "acp install", Make: m.acpInstall},
		{Path: "agents allow", Make: m.agentsAllow},
		{Path: "agents deny", Make: m.agentsDeny},
		{Path: "agents list", Make: func() *contract.Command { return agentsList(p.Agents) }},
		{Path: "agents show", Make: func() *contract.Command { return agentsShow(p.Agents) }},
		{Path: "config get", Make: configGet},
		{Path: "config list", Make: configList},
		{Path: "config path", Make: configPath},
		{Path: "config set", Make: m.configSet},
		{Path: "config unset", Make: configUnset},
		{Path: "doctor", Make: m.doctor},
		{Path: "login", Make: m.login},
		{Path: "logout", Make: m.logout},
		{Path: "mcp install", Make: m.mcpInstall},
		{Path: "models list", Make: m.modelsList},
		{Path: "models use", Make: m.modelsUse},
		{Path: "status", Make: m.status},
	}
}
