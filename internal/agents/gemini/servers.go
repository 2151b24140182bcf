package gemini

import (
	"omniagent/internal/sys/foreignconfig"
)

// serverEntry returns the entry of a server in the user's settings. The time limit of a call is in milliseconds.
func serverEntry(env []string, name string, argv []string) foreignconfig.Place {
	return foreignconfig.Place{
		Files: []string{configPath(env, "settings.json")}, Path: []string{"mcpServers", name},
		Entry: foreignconfig.EntryOf("command", argv[0], "args", argv[1:], "timeout", 900_000),
	}
}
