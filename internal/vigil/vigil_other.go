//go:build !linux

// Package vigil is where a guard waits on Linux. Elsewhere it waits in main.
package vigil

// Name is the name of a guard, Variable is in its environment, Socket is the descriptor of the connection to the
// watched process.
const (
	Name     = "omniagent-guard"
	Variable = "OMNIAGENT_GUARD"
	Socket   = 3
)

// Heard reports that nothing was waited for.
func Heard() (text string, waited bool) { return "", false }
