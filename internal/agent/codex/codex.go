// Package codex is all that we know of Codex CLI.
//
// It promises data only; what the installed agents have in common is done by package cli.
package codex

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// New returns the driver.
func New() agent.Driver {
	return cli.Program{
		ID: "codex",
		About: agent.About{
			Title:          "Codex CLI",
			Binary:         "codex",
			Package:        "@openai/codex",
			InstallCommand: "npm install -g @openai/codex@0.169.0",
		},
	}
}
