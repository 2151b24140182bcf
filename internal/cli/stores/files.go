package stores

import (
	"time"

	"omniagent/internal/cli/contract"
)

// ConversationFiles declares what every conversation leaves on disk, and more.
func ConversationFiles(more ...contract.FileEffect) []contract.FileEffect {
	return append(UndoFiles(
		contract.FileEffect{Path: "~/.yume/sessions", Type: "state", ClearableWith: "omniagent session delete"},
		WallsFile(), TriedWallsFile(), ProcessesFile(),
	), more...)
}

// UndoFiles declares what a command that keeps snapshots writes, and more.
func UndoFiles(more ...contract.FileEffect) []contract.FileEffect {
	return append([]contract.FileEffect{
		{Path: "~/.local/state/omniagent/undo", Type: "state", ClearableWith: "omniagent snapshots delete"},
		{Path: "~/.local/share/omniagent/snapshots", Type: "state"},
	}, more...)
}

// TriedWallsFile declares the record of which kinds of walls were tried on this machine and held.
func TriedWallsFile() contract.FileEffect {
	return contract.FileEffect{Path: "~/.local/state/omniagent/agent-walls", Type: "state"}
}

// WallsFile declares the record of what was created in workspaces for running sandboxes. The last sandbox to end
// removes it. If one is killed, the next one cleans up.
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

// ProcessesDir is the directory with the records of running programs, below the state directory.
const ProcessesDir = "sessions"

// ProcessesFile declares the directory with the records of running programs.
func ProcessesFile() contract.FileEffect {
	return contract.FileEffect{
		Path: "~/.local/state/omniagent/sessions", Type: "state", ClearableWith: "omniagent cleanup --scope temp",
	}
}

// Writer is a process that has a journal or a run open, as commands print it.
type Writer struct {
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}
