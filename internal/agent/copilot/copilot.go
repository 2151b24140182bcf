// Package copilot is all that we know of GitHub Copilot CLI.
//
// It promises data only; what the installed agents have in common is done by package cli.
package copilot

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// New returns the driver.
func New() agent.Driver {
	return cli.Program{
		ID: "copilot",
		About: agent.About{
			Title:          "GitHub Copilot CLI",
			Binary:         "copilot",
			Package:        "@github/copilot",
			InstallCommand: "npm install -g @github/copilot@1.0.102",
		},
	}
}
