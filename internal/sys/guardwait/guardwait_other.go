//go:build !linux

// Package guardwait is where a guard waits on Linux. Elsewhere it waits in main.
package guardwait

// Name is the name of a guard, Variable is in its environment, Socket is the descriptor of the connection to the
// watched process.
const (
	Name     = "omniagent-guard"
	Variable = "OMNIAGENT_GUARD"
	Socket   = 3
)

// Message reports that this process is not a guard that has waited.
func Message() (text string, isGuard bool) { return "", false }
