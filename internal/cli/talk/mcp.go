package talk

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/safety"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/mcp"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
)

func (p commands) mcpServer() *contract.Command {
	modes := text.Words(mcp.Modes())
	return &contract.Command{
		Path: "mcp", Summary: "let an agent ask other agents, as an MCP server", Here: true,
		Class: contract.Stream, Danger: contract.Mutating,
		Detail: "For an agent's configuration of MCP servers: docs/mcp.md has the lines. Its tools are list_agents " +
			"and ask_agent. An agent that is asked gets no\n" +
			"more than --allow-mode and --dir say; nobody can be asked meanwhile, so what would need an answer is " +
			"denied or comes back as a question.",
		Scopes: []string{},
		Params: append([]contract.Param{
			{
				Name: "allow-mode", Kind: contract.Enum, Enum: modes, Default: string(mcp.Read),
				Help: "what an agent may do at most that is asked",
			},
			{Name: "cwd", Short: "d", Kind: contract.File, Help: "working directory"},
			{
				Name: "dir", Kind: contract.File, Repeat: true,
				Help: "where agents may work; default: where it works itself",
			},
			{
				Name: "provider", Short: "P", Kind: contract.Name, Help: "model API: " + p.APIWords(),
			},
			{Name: "api-base", Kind: contract.Name, Value: "URL", Help: "address of that API"},
			flags.Sandbox(),
			{
				Name: "ask-timeout", Kind: contract.Duration, Default: "10m",
				Help: "time limit of a call that names none",
			},
		}, flags.Host()...),
		Children: p.AgentPrograms(),
		Network:  flags.ModelAPI(),
		Files:    stores.ConversationFiles(),
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the input has ended"},
			{Code: contract.GeneralError, When: "standard output cannot be written"},
			{Code: contract.ArgError, When: "wrong call, or no such directory"},
		},
		Examples: []contract.Example{
			{Description: "Agents that only read", Command: "omniagent mcp"},
			{
				Description: "Agents that may change files of a project",
				Command:     "omniagent mcp --allow-mode edit --dir .",
			},
		},
		Serve: parts.RedactErrors(p.serveMCP),
	}
}

func (p commands) serveMCP(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	roots, err := mcpRoots(c)
	if err != nil {
		return 0, err
	}
	timeout := c.Duration("ask-timeout")
	if timeout < time.Second || timeout > mcp.MaxTimeout {
		return 0, fault.New(fault.ArgError, "--ask-timeout is from 1s to %s", mcp.MaxTimeout)
	}
	ceiling, reads, err := ceilingOf(c)
	if err != nil {
		return 0, err
	}
	turn, connect := flags.Clocks(c)
	log := parts.Logger(c)
	if c.Host.StdinTerminal {
		log("an MCP client is expected on standard input, not a person; docs/mcp.md has the lines for its " +
			"configuration")
	}
	o := parts.Opener{
		Call: c, Log: log, Detail: parts.NoLog, Parts: p.Parts,
		Request: launch.Request{Provider: c.String("provider"), Base: c.String("api-base"), Mode: true},
	}
	ctx, ended, stop := contract.UntilSignal(ctx, signals)
	defer stop()
	err = mcp.Serve(ctx, c.Host.Stdin, c.Host.Stdout, mcp.Options{
		Name: c.Program.Name, Version: parts.Version, Open: o.Converse, Undo: safety.UndoFor(c),
		Agents:  func() ([]mcp.Agent, error) { return askable(c, p.Agents, reads) },
		Ceiling: ceiling, Sandbox: setting.Sandbox(c.String("sandbox")), Reads: reads, Roots: roots,
		Env: os.Environ(), Depth: parts.DepthOf(c), Timeout: timeout, Most: turn, Connect: connect,
	})
	if code, is := ended(); is {
		return code, nil
	}
	if err != nil {
		return 0, fault.New(fault.OutputFailed, "standard output cannot be written").Because(err)
	}
	return 0, nil
}

// ceilingOf returns the mode that an asked agent may have at most, and the approval for the mode read: prompt, or a
// stricter one that a flag sets.
func ceilingOf(c *contract.Call) (most mcp.Mode, reads setting.Approval, err error) {
	most, reads = mcp.Mode(c.String("allow-mode")), setting.Prompt
	approval, flag, err := flags.ApprovalOf(c)
	if err != nil || flag == "" {
		return most, reads, err
	}
	allowed := mcp.Read
	switch approval {
	case setting.AutoEdit:
		allowed = mcp.Edit
	case setting.Yolo:
		allowed = mcp.Yolo
	default:
		reads = approval
	}
	if c.Given("allow-mode") && allowed != most {
		return "", "", fault.New(fault.ArgError, "--allow-mode %s and %s cannot be combined", most, flag).
			Hint("leave one of them out")
	}
	return allowed, reads, nil
}

// mcpRoots returns the directories in which agents may work.
func mcpRoots(c *contract.Call) ([]string, error) {
	const noDir = "Give --dir an existing directory, or leave it out."
	var roots []string
	dirs := c.Strings("dir")
	if len(dirs) == 0 {
		dirs = []string{c.Dir()}
	}
	for _, dir := range dirs {
		path := c.Abs(dir)
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fault.New(fault.ArgError, "there is no directory %s", path).Because(err).Hint("%s", noDir)
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return nil, fault.New(fault.ArgError, "%s is not a directory", path).Hint("%s", noDir)
		}
		roots = append(roots, real)
	}
	return roots, nil
}

// askable returns the agents, with what their installed versions can do. It starts nothing.
func askable(c *contract.Call, drivers []agent.Driver, reads setting.Approval) ([]mcp.Agent, error) {
	known, err := parts.KnownAgents(c, drivers)
	if err != nil {
		return nil, err
	}
	all := []mcp.Agent{}
	for _, k := range known {
		row, install := k.Row(c)
		about, matrix := k.Describe(), k.Matrix(install.Version)
		does := func(feature, value string) bool {
			return matrix.Cell(feature, value, setting.OneShot).Level != agent.None
		}
		a := mcp.Agent{
			Name: k.Name(), Title: about.Title, Installed: row.Installed, Version: install.Version,
			Modes:  []mcp.Mode{},
			GoesOn: does(agent.Resume, ""), TellsDenials: does(agent.Denials, ""), Aliases: about.Aliases,
		}
		if !a.Installed {
			a.Install = about.InstallCommand
		}
		for _, m := range mcp.Modes() {
			if does(agent.Approval, string(m.Approval(reads))) {
				a.Modes = append(a.Modes, m)
			}
		}
		if len(a.Modes) == 0 && reads == setting.Prompt { // it enforces no mode, so only yolo is honest
			a.Modes = []mcp.Mode{mcp.Yolo}
		}
		all = append(all, a)
	}
	return all, nil
}
