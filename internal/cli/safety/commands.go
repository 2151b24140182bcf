// Package safety has the commands about what agents may do and what they did: sandbox, trust, check-permissions,
// audit-log, undo, redo and snapshots.
package safety

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
)

// commands builds the commands of this package from the parts of the program.
type commands struct{ parts.Parts }

// Commands lists the commands of this package. Each is built only when it is needed.
func Commands(p parts.Parts) []contract.Registered {
	m := commands{p}
	return []contract.Registered{
		{Path: "audit-log", Make: auditLog},
		{Path: "audit-log verify", Make: auditLogVerify},
		{Path: "check-permissions", Make: checkPermissions},
		{Path: "redo", Make: redoLast},
		{Path: "sandbox explain", Make: m.sandboxExplain},
		{Path: "sandbox run", Make: m.sandboxRun},
		{Path: "snapshots delete", Make: snapshotsDelete},
		{Path: "snapshots list", Make: snapshotsList},
		{Path: "trust", Make: m.trust},
		{Path: "trust list", Make: trustList},
		{Path: "undo", Make: undoLast},
	}
}
