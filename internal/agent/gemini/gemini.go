// Package gemini is all that we know of Gemini CLI.
//
// It promises data only; what the installed agents have in common is done by package cli.
package gemini

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// New returns the driver.
func New() agent.Driver {
	return cli.Program{
		ID: "gemini",
		About: agent.About{
			Title:          "Gemini CLI",
			Binary:         "gemini",
			Package:        "@google/gemini-cli",
			InstallCommand: "npm install -g @google/gemini-cli@0.61.0",
		},
	}
}
