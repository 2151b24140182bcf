package codex

import (
	_ "embed" // the matrix

	"omniagent/internal/agent"
	"omniagent/internal/literal"
)

const measured = "0.169.0" // the version with which every cell was tested

const fullAccess = "danger-full-access" // no sandbox, in Codex's words

// unasked is what Codex does even with --approval prompt.
const unasked = "inside the workspace it writes without asking"

// planned is what --approval plan means.
const planned = "commands run in a sandbox in which nothing can be written, and nothing is asked"

// config returns one setting for -c. The last of several counts, and a flag for the same setting outweighs all of them.
func config(key, value string) []string {
	return []string{"-c", key + "=" + literal.QuoteTOML(value)}
}

//go:embed matrix.txt
var matrix string

// table returns what a version can do. Only one was measured, so it serves for all.
func table(string) agent.Matrix { return agent.ReadMatrix(measured, matrix) }
