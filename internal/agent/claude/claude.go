// Package claude is all that we know of Claude Code.
//
// It promises data only; what the installed agents have in common is done by package cli.
package claude

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// New returns the driver.
func New() agent.Driver {
	return cli.Program{
		ID: "claude",
		About: agent.About{
			Title:   "Claude Code",
			Binary:  "claude",
			Package: "@anthropic-ai/claude-code",
			// Pinned: without a version, npm on node 20 silently takes the older 2.1.197.
			InstallCommand: "npm install -g @anthropic-ai/claude-code@2.1.329",
		},
	}
}
