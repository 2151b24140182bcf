package codex

import (
	_ "embed" // the matrix

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/literal"
)

const measured = "0.169.0" // the version with which every cell was tested

const fullAccess = "danger-full-access" // Codex's name for no sandbox

// unasked describes what Codex does even with --approval prompt.
const unasked = "inside the workspace it writes without asking"

// planned describes --approval plan.
const planned = "commands run in a sandbox in which nothing can be written, and nothing is asked"

// config returns the arguments for one setting. The last -c for a setting wins, and a flag for it overrides them all.
func config(key, value string) []string {
	return []string{"-c", key + "=" + literal.QuoteTOML(value)}
}

//go:embed matrix.txt
var matrix string

// table returns the same matrix for all versions, because only one was measured.
func table(string) agent.Matrix { return agent.ReadMatrix(measured, matrix) }
