package setup

import (
	"context"
	"os"
	"path/filepath"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/host/acp"
	"omniagent/internal/host/mcp"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/native"
	"omniagent/internal/sys/foreignconfig"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

type installData struct {
	Program string   `json:"program"`
	File    string   `json:"file"`
	Entry   string   `json:"entry" doc:"as the file has it"`
	Starts  []string `json:"starts" doc:"what the program then starts"`
	Was     *string  `json:"was" doc:"what the entry started before; null: there was none"`
	Status  string   `json:"status" enum:"installed,removed,unchanged"`
}

// installCommand adds the declarations shared by mcp install and acp install. place returns the entry to write, and the
// command line that it starts, from the path of this program.
func installCommand(
	c contract.Command, programs []string,
	place func(*contract.Call, []string) (foreignconfig.Place, []string),
) *contract.Command {
	c.Class, c.Danger, c.Version, c.Scopes = contract.Envelope, contract.Mutating, "1.0.0", []string{}
	c.DryRun, c.Reversible, c.LooseConfig, c.Output = true, true, true, contract.TypeOf[installData]()
	c.Params = append([]contract.Param{
		{
			Name: "program", Kind: contract.Enum, Enum: programs, Position: 1, Required: true,
			Help: "who gets the entry",
		},
		{Name: "name", Kind: contract.ID, MaxLen: 64, Help: "of the entry"},
		{Name: "remove", Kind: contract.Bool, Help: "take it out again"},
		{Name: "replace", Kind: contract.Bool, Help: "also an entry of another program"},
	}, c.Params...)
	c.Exits = append([]contract.Exit{{
		Code: contract.Success, When: "it is done, or was so already",
	}}, append(c.Exits,
		contract.Exit{Code: contract.PreconditionFailed, When: "no home, or the file is a link"},
		contract.Exit{Code: contract.Conflict, When: "another's entry, or the file just changed"},
		contract.Exit{Code: contract.PermissionDenied, When: "no access"},
	)...)
	c.Run = func(ctx context.Context, call *contract.Call) (contract.Result, error) {
		if _, known := stores.Home(call); !known {
			return contract.Result{}, fault.New(fault.NoHome, "no home directory is known").Hint("set HOME")
		}
		self, err := selfForOthers(call)
		if err != nil {
			return contract.Result{}, err
		}
		at, argv := place(call, []string{self})
		return install(ctx, call, at, argv)
	}
	return &c
}

// install writes or removes one entry. A lock keeps other processes of this program from editing the file meanwhile.
func install(ctx context.Context, c *contract.Call, place foreignconfig.Place, argv []string) (contract.Result, error) {
	if !c.DryRun() {
		if err := workspace.MkdirAll(c.LockDir()); err != nil {
			return contract.Result{}, err
		}
		held, err := workspace.Lock(ctx, filepath.Join(c.LockDir(), "hookup.lock"), c.LockWait())
		if err != nil {
			return contract.Result{}, err
		}
		defer held.Unlock()
	}
	lines, err := place.Lines()
	if err != nil {
		return contract.Result{}, err
	}
	data := installData{Program: c.String("program"), Entry: lines, Starts: argv, Status: "installed"}
	effect, edit := contract.Updated, place.Install
	if c.Bool("remove") {
		data.Status, effect, edit = "removed", contract.Deleted, place.Remove
	}
	change, err := edit(c.Bool("replace"))
	data.File, data.Was = change.File, contract.OrNil(change.Previous)
	switch {
	case change.Unchanged:
		data.Status, effect = "unchanged", contract.Noop
	case change.Previous == "" && !c.Bool("remove"):
		effect = contract.Created
	}
	if err == nil && !c.DryRun() {
		err = change.Write()
	}
	return contract.Result{
		Data: data, Effect: effect, Target: map[string]any{"file": data.File, "program": data.Program},
	}, err
}

// selfForOthers returns the path with which other programs start this one. It prefers the path in PATH, because the
// path of the resolved file may change with an update.
func selfForOthers(c *contract.Call) (string, error) {
	own, err := parts.Executable()
	if err != nil {
		return "", err
	}
	if found := process.Find(c.Program.Name, c.Host.Lookup); found != "" && pathname.Same(found, own) {
		own = found
	}
	return own, nil
}

func (p commands) mcpInstall() *contract.Command {
	var programs []string
	var files []contract.FileEffect
	for _, d := range p.Agents {
		if at := d.Describe().Servers; at != nil {
			programs = append(programs, d.Name())
			files = append(files, contract.FileEffect{
				Path: at([]string{"HOME=~"}, "omniagent", []string{"omniagent"}).Files[0], Type: "config",
				ClearableWith: "omniagent mcp install " + d.Name() + " --remove",
			})
		}
	}
	return installCommand(contract.Command{
		Path: "mcp install", Summary: "write omniagent into an agent's MCP servers",
		Detail: "Writes one entry into the agent's own file for its user, and leaves every other byte as it is. The " +
			"agent sees it when it is started again.",
		Files: files,
		Params: []contract.Param{{
			Name: "allow-mode", Kind: contract.Enum, Enum: text.Words(mcp.Modes()), Default: string(mcp.Read),
			Help: "the most that an asked agent may do",
		}},
		Examples: []contract.Example{
			{Description: "Claude Code may ask the others", Command: "omniagent mcp install claude"},
			{Description: "What would be written", Command: "omniagent mcp install claude --dry-run"},
			{Description: "Remove the entry", Command: "omniagent mcp install claude --remove"},
		},
	}, programs, func(c *contract.Call, argv []string) (foreignconfig.Place, []string) {
		if argv = append(argv, "mcp"); c.Given("allow-mode") {
			argv = append(argv, "--allow-mode", c.String("allow-mode"))
		}
		place := foreignconfig.Place{}
		for _, d := range p.Agents {
			if d.Name() == c.String("program") {
				place = d.Describe().Servers(os.Environ(), entryName(c, ""), argv)
			}
		}
		return place, argv
	})
}

// entryName returns the value of --name. The default is the name of this program, with the agent unless that is native.
func entryName(c *contract.Call, agent string) string {
	switch {
	case c.Given("name"):
		return c.String("name")
	case agent != "" && agent != native.Name:
		return c.Program.Name + "-" + agent
	}
	return c.Program.Name
}

func (p commands) acpInstall() *contract.Command {
	var programs []string
	var files []contract.FileEffect
	for _, e := range acp.Editors() {
		programs = append(programs, e.Name)
		at := e.Place(func(name string) string { return map[string]string{"HOME": "~"}[name] }, "omniagent",
			[]string{"omniagent"})
		files = append(files, contract.FileEffect{
			Path: at.Files[0], Type: "config", ClearableWith: "omniagent acp install " + e.Name + " --remove",
		})
	}
	cmd := installCommand(contract.Command{
		Path: "acp install", Summary: "write omniagent into an editor's agents",
		Detail: "Writes one entry into the editor's own file, and leaves every other byte as it is. For Neovim it is " +
			"a file of its own,\n" +
			"which lazy.nvim reads for CodeCompanion and avante.nvim.",
		Files: files,
		Params: []contract.Param{{
			Name: "agent", Kind: contract.Name, Default: native.Name, Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]*$`,
			Help: "the agent",
		}},
		Examples: []contract.Example{
			{Description: "The native agent in Zed", Command: "omniagent acp install zed"},
			{Description: "Codex in the IDEs of JetBrains", Command: "omniagent acp install jetbrains --agent codex"},
			{Description: "Remove the entry", Command: "omniagent acp install jetbrains --agent codex --remove"},
		},
		Exits: []contract.Exit{{Code: contract.NotFound, When: "no such agent, or no directory of the editor"}},
	}, programs, func(c *contract.Call, argv []string) (foreignconfig.Place, []string) {
		if argv = append(argv, "acp"); c.Given("agent") {
			argv = append(argv, "--agent", c.String("agent"))
		}
		place := foreignconfig.Place{}
		for _, e := range acp.Editors() {
			if e.Name == c.String("program") {
				place = e.Place(os.Getenv, entryName(c, c.String("agent")), argv)
			}
		}
		return place, argv
	})
	write := cmd.Run
	cmd.Run = func(ctx context.Context, c *contract.Call) (contract.Result, error) {
		if !c.Bool("remove") {
			if _, err := p.AgentNamed(c, c.String("agent")); err != nil {
				return contract.Result{}, err
			}
		}
		return write(ctx, c)
	}
	return cmd
}
