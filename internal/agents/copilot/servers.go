package copilot

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/sys/foreignconfig"
)

// serverEntry returns the entry of a server, with all its tools enabled.
func serverEntry(env []string, name string, argv []string) foreignconfig.Place {
	return foreignconfig.Place{
		Files: []string{filepath.Join(cmp.Or(cli.First(env, "COPILOT_HOME"), filepath.Join(cli.Home(env), ".copilot")),
			"mcp-config.json")},
		Path:  []string{"mcpServers", name},
		Entry: foreignconfig.EntryOf("type", "local", "command", argv[0], "args", argv[1:], "tools", []string{"*"}),
	}
}
