package command

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"

	"omniagent/internal/acp"
	"omniagent/internal/agent"
	"omniagent/internal/agent/native"
	"omniagent/internal/contract"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
	"omniagent/internal/provider"
	"omniagent/internal/redact"
	"omniagent/internal/session"
	"omniagent/internal/setting"
)

// acpCommand is any agent for an editor.
func acpCommand() *contract.Command {
	return &contract.Command{
		Path: "acp", Summary: "be an agent for an editor, over the Agent Client Protocol", Class: contract.Stream, Danger: contract.Mutating,
		Detail: "It speaks versions 1 and 2 of the protocol on standard input and output, for the native agent or an installed one, and ends with its input.\n" +
			"docs/acp.md has the settings of editors.",
		Scopes: []string{},
		Params: append([]contract.Param{
			{Name: "agent", Kind: contract.Text, Default: native.Name, Help: "who answers"},
			{Name: "provider", Short: "P", Kind: contract.Text, Help: "model API of the native agent: openai, codex, gemini or anthropic"},
			{Name: "model", Short: "m", Kind: contract.Text, Help: "model; several: a,b, of which the editor can choose"},
			{Name: "api-base", Kind: contract.Text, Help: "address of the model API"},
			{Name: "sandbox", Kind: contract.Enum, Enum: []string{string(setting.WorkspaceWrite), string(setting.Off)}, Help: "what commands can change"},
			{Name: "network", Kind: contract.Text, Help: "what commands reach: off, on, or hosts: a.org,b.org"},
			{Name: "web", Kind: contract.Enum, Enum: []string{"on", "off"}, Default: "off", Help: "pages and search"},
			{Name: "cwd", Short: "d", Kind: contract.File, Help: "whose settings count; each session names where it works"},
			{Name: "verbose", Short: "v", Kind: contract.Bool, Help: "more on stderr"},
		}, hostParams()...),
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the client has gone"},
			{Code: contract.GeneralError, When: "standard output cannot be written"},
			{Code: contract.ArgError, When: "wrong call, or no such agent"},
		},
		Network: modelAPI(),
		Files: []contract.FileEffect{
			{Path: "~/.yume/sessions", Type: "state", ClearableWith: "omniagent session delete"},
			wallsRecord(),
			{Path: "<state>/acp", Type: "state"},
		},
		Examples: []contract.Example{
			{Description: "The native agent, as an editor starts it", Command: "omniagent acp"},
			{Description: "An installed agent", Command: "omniagent acp --agent codex"},
		},
		Serve: quiet(serveACP),
	}
}

// acpModes are the approvals as an editor shows them, from the strictest.
func acpModes() []wire.Choice {
	return []wire.Choice{
		{ID: string(setting.DenyAll), Name: "Deny", About: "No tool runs"},
		{ID: string(setting.AskAll), Name: "Ask about everything", About: "Every call is asked about, those that only read too"},
		{ID: string(setting.Plan), Name: "Plan", About: "Only reads, and says what it would do"},
		{ID: string(setting.Prompt), Name: "Ask", About: "Reads without a question, and asks before it changes anything"},
		{ID: string(setting.Default), Name: "Default", About: "As Ask; where nobody can be asked, what the walls hold in the workspace runs"},
		{ID: string(setting.AutoEdit), Name: "Edit", About: "Files of the workspace are changed without a question; what else changes something is asked about"},
		{ID: string(setting.Yolo), Name: "Everything", About: "Everything runs without a question, behind the walls"},
	}
}

func serveACP(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	if c.Host.Stdin == nil || c.Host.StdinTerminal {
		return 0, fault.New(fault.StdinRequired, "an editor speaks to this command; there is none on standard input").Hint("docs/acp.md has the settings of editors; omniagent chat talks to a person")
	}
	log := logger(c)
	detail := func(string, ...any) {}
	if c.Bool("verbose") {
		detail = log
	}
	known := redact.Known(redact.Secrets(os.Environ())...)
	opens := opener{call: c, log: log, detail: detail, drivers: drivers(), provider: c.String("provider"), base: c.String("api-base")}
	mode, _, err := approvalOf(c)
	if err != nil {
		return 0, err
	}
	mode = cmp.Or(mode, setting.Prompt)
	models := modelsOf(c.String("model"))
	host := &acp.Host{
		Agent: c.String("agent"), Open: opens.open, In: c.Host.Stdin, Out: c.Host.Stdout, Log: log, Signals: signals, Mask: known.String,
		Spec: acp.WithMode(agent.Spec{
			Shared: setting.Shared{
				Model:   typed(models[0].ID),
				Sandbox: typed(setting.Sandbox(c.String("sandbox"))),
				Web:     typed(c.String("web") == "on"),
			},
			Terms: agent.Terms{Network: c.String("network")},
		}, mode),
		Options: wire.Options{Mode: string(mode), Model: models[0].ID, Models: models},
		About:   wire.About{Name: "omniagent", Version: Version},
	}
	about := hostNative
	if host.Agent != native.Name {
		about = hostInstalled
	}
	if err := about(host, opens, known); err != nil {
		return 0, err
	}
	return host.Run(ctx), nil
}

// modelsOf are the models of a list, at least one; the first is the agent's own where none is named.
func modelsOf(list string) []wire.Choice {
	var models []wire.Choice
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			models = append(models, wire.Choice{ID: name, Name: name})
		}
	}
	if models == nil {
		models = []wire.Choice{{}}
	}
	return models
}

// hostNative is what the host knows of our own agent.
func hostNative(h *acp.Host, o opener, _ *redact.Values) error {
	c := o.call
	home, _ := c.Host.Lookup("HOME")
	if home == "" {
		return fault.New(fault.NoHome, "there is no home directory to keep the sessions in").Hint("set HOME")
	}
	h.Keeper, h.Options.Modes = acp.Native{Store: session.Default(home)}, acpModes()
	h.About.Title, h.About.Images, h.About.Dirs, h.About.Fork = "omniagent", true, true, true
	h.About.Login = &wire.Method{ID: "environment", Name: "A key in the environment", About: "Set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY where the editor is started, or in its settings of this agent."}
	h.Ready = func(context.Context) error {
		_, err := provider.Choose(provider.Options{
			Provider: o.provider, Model: h.Spec.Shared.Model.Value, Base: o.base, Lookup: ownPrograms(c, home), Home: home,
			First: firstByte(c), Idle: c.Config.Duration("native.idle"),
		})
		return err
	}
	return nil
}

// hostInstalled is what the host knows of an agent of this machine.
func hostInstalled(h *acp.Host, o opener, known *redact.Values) error {
	all, err := knownAgents(o.call, o.drivers)
	if err != nil {
		return err
	}
	var driver agent.Driver
	for _, k := range all {
		if k.answersTo(h.Agent) {
			driver = k.Driver
		}
	}
	if driver == nil {
		return fault.New(fault.ArgError, "there is no agent %s", h.Agent).Hint("omniagent agents list")
	}
	h.Agent = driver.Name()
	about, matrix := driver.Describe(), driver.Matrix("")
	h.About.Title = about.Title + " through omniagent"
	h.About.Images, h.About.Dirs = about.Lasting, about.Lasting
	if about.Login != "" {
		h.About.Login = &wire.Method{ID: "agent", Name: "The agent's own login", About: about.Login}
	}
	for _, m := range acpModes() {
		cell := matrix.Cell(agent.Approval, m.ID, setting.OneShot)
		if cell.Level != agent.None {
			if !about.Lasting { // the note is about runs in which nobody can be asked
				m.About = cmp.Or(sentence(cell.Note), m.About)
			}
			h.Options.Modes = append(h.Options.Modes, m)
		}
	}
	h.Keeper = acp.Ledger{Dir: filepath.Join(o.call.Paths.State, "acp"), Agent: h.Agent, Mask: known.Bytes, Log: h.Log}
	return nil
}

// sentence is a phrase that begins as one.
func sentence(phrase string) string {
	if phrase == "" {
		return ""
	}
	return strings.ToUpper(phrase[:1]) + phrase[1:]
}
