package command

import (
	"time"

	"omniagent/internal/cli/contract"
)

// conversationFiles declares what every conversation leaves on disk, and more.
func conversationFiles(more ...contract.FileEffect) []contract.FileEffect {
	return append(undoFiles(
		contract.FileEffect{Path: "~/.yume/sessions", Type: "state", ClearableWith: "omniagent session delete"},
		wallsRecord(), heldWalls(), startedFile(),
	), more...)
}

// undoFiles declares what a command that keeps snapshots writes, and more.
func undoFiles(more ...contract.FileEffect) []contract.FileEffect {
	return append([]contract.FileEffect{
		{Path: "~/.local/state/omniagent/undo", Type: "state", ClearableWith: "omniagent snapshots delete"},
		{Path: "~/.local/share/omniagent/snapshots", Type: "state"},
	}, more...)
}

// heldWalls declares the record of which walls around agents have held here.
func heldWalls() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/agent-walls", Type: "state"}
}

// wallsRecord declares the record of what was created in workspaces for running sandboxes. The last one to end removes
// it; the next one cleans up after a kill.
func wallsRecord() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/walls", Type: "state"}
}

func runFiles() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/runs", Type: "state", ClearableWith: "omniagent runs delete",
	}
}

func listFile() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/agents.json", Type: "state"}
}

// startedDir is where the records of what runs are, below our state.
const startedDir = "sessions"

// startedFile is the directory with the records of what runs.
func startedFile() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/sessions", Type: "state", ClearableWith: "omniagent cleanup --scope temp",
	}
}

type sessionWriter struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}
