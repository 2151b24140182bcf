package acp

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"omniagent/internal/sys/foreignconfig"
)

// Editor is an editor that starts agents.
type Editor struct {
	Name string // the word that selects it
	// Place returns where the editor's configuration holds an agent of that name, and the entry for an agent started by
	// argv
	Place func(env func(string) string, name string, argv []string) foreignconfig.Place
}

// Editors returns the editors that we can configure.
func Editors() []Editor {
	return []Editor{{"zed", zed}, {"jetbrains", jetbrains}, {"neovim", neovim}}
}

func home(env func(string) string) string { return cmp.Or(env("HOME"), env("USERPROFILE")) }

// zed returns the entry in the user's settings, which have comments.
func zed(env func(string) string, name string, argv []string) foreignconfig.Place {
	dir := filepath.Join(cmp.Or(env("XDG_CONFIG_HOME"), filepath.Join(home(env), ".config")), "zed")
	if windows := env("APPDATA"); windows != "" {
		dir = filepath.Join(windows, "Zed")
	}
	return foreignconfig.Place{
		Files: []string{filepath.Join(dir, "settings.json")}, Path: []string{"agent_servers", name},
		Entry: foreignconfig.EntryOf(
			"type", "custom", "command", argv[0], "args", argv[1:], "env", foreignconfig.Entry{}),
	}
}

// jetbrains returns the entry in the file that all IDEs share.
func jetbrains(env func(string) string, name string, argv []string) foreignconfig.Place {
	return foreignconfig.Place{
		Files: []string{filepath.Join(home(env), ".jetbrains", "acp.json")}, Path: []string{"agent_servers", name},
		Entry: foreignconfig.EntryOf("command", argv[0], "args", argv[1:], "env", foreignconfig.Entry{}),
	}
}

// neovim returns a separate file, because Neovim itself has no agents. lazy.nvim reads the file, and adds its content
// to the options of CodeCompanion and avante.nvim, if they are installed.
func neovim(env func(string) string, name string, argv []string) foreignconfig.Place {
	base := cmp.Or(env("LOCALAPPDATA"), env("XDG_CONFIG_HOME"), filepath.Join(home(env), ".config"))
	dir := filepath.Join(base, cmp.Or(env("NVIM_APPNAME"), "nvim"), "lua", "plugins")
	var words []string
	for _, arg := range argv {
		words = append(words, lua(arg))
	}
	return foreignconfig.Place{
		Files: []string{filepath.Join(dir, name+".lua")}, Form: foreignconfig.Whole, RequiredDir: dir,
		Reason: "lazy.nvim reads what plugins are added from there",
		Text: fmt.Sprintf(neovimPlugins, lua(name), strings.Join(words, ", "), words[0],
			strings.Join(words[1:], ", ")),
	}
}

// lua quotes a string for Lua.
func lua(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(s) + `"`
}

const neovimPlugins = `-- Made by omniagent acp install neovim, which also takes it away: --remove.
local name = %[1]s

return {
  {
    "olimorris/codecompanion.nvim",
    optional = true,
    opts = {
      adapters = {
        acp = {
          [name] = function()
            return require("codecompanion.adapters").extend("opencode", {
              name = name,
              formatted_name = name,
              commands = { default = { %[2]s } },
            })
          end,
        },
      },
    },
  },
  {
    "yetone/avante.nvim",
    optional = true,
    opts = { acp_providers = { [name] = { command = %[3]s, args = { %[4]s } } } },
  },
}
`
