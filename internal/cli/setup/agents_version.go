package setup

import (
	"context"
	"os"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/walls/shell"
)

// versionTimeout limits how long an agent may take to print its version. The slowest of the five takes two seconds.
const versionTimeout = 10 * time.Second

func versionsFile() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/versions.json", Type: "state"}
}

// versionCalls declares the calls of agents with --version.
func versionCalls(drivers []agent.Driver) []contract.Subprocess {
	var all []contract.Subprocess
	for _, d := range drivers {
		all = append(all, contract.Subprocess{Binary: d.Describe().Binary, FixedArgs: []string{"--version"}})
	}
	return all
}

// installedIn reports whether a program is a file of the workspace.
func installedIn(workspace shell.Inheritance, in agent.Install) bool {
	return workspace.FromWorkspace(in.Path, os.Environ()) || workspace.FromWorkspace(in.RealPath, os.Environ())
}

// askVersion asks the program for its version, in an empty directory because some agents run code of the current one.
// It returns "" if there is no answer. A program that comes with the workspace is not run.
func askVersion(ctx context.Context, c *contract.Call, in agent.Install) string {
	if installedIn(parts.WorkspaceOf(c), in) {
		c.Warn("PROGRAM_OF_THE_WORKSPACE", "%s comes with the workspace, so it was not asked for its version", in.Path)
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	result, err := c.Spawn(ctx, in.Path, "--version")
	if err != nil || result.ExitCode != 0 {
		return ""
	}
	version, err := stores.Versions(c.Paths).Keep(in.RealPath, string(result.Stdout))
	if err != nil {
		c.Debug("the version of %s is not kept: %v", in.Path, err)
	}
	return version
}
