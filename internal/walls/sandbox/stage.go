package sandbox

import "slices"

// The stage is this program again, started under another name. It stands between the caller and a command: it builds
// the sandbox around itself and then starts the command.
const (
	stageName     = "omniagent-stage"
	stageArgument = "--omniagent-stage"
)

// IsStage reports whether this process was started as a stage. Before main does anything else:
//
//	if sandbox.IsStage(os.Args) {
//		os.Exit(sandbox.Stage())
//	}
func IsStage(args []string) bool {
	return len(args) >= 2 && slices.Equal(args[:2], []string{stageName, stageArgument})
}
