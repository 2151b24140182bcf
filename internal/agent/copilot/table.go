package copilot

import (
	_ "embed" // the matrix

	"omniagent/internal/agent"
	"omniagent/internal/setting"
)

// measured is the version that every cell was run with.
const measured = "1.0.102"

const (
	allowAll    = "--allow-all-tools"
	yoloFlag    = "--yolo"
	sandboxFlag = "--sandbox"
	noSandbox   = "--no-sandbox"
	modelFlag   = "--model"
	resumeFlag  = "--resume"
	sessionFlag = "--session-id"
	excludeFlag = "--excluded-tools"
	allURLs     = "--allow-all-urls"
	stayHere    = "COPILOT_DISABLE_RESUME_AUTO_CD=true"
)

// What --web off means where it is sent, and where it need not be.
const (
	withheld = "the tool is withheld; commands still reach the network where the approval lets them run"
	notAsked = "nobody asked: nothing is sent; a fetch needs an approval"
)

// nothing is what a cell sends where nobody chose and nothing need be said.
func nothing() []string { return []string{} }

//go:embed matrix.txt
var matrix string

// table is what every version that we know can do: there is one so far. The system decides what a sandbox needs.
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
	case "darwin": // Seatbelt is a part of the system
	default:
		c = agent.Cell{
			Level: agent.Nearest, Args: []string{sandboxFlag}, Weak: nothing(),
			Note: "not measured on this system",
		}
	}
	return c
}

// helpers are the programs without one of which every sandboxed command fails. The CLI needs unshare as well, which is
// where nsenter is.
func helpers() []string { return []string{"bwrap", "slirp4netns", "iptables", "ip6tables", "nsenter"} }
