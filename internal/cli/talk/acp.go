package talk

import (
	"cmp"
	"context"
	"os"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/safety"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/acp"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	wire "omniagent/internal/wire/acp"
)

func (p commands) acpCommand() *contract.Command {
	return &contract.Command{
		Path: "acp", Summary: "act as an agent for an editor, over the Agent Client Protocol", Class: contract.Stream,
		Danger: contract.Mutating,
		Detail: "It speaks versions 1 and 2 of the protocol on standard input and output, for the native agent or an " +
			"installed one, and ends with its input.\n" +
			"docs/acp.md has the settings of editors.",
		Scopes: []string{}, Auth: p.ModelKey(),
		Params: append([]contract.Param{
			{Name: "agent", Kind: contract.Name, Default: native.Name, Help: "the agent"},
			{
				Name: "provider", Short: "P", Kind: contract.Name, Help: "model API: " + p.APIWords(),
			},
			{
				Name: "model", Short: "m", Kind: contract.Name,
				Help: "model; several: a,b, of which the editor can choose",
			},
			{Name: "api-base", Kind: contract.Name, Value: "URL", Help: "address of the model API"},
			flags.Sandbox(),
			{
				Name: "network", Kind: contract.Name, Help: "what commands can reach: off, on, packages, or hosts",
			},
			{
				Name: "web", Kind: contract.Enum, Enum: []string{"on", "off"}, Default: "off",
				Help: "web pages and search",
			},
			{
				Name: "cwd", Short: "d", Kind: contract.File,
				Help: "whose settings count; each session names where it works",
			},
			{Name: "verbose", Short: "v", Kind: contract.Bool, Help: "more on stderr"},
		}, flags.Host()...),
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the client has gone"},
			{Code: contract.GeneralError, When: "standard output cannot be written"},
			{Code: contract.ArgError, When: "wrong call, or no such agent"},
		},
		Children: p.AgentPrograms(),
		Network:  flags.ModelAPI(),
		Files:    stores.ConversationFiles(stores.RunFiles()),
		Examples: []contract.Example{
			{Description: "The native agent, as an editor starts it", Command: "omniagent acp"},
			{Description: "An installed agent", Command: "omniagent acp --agent codex"},
		},
		Serve: parts.RedactErrors(p.serveACP),
	}
}

func (p commands) serveACP(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	if c.Host.Stdin == nil || c.Host.StdinTerminal {
		return 0, fault.New(fault.StdinRequired, "omniagent acp is started by an editor, which talks to it on stdin").
			Hint("see docs/acp.md for the settings of editors, or use omniagent chat to talk to an agent yourself")
	}
	log := parts.Logger(c)
	known := redact.Known(redact.Secrets(os.Environ())...)
	opens := parts.Opener{
		Call: c, Log: log, Detail: parts.DetailLog(c, log), Parts: p.Parts, Others: delegated,
		Request: launch.Request{Provider: c.String("provider"), Base: c.String("api-base")},
	}
	mode, _, err := flags.ApprovalOf(c)
	if err != nil {
		return 0, err
	}
	mode = cmp.Or(mode, setting.Prompt)
	models := modelsOf(c.String("model"))
	first := "" // the agent's default
	if len(models) > 0 {
		first = models[0].ID
	}
	host := &acp.Host{
		Agent: c.String("agent"), Models: models, Open: opens.Converse, In: c.Host.Stdin, Out: c.Host.Stdout, Log: log,
		Signals: signals, Mask: known.String, Undo: safety.UndoFor(c),
		Spec: conversation.With(agent.Spec{
			Shared: setting.Shared{
				Model:   parts.FromFlag(first),
				Sandbox: parts.FromFlag(setting.Sandbox(c.String("sandbox"))),
				Web:     parts.FromFlag(c.String("web") == "on"),
			},
			Terms: agent.Terms{Network: c.String("network"), Bypass: true}, // a person chooses among the modes
		}, agent.Change{Mode: mode}),
		About: wire.About{Name: "omniagent", Version: parts.Version},
	}
	home := c.Host.Home()
	if home == "" {
		return 0, fault.New(fault.NoHome, "there is no home directory to keep the sessions in").Hint("set HOME")
	}
	host.Sessions = acp.ResumableSessions{Tools: p.Tools.Specs(), Store: session.Default(home)}
	about := hostNative
	if host.Agent != native.Name {
		about = hostInstalled
	}
	if err := about(host, opens); err != nil {
		return 0, err
	}
	return host.Run(ctx), nil
}

// modelsOf parses a list of models such as a,b.
func modelsOf(list string) []wire.Choice {
	var models []wire.Choice
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			models = append(models, wire.Choice{ID: name, Name: name})
		}
	}
	return models
}

// hostNative sets the fields of a host that serves the native agent.
func hostNative(h *acp.Host, o parts.Opener) error {
	h.NewID = session.NewID
	for _, m := range setting.Approvals() {
		h.Modes = append(h.Modes, choiceOf(m))
	}
	h.About.Title, h.About.Images, h.About.Dirs, h.About.Fork = "omniagent", true, true, true
	h.About.Login = &wire.Method{
		ID: "environment", Name: "A key in the environment",
		About: "Set " + text.Either(provider.Keys(o.Parts.APIs)) +
			" where the editor is started, or in its settings of " +
			"this agent.",
	}
	h.Ready = func(ctx context.Context) error {
		r := o.Request
		r.Spec = h.Spec
		_, err := o.Env().Provider(ctx, r)
		return err
	}
	return nil
}

// choiceOf returns a mode as a choice for the editor's list.
func choiceOf(m setting.Approval) wire.Choice {
	name, about := m.Words()
	return wire.Choice{ID: string(m), Name: name, About: about}
}

// hostInstalled sets the fields of a host that serves an installed agent.
func hostInstalled(h *acp.Host, o parts.Opener) error {
	all, err := parts.KnownAgents(o.Call, o.Parts.Agents)
	if err != nil {
		return err
	}
	driver, ok := agent.Find(all, h.Agent)
	if !ok {
		return fault.New(fault.ArgError, "there is no agent %s", h.Agent).Hint("omniagent agents list")
	}
	h.Agent = driver.Name()
	about, matrix := driver.Describe(), driver.Matrix("")
	h.About.Title = about.Title + " through omniagent"
	h.About.Images, h.About.Dirs, h.About.Fork = about.Lasting, about.Lasting, about.Lasting
	if about.Login != "" {
		h.About.Login = &wire.Method{ID: "agent", Name: "The agent's own login", About: about.Login}
	}
	for _, m := range setting.Approvals() {
		cell := matrix.Cell(agent.Approval, string(m), setting.OneShot)
		if cell.Level == agent.None {
			continue
		}
		choice := choiceOf(m)
		if !about.Lasting { // it cannot ask, so the note about one-shot calls applies
			choice.About = cmp.Or(text.Sentence(cell.Note), choice.About)
		}
		h.Modes = append(h.Modes, choice)
	}
	h.Sessions.Agent, h.NewID = h.Agent, ident.UUID
	return nil
}
