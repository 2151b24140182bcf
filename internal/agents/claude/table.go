package claude

import (
	_ "embed" // the matrix

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

const measured = "2.1.329"

const (
	bypass   = "--dangerously-skip-permissions"
	modeFlag = "--permission-mode"
	settings = "--settings"
)

//go:embed matrix.txt
var matrix string

// table returns the matrix, which is the same for all known versions. The sandbox depends on the system.
func table(system string) agent.Matrix {
	m := agent.ReadMatrix(measured, matrix)
	m.Set(agent.Sandbox, string(setting.WorkspaceWrite), sandboxed(system))
	return m
}

// sandboxed returns the cell of workspace-write. Its arguments are those for prompt; Command fits them to the approval.
func sandboxed(system string) agent.Cell {
	c := agent.Cell{
		Level: agent.Full, Args: []string{settings + "=" + encode(sandbox(false))},
		Note: "commands write in the workspace and a temporary directory only, and reach the network only by the " +
			"CLI's proxy; file tools ask outside of it",
	}
	switch system {
	case "linux":
		c.Needs = []string{"bwrap", "socat"}
	case "darwin": // Seatbelt is part of the system
	default:
		c = agent.Cell{Level: agent.None, Note: "the CLI has none on this system"}
	}
	return c
}
