package cli

import (
	"slices"

	"omniagent/internal/agent"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
)

// Term is something that a host may ask of a conversation and that not every agent can keep.
type Term uint8

// The terms.
const (
	AllowedTools Term = iota
	ForbiddenTools
	AvailableTools
	ModelTurns
	Cost
	Servers
	OnlyThese
	SubAgents
	Network
	Directories
	System
	Append
	Continue
	Fork
	Hooks
	Schema
	Protocol
)

// Keep refuses the first requested term that is not among those that the agent keeps.
func Keep(name string, s agent.Spec, sv agent.Services, kept ...Term) error {
	t := s.Terms
	known := slices.Contains([]string{"", agent.ByChoice, agent.ByStream}, t.Transport)
	for _, one := range []struct {
		term  Term
		asked bool
		what  string
	}{
		{AllowedTools, len(t.Allow) > 0, "keeps no list of allowed tools"},
		{ForbiddenTools, len(t.Deny) > 0, "keeps no list of forbidden tools"},
		{AvailableTools, t.Tools != nil, "keeps no list of available tools"},
		{ModelTurns, t.MaxTurns > 0, "keeps no limit of model turns"},
		{Cost, t.MaxUSD > 0, "keeps no limit of cost"},
		{Servers, len(t.Servers) > 0, "takes no MCP servers from a host"},
		{OnlyThese, t.OnlyThese, "does not leave out the user's own MCP servers"},
		{SubAgents, len(t.Helpers) > 0, "takes no sub-agents from a host"},
		{Network, t.Network != "", "does not limit the network of its commands to what a host says"},
		{Directories, len(t.Dirs) > 0, "takes no further directories"},
		{System, t.System != "", "takes no system prompt"},
		{Append, t.Append != "", "takes no addition to its system prompt"},
		{Continue, t.Continue, "cannot continue the newest session of a directory"},
		{Fork, t.Fork, "makes no copy of a session"},
		{Hooks, sv.Hook != nil, "takes no hooks from a host"},
		{Schema, s.Schema != nil, "does not hold its answers to a schema"},
		{Protocol, !known, "is not driven over the Agent Client Protocol"},
	} {
		if one.asked && !slices.Contains(kept, one.term) {
			return fault.New(fault.Unsupported, "in a conversation, %s %s", name, one.what)
		}
	}
	return nil
}

// perTurn puts the mode into a shared flag, and refuses what could not be enforced in an agent that takes no messages
// while it works. kept are the terms that are kept in addition.
func perTurn(d agent.Driver, s *agent.Spec, sv agent.Services, kept ...Term) error {
	m := d.Matrix(s.Install.Version)
	switch mode := s.Terms.Mode; {
	case mode == "":
	case mode.Stricter() && m.Cell(agent.Approval, string(mode), setting.OneShot).Level != agent.Full:
		note := m.Cell(agent.Approval, string(mode), setting.OneShot).Note
		return fault.New(fault.Unsupported, "%s has no mode %s that we know to keep%s", d.Name(), mode,
			parenthesis(note))
	case mode == setting.Default && m.Cell(agent.Approval, string(mode), setting.OneShot).Level == agent.None:
		s.Shared.Approval = setting.AsTyped(setting.Prompt) // which is stricter, because nobody can be asked
	default:
		s.Shared.Approval = setting.AsTyped(mode)
	}
	if m.Cell(agent.Schema, "", setting.OneShot).Level == agent.Full {
		kept = append(kept, Schema)
	}
	if err := Keep(d.Name(), *s, sv, kept...); err != nil {
		return err
	}
	if off := m.Cell(agent.RepoConfig, "off", setting.OneShot); s.Env != nil && len(off.Env) > 0 {
		s.Env = Environ(s.Env, off.Env) // a person has to review what a repository says
	}
	for _, shared := range []struct {
		feature, value string
		asked          bool
	}{
		{agent.Approval, string(s.Shared.Approval.Value), s.Terms.Mode != ""},
		{agent.Sandbox, string(s.Shared.Sandbox.Value), s.Shared.Sandbox.Typed()},
	} {
		cell := Here(m.Cell(shared.feature, shared.value, setting.OneShot), s.Machine)
		if shared.asked && len(m.Rows) > 0 && cell.Level == agent.None {
			return fault.New(fault.Unsupported, "%s has no %s %s%s",
				d.Name(), shared.feature, shared.value, parenthesis(cell.Note)).
				Hint("omniagent agents show %s lists what it has", d.Name())
		}
	}
	return nil
}
