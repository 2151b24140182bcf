package gemini

import (
	"omniagent/internal/sys/hookup"
)

// serverEntry returns the entry of a server in the user's settings. The time limit of a call is in milliseconds.
func serverEntry(env []string, name string, argv []string) hookup.Place {
	return hookup.Place{
		Files: []string{configPath(env, "settings.json")}, Path: []string{"mcpServers", name},
		Entry: hookup.EntryOf("command", argv[0], "args", argv[1:], "timeout", 900_000),
	}
}
