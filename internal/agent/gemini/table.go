package gemini

import (
	_ "embed" // the matrix

	"omniagent/internal/agent"
)

// measured is the version with which every cell was tested.
const measured = "0.61.0"

const (
	approvalFlag = "--approval-mode"
	sandboxFlag  = "--sandbox"
	outputFlag   = "--output-format"
	resumeFlag   = "--resume"
	sessionFlag  = "--session-id"
	policyFlag   = "--policy"
	adminFlag    = "--admin-policy"

	webPolicy = "web-off.toml" // a file in Spec.Temp; the table has it without its directory
)

//go:embed matrix.txt
var matrix string

// table returns what the CLI can do. So far, one table serves all versions.
func table(string) agent.Matrix { return agent.ReadMatrix(measured, matrix) }
