package command

import "omniagent/internal/config"

// nativeKeys are the settings of the native agent.
func nativeKeys() []config.Key {
	return []config.Key{
		{Name: "native.env", Type: config.List, Personal: true, Help: "variables that commands and MCP servers get as well; only in your own file"},
		{Name: "native.first_byte", Type: config.Duration, Env: "OMNIAGENT_NATIVE_FIRST_BYTE", Default: "5m", Help: "how long a model API may take to begin its answer"},
		{Name: "native.idle", Type: config.Duration, Env: "OMNIAGENT_NATIVE_IDLE", Default: "2m", Help: "how long it may say nothing in the middle of one"},
	}
}
