package command

import (
	"omniagent/internal/config"
	"omniagent/internal/setting"
)

// agentKeys returns the settings of the gate for agents that programs start through us.
func agentKeys() []config.Key {
	return []config.Key{
		{
			Name: "agents.allow", Type: config.List, Personal: true,
			Help: "agents that programs may start through this one; unset: every built-in one. Only in your own file",
		},
		{
			Name: "agents.env", Type: config.List, Personal: true,
			Help: "variables that agents started so get as well; only in your own file",
		},
	}
}

// nativeKeys returns the settings of the native agent. Only the user may set what allows something; a trusted project
// may also set what forbids something.
func nativeKeys() []config.Key {
	return []config.Key{
		{
			Name: "native.allow", Type: config.List, Personal: true,
			Help: "calls that need not be asked about, such as Bash(go test:*); see docs/rules.md. Only in your " +
				"own file",
		},
		{Name: "native.ask", Type: config.List, Help: "calls that are always asked about"},
		{Name: "native.deny", Type: config.List, Help: "calls that never run"},
		{
			Name: "native.env", Type: config.List, Personal: true,
			Help: "variables that commands and MCP servers get as well; only in your own file",
		},
		{
			Name: "native.first_byte", Type: config.Duration, Env: "OMNIAGENT_NATIVE_FIRST_BYTE", Default: "5m",
			Help: "how long a model API may take to begin its answer",
		},
		{
			Name: "native.idle", Type: config.Duration, Env: "OMNIAGENT_NATIVE_IDLE", Default: "2m",
			Help: "how long it may say nothing in the middle of one",
		},
		{
			Name: "native.memory", Type: config.Bytes, Personal: true, Env: "OMNIAGENT_NATIVE_MEMORY", Default: "0",
			Help: "memory that each process of a command may have behind walls; 0 for any; only in your own file",
		},
		{
			Name: "native.network", Type: config.String, Personal: true, Env: "OMNIAGENT_NATIVE_NETWORK",
			Flag:    "network",
			Default: "off", Help: "what commands reach: off, on, or hosts separated by commas; only in your own file",
		},
		{
			Name: "native.sandbox", Type: config.Enum, Enum: []string{
				string(setting.WorkspaceWrite),
				string(setting.Off),
			}, Personal: true, Env: "OMNIAGENT_NATIVE_SANDBOX", Flag: "sandbox",
			Default: string(setting.WorkspaceWrite), Help: "whether walls stand around commands; only in your own file",
		},
	}
}

// sessionKeys returns the settings for kept conversations. Only the user may set them: a project does not decide what a
// person can look up later.
func sessionKeys() []config.Key {
	return []config.Key{
		{
			Name: keepKey, Type: config.Bool, Personal: true, Env: "OMNIAGENT_SESSION_KEEP", Default: "true",
			Help: "whether conversations stay on disk when they are over; only in your own file",
		},
	}
}

const keepKey = "session.keep"
