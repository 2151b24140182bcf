package contract_test

import (
	"omniagent/internal/cli/command"
	"omniagent/internal/cli/contract"
)

// What is promised of all commands is tested with the real ones. They import this package, so they are handed in from
// outside it.
var _ = contract.HandIn(command.Program)
