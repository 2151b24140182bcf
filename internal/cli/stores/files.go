package stores

import (
	"time"

	"omniagent/internal/cli/contract"
)

// ConversationFiles declares what every conversation leaves on disk, and more.
func ConversationFiles(more ...contract.FileEffect) []contract.FileEffect {
	return append(UndoFiles(
		contract.FileEffect{Path: "~/.yume/sessions", Type: "state", ClearableWith: "omniagent session delete"},
		WallsFile(), HeldWallsFile(), StartedFile(),
	), more...)
}

// UndoFiles declares what a command that keeps snapshots writes, and more.
func UndoFiles(more ...contract.FileEffect) []contract.FileEffect {
	return append([]contract.FileEffect{
		{Path: "~/.local/state/omniagent/undo", Type: "state", ClearableWith: "omniagent snapshots delete"},
		{Path: "~/.local/share/omniagent/snapshots", Type: "state"},
	}, more...)
}

// HeldWallsFile declares the record of which walls around agents have held here.
func HeldWallsFile() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/agent-walls", Type: "state"}
}

// WallsFile declares the record of what was created in workspaces for running sandboxes. The last one to end removes
// it; the next one cleans up after a kill.
func WallsFile() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/walls", Type: "state"}
}

// RunFiles declares the records of runs.
func RunFiles() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/runs", Type: "state", ClearableWith: "omniagent runs delete",
	}
}

// AllowlistFile declares the list of allowed and denied agents.
func AllowlistFile() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/agents.json", Type: "state"}
}

// StartedDir is where the records of what runs are, below our state.
const StartedDir = "sessions"

// StartedFile is the directory with the records of what runs.
func StartedFile() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/sessions", Type: "state", ClearableWith: "omniagent cleanup --scope temp",
	}
}

// Writer is the process that has a journal or a run open.
type Writer struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}
