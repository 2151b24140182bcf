package gemini

import (
	_ "embed" // the matrix

	"omniagent/internal/core/agent"
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

	webPolicy = "web-off.toml" // a file in Spec.Temp; the matrix has only its name
)

//go:embed matrix.txt
var matrix string

// table returns the same matrix for all versions, because only one was measured.
func table(string) agent.Matrix { return agent.ReadMatrix(measured, matrix) }
