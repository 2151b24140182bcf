package command

import (
	_ "embed" // the keys

	"omniagent/internal/config"
)

//go:embed keys.txt
var keyTable string

// ownKeys returns the settings of the gate, of the native agent and of what is kept.
func ownKeys() []config.Key { return config.ReadKeys(keyTable) }

const keepKey = "session.keep"
