package claude

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/sys/hookup"
)

// serverEntry returns an entry for the user's own servers, which apply to every project.
func serverEntry(env []string, name string, argv []string) hookup.Place {
	return hookup.Place{
		Files: []string{filepath.Join(cmp.Or(cli.First(env, "CLAUDE_CONFIG_DIR"), cli.Home(env)), ".claude.json")},
		Path:  []string{"mcpServers", name},
		Entry: hookup.EntryOf("type", "stdio", "command", argv[0], "args", argv[1:]),
	}
}
