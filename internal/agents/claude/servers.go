package claude

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/sys/foreignconfig"
)

// serverEntry returns an entry for the user's own servers, which apply to every project.
func serverEntry(env []string, name string, argv []string) foreignconfig.Place {
	return foreignconfig.Place{
		Files: []string{filepath.Join(cmp.Or(cli.First(env, "CLAUDE_CONFIG_DIR"), cli.Home(env)), ".claude.json")},
		Path:  []string{"mcpServers", name},
		Entry: foreignconfig.EntryOf("type", "stdio", "command", argv[0], "args", argv[1:]),
	}
}
