package contract_test

import (
	"omniagent/internal/cli/command"
	"omniagent/internal/cli/contract"
)

// The promises about all commands are tested with the real ones. Those import this package, so a test outside the
// package has to hand them in.
var _ = contract.HandIn(command.Program)
