package gemini

import (
	_ "embed" // the matrix

	"omniagent/internal/agent"
)

// measured is the version that every cell was run with.
const measured = "0.61.0"

const (
	approvalFlag = "--approval-mode"
	sandboxFlag  = "--sandbox"
	outputFlag   = "--output-format"
	resumeFlag   = "--resume"
	sessionFlag  = "--session-id"
	policyFlag   = "--policy"
	adminFlag    = "--admin-policy"

	webPolicy = "web-off.toml" // a file in Spec.Temp; in the table it stands without its directory
)

//go:embed matrix.txt
var matrix string

// table is what the CLI can do. There is one for all versions so far.
func table(string) agent.Matrix { return agent.ReadMatrix(measured, matrix) }
