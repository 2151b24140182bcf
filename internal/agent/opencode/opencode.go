// Package opencode is all that we know of OpenCode.
//
// It promises data only; what the installed agents have in common is done by package cli.
package opencode

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// New returns the driver.
func New() agent.Driver {
	return cli.Program{
		ID: "opencode",
		About: agent.About{
			Title:          "OpenCode",
			Binary:         "opencode",
			Package:        "opencode-ai",
			InstallCommand: "npm install -g opencode-ai@1.18.33",
		},
		Native: "opencode", // opencode-linux-x64 and its like
	}
}
