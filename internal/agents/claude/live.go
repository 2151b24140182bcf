package claude

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/agents/relay"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/mcp"
)

// Mind returns a Mind over the CLI's stdio protocol.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	return live.NewMind(live.Agent{
		Driver:    d,
		Abilities: agent.Abilities{Steer: true, Mode: true, Model: true, Images: true, Resume: true},
		Launch:    d.live,
		Proto: func(s agent.Spec, _ agent.Launch) live.Proto {
			inside, _ := servers(s.Terms.Servers)
			return newTalk(talkOptions{
				mode: cli.ModeOf(s), hooks: sv.Hook != nil, servers: inside, helpers: s.Terms.Helpers,
				sandbox: s.Shared.Sandbox.Value == setting.WorkspaceWrite,
				asks:    s.Shared.Sandbox.Value == setting.WorkspaceWrite && s.Shared.Sandbox.Asked(),
			})
		},
	}, s, sv)
}

// Relayed returns the launch of a process whose lines go unchanged to a host of the same protocol.
func (d driver) Relayed(s agent.Spec, w relay.Wishes) (agent.Launch, error) {
	if mode := cli.ModeOf(s); mode == setting.AskAll || mode == setting.DenyAll {
		return agent.Launch{}, fault.New(fault.Unsupported, "Claude Code itself has no mode %s", mode)
	}
	return d.launch(s, w)
}

// live returns the launch of a process for many turns.
func (d driver) live(s agent.Spec) (agent.Launch, error) {
	return d.launch(s, relay.Wishes{CanAsk: true, Pieces: true})
}

func (d driver) launch(s agent.Spec, w relay.Wishes) (agent.Launch, error) {
	mode := cli.ModeOf(s)
	servers, err := checkTerms(s)
	if err != nil {
		return agent.Launch{}, err
	}
	s.Mode = setting.OneShot
	s.Shared.Output = setting.Chosen[setting.Output]{Value: setting.StreamJSON, Origin: setting.Derived}
	s.Shared.Approval = setting.AsTyped(setting.Prompt)
	if mode == setting.AutoEdit || mode == setting.Yolo {
		s.Shared.Approval.Value = mode
	}
	fresh := s.Fresh
	if s.Terms.Continue || s.Terms.Fork {
		s.Fresh = "" // sent below, together with --fork-session
	}
	l, _, err := d.Command(s)
	if err != nil {
		return l, err
	}
	ours := withWishes(append(slices.Clone(l.Args[:l.Translated]), "--input-format=stream-json"), mode, w)
	if s.Terms.Bypass && mode != setting.Yolo && s.Shared.Sandbox.Value != setting.WorkspaceWrite &&
		(!s.Machine.Root || deliberate(l.Env)) {
		ours = append(ours, "--allow-dangerously-skip-permissions")
	}
	ours = append(ours, terms(s.Terms)...)
	if s.Terms.Continue {
		ours = append(ours, "--continue")
	}
	if s.Terms.Fork {
		ours = append(ours, "--fork-session")
		if fresh != "" {
			ours = append(ours, "--session-id="+fresh)
			l.Session = fresh
		}
	}
	if len(s.Terms.Servers) > 0 {
		ours = append(ours, "--mcp-config="+string(servers))
	}
	ours, files := projectFlags(ours, s)
	l.Files = append(l.Files, files...)
	for _, arg := range ours {
		if !startable(arg, s.Machine.OS) {
			return l, fault.New(fault.FieldTooLarge,
				"an argument for Claude Code is longer than the system allows: %.40s…", arg)
		}
	}
	l.Args, l.Translated = append(ours, l.Args[l.Translated:]...), len(ours)
	return l, nil
}

// withWishes adds the flags for a host's options.
func withWishes(ours []string, mode setting.Approval, w relay.Wishes) []string {
	if w.Forget {
		ours = append(ours, "--no-session-persistence")
	}
	if mode == setting.Plan {
		ours[slices.Index(ours, modeFlag)+1] = modeWord(mode)
	}
	if w.Denied {
		ours[slices.Index(ours, modeFlag)+1] = "dontAsk"
	}
	if w.CanAsk {
		ours = append(ours, "--permission-prompt-tool=stdio")
	}
	if w.Pieces {
		ours = append(ours, "--include-partial-messages")
	}
	return ours
}

// checkTerms refuses terms that the CLI cannot keep. It returns the MCP servers in the form of --mcp-config.
func checkTerms(s agent.Spec) ([]byte, error) {
	mode := cli.ModeOf(s)
	if modeWord(mode) == "" {
		return nil, fault.New(fault.Unsupported, "Claude Code has no mode %s", mode)
	}
	if n := s.Terms.Network; n != "" && (n != "on" || s.Shared.Sandbox.Value == setting.WorkspaceWrite) {
		return nil, fault.New(fault.Unsupported,
			"Claude Code takes no network %q: what its commands reach is in the settings of its sandbox", n)
	}
	_, all := servers(s.Terms.Servers)
	if len(s.Terms.Servers) > 0 && all == nil {
		return nil, fault.New(fault.ArgError, "the MCP servers are not a JSON object of servers")
	}
	return all, nil
}

// terms returns the flags for a host's terms. Each item of a list gets its own flag, because a rule may contain a
// comma.
func terms(t agent.Terms) []string {
	var out []string
	each := func(flag string, values []string) {
		for _, v := range values {
			out = append(out, flag+"="+v)
		}
	}
	each("--allowedTools", t.Allow)
	each("--disallowedTools", t.Deny)
	each("--add-dir", t.Dirs)
	if t.Tools != nil {
		if len(t.Tools) == 0 {
			out = append(out, "--tools=")
		}
		each("--tools", t.Tools)
	}
	if t.System != "" {
		out = append(out, "--system-prompt="+t.System)
	}
	if t.Append != "" {
		out = append(out, "--append-system-prompt="+t.Append)
	}
	if t.MaxTurns > 0 {
		out = append(out, "--max-turns="+strconv.Itoa(t.MaxTurns))
	}
	if t.MaxUSD > 0 {
		out = append(out, "--max-budget-usd="+strconv.FormatFloat(t.MaxUSD, 'f', -1, 64))
	}
	return out
}

// servers returns the names of the MCP servers that live in the host, and all servers in the form of --mcp-config. The
// latter is nil if data is not a JSON object of servers.
func servers(data []byte) (inside []string, all []byte) {
	if len(data) == 0 {
		return nil, nil
	}
	list, err := mcp.Entries(data)
	if err != nil {
		return nil, nil
	}
	for name, raw := range list {
		var one struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &one) != nil {
			return nil, nil
		}
		if one.Type == "sdk" {
			inside = append(inside, name)
		}
	}
	slices.Sort(inside)
	all, err = json.Marshal(map[string]any{"mcpServers": list})
	if err != nil {
		return nil, nil
	}
	return inside, all
}
