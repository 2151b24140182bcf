package opencode

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/sys/hookup"
)

// serverEntry returns the entry of a server in the user's configuration, which may be a file with comments.
func serverEntry(env []string, name string, argv []string) hookup.Place {
	dir := filepath.Join(cmp.Or(cli.First(env, "XDG_CONFIG_HOME"), filepath.Join(cli.Home(env), ".config")), "opencode")
	return hookup.Place{
		Files: []string{
			filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"), filepath.Join(dir,
				"config.json"),
		},
		Path:  []string{"mcp", name},
		Entry: hookup.EntryOf("type", "local", "command", argv, "enabled", true, "timeout", 900_000),
	}
}
