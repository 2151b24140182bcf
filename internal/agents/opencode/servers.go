package opencode

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/sys/foreignconfig"
)

// serverEntry returns the entry of a server in the user's configuration, which may be a file with comments.
func serverEntry(env []string, name string, argv []string) foreignconfig.Place {
	dir := filepath.Join(cmp.Or(cli.First(env, "XDG_CONFIG_HOME"), filepath.Join(cli.Home(env), ".config")), "opencode")
	return foreignconfig.Place{
		Files: []string{
			filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"), filepath.Join(dir,
				"config.json"),
		},
		Path:  []string{"mcp", name},
		Entry: foreignconfig.EntryOf("type", "local", "command", argv, "enabled", true, "timeout", 900_000),
	}
}
