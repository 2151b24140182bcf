package cli

import (
	"cmp"
	"slices"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// Term is a term of a conversation that not every agent can keep.
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

// Keep refuses the first requested term that the agent does not keep.
func Keep(name string, s agent.Spec, sv agent.Services, kept ...Term) error {
	t := s.Terms
	known := slices.Contains([]string{"", agent.ByChoice, agent.ByStream}, t.Transport)
	for _, one := range []struct {
		term  Term
		asked bool
		what  string
	}{
		{AllowedTools, len(t.Allow) > 0, "does not support a list of allowed tools"},
		{ForbiddenTools, len(t.Deny) > 0, "does not support a list of forbidden tools"},
		{AvailableTools, t.Tools != nil, "does not support a list of available tools"},
		{ModelTurns, t.MaxTurns > 0, "cannot limit the turns of the model"},
		{Cost, t.MaxUSD > 0, "cannot limit the cost"},
		{Servers, len(t.Servers) > 0, "does not accept MCP servers from a host"},
		{OnlyThese, t.OnlyThese, "cannot leave out the user's own MCP servers"},
		{SubAgents, len(t.Helpers) > 0, "does not accept sub-agents from a host"},
		{Network, t.Network != "", "cannot restrict the network of its commands"},
		{Directories, len(t.Dirs) > 0, "does not accept further directories"},
		{System, t.System != "", "does not accept a system prompt"},
		{Append, t.Append != "", "does not accept an addition to its system prompt"},
		{Continue, t.Continue, "cannot continue the newest session of a directory"},
		{Fork, t.Fork, "cannot fork a session"},
		{Hooks, sv.Hook != nil, "does not accept hooks from a host"},
		{Schema, s.Schema != nil, "cannot fit its answers to a schema"},
		{Protocol, !known, "does not support the Agent Client Protocol here"},
	} {
		if one.asked && !slices.Contains(kept, one.term) {
			return fault.New(fault.Unsupported, "in a conversation, %s %s", name, one.what)
		}
	}
	return nil
}

// ApplyTerms copies the mode to the shared flag. It returns an error for terms that cannot be enforced in an agent that
// accepts no messages while it works. kept lists further terms that the agent keeps.
func ApplyTerms(d agent.Driver, s *agent.Spec, sv agent.Services, kept ...Term) error {
	m := d.Matrix(s.Install.Version)
	mode := s.Terms.Mode
	switch cell := m.Cell(agent.Approval, string(mode), setting.OneShot); {
	case mode == "":
	case mode.Stricter() && cell.Level != agent.Full:
		return fault.New(fault.Unsupported, "%s has no mode %s that we know to keep%s", d.Name(), mode,
			parenthesis(cell.Note))
	case mode == setting.Default && cell.Level == agent.None:
		s.Shared.Approval = setting.AsTyped(setting.Prompt) // stricter, because nobody can be asked
	default:
		s.Shared.Approval = setting.AsTyped(mode)
	}
	if m.Cell(agent.Schema, "", setting.OneShot).Level == agent.Full {
		kept = append(kept, Schema)
	}
	if err := Keep(d.Name(), *s, sv, kept...); err != nil {
		return err
	}
	if off := m.Cell(agent.RepoConfig, "off", setting.OneShot); s.Env != nil && !s.Plain && len(off.Env) > 0 {
		s.Env = Environ(s.Env, off.Env) // a person has to review a repository's instructions
	}
	for _, shared := range []struct {
		feature, value, said string
		asked                bool
	}{
		{agent.Approval, string(s.Shared.Approval.Value), string(mode), mode != ""},
		{agent.Sandbox, string(s.Shared.Sandbox.Value), string(s.Shared.Sandbox.Value), s.Shared.Sandbox.Typed()},
	} {
		cell := Here(m.Cell(shared.feature, shared.value, setting.OneShot), s.Machine)
		if shared.asked && len(m.Rows) > 0 && cell.Level == agent.None {
			return fault.New(fault.Unsupported, "%s has no %s %s%s",
				d.Name(), shared.feature, shared.said, parenthesis(cell.Note)).
				Hint("%s", cmp.Or(cell.Fix, "omniagent agents show "+d.Name()+" lists what it has"))
		}
	}
	return nil
}
