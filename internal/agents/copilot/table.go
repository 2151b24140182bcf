package copilot

import (
	_ "embed" // the matrix

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// measured is the version with which every cell was tested.
const measured = "1.0.102"

const (
	allowAll    = "--allow-all-tools"
	yoloFlag    = "--yolo"
	sandboxFlag = "--sandbox"
	noSandbox   = "--no-sandbox"
	modelFlag   = "--model"
	resumeFlag  = "--resume"

	continueFlag = "--continue"
	sessionFlag  = "--session-id"
	excludeFlag  = "--excluded-tools"
	allURLs      = "--allow-all-urls"
	stayHere     = "COPILOT_DISABLE_RESUME_AUTO_CD=true"
)

// Notes for --web off, if it is sent and if nobody asked for it.
const (
	withheld = "the tool is withheld; commands still reach the network where the approval lets them run"
	notAsked = "nobody asked: nothing is sent; a fetch needs an approval"
)

//go:embed matrix.txt
var matrix string

// table returns the matrix, which is the same for all known versions. The sandbox depends on the system.
func table(system string) agent.Matrix {
	m := agent.ReadMatrix(measured, matrix)
	m.Set(agent.Sandbox, string(setting.WorkspaceWrite), sandboxed(system))
	return m
}

func sandboxed(system string) agent.Cell {
	c := agent.Cell{
		Level: agent.Full, Args: []string{sandboxFlag},
		Note: "commands write in the workspace and temporary directories only; the network stays open; file tools " +
			"are held by the CLI itself",
	}
	switch system {
	case "linux":
		c.Needs = helpers()
	case "darwin": // Seatbelt is part of the system
	default:
		c = agent.Cell{
			Level: agent.Nearest, Args: []string{sandboxFlag}, Weak: []string{}, Note: "not measured on this system",
		}
	}
	return c
}

// helpers returns the programs that every sandboxed command needs. The CLI also needs unshare, which comes with
// nsenter.
func helpers() []string { return []string{"bwrap", "slirp4netns", "iptables", "ip6tables", "nsenter"} }
