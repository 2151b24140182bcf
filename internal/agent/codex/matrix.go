package codex

import (
	_ "embed" // the matrix

	"omniagent/internal/agent"
)

const measured = "0.169.0" // the version that every cell was run with

const fullAccess = "danger-full-access" // no sandbox, in Codex's words

// unasked is what --approval prompt does not keep it from.
const unasked = "inside the workspace it writes without asking"

// planned is what --approval plan is.
const planned = "commands run in a sandbox in which nothing can be written, and nothing is asked"

// config is one setting as -c takes it. Repeated, the last counts; a flag for the same thing counts more, wherever it
// stands.
func config(key, value string) []string {
	return []string{"-c", key + "=" + quote(value)}
}

//go:embed matrix.txt
var matrix string

// table is what the version can do. One was measured, so it stands for all.
func table(string) agent.Matrix { return agent.ReadMatrix(measured, matrix) }
