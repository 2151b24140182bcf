package codex

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/sys/foreignconfig"
)

// serverEntry returns the table of a server. It has a timeout, because by default Codex gives up on a call after a
// minute.
func serverEntry(env []string, name string, argv []string) foreignconfig.Place {
	return foreignconfig.Place{
		Files: []string{filepath.Join(cmp.Or(cli.First(env, "CODEX_HOME"), filepath.Join(cli.Home(env), ".codex")),
			"config.toml")},
		Form: foreignconfig.TOML, Path: []string{"mcp_servers", name},
		Entry: foreignconfig.EntryOf("command", argv[0], "args", argv[1:], "tool_timeout_sec", int64(900)),
	}
}
