package launch

import (
	"cmp"
	"context"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/native/engine"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/guard"
)

// Provider chooses the model API of the native agent.
func (e Env) Provider(ctx context.Context, r Request) (provider.Choice, error) {
	o := provider.Options{
		APIs: e.Native.APIs, Agents: e.Native.Agents, Keys: e.Native.Keys,
		Provider: r.Provider, Model: r.Spec.Shared.Model.Value, Base: r.Base, Lookup: e.Native.LookupEnv, Home: e.Home,
		Programs: e.Native.Programs.Also(r.Spec.Dir),
		First:    e.Native.First, Idle: e.Native.Idle, Proxy: e.Native.Proxy, Again: e.Native.Again,
	}
	profiles := provider.Profiles{Chosen: -1}
	if e.Native.Profiles != nil {
		profiles = e.Native.Profiles(r.Spec.Dir)
	}
	if w, ok := e.recorded(ctx, r, profiles); ok {
		o.Selections = append(o.Selections, w)
	}
	o.Selections = append(o.Selections, e.Native.Wishes...)
	o.Notes = profiles.Notices
	if w := profiles.Selection(); w != nil {
		o.Selections = append(o.Selections, *w)
	}
	return provider.Choose(o)
}

// recorded returns the model of the session to resume, or of the one that a new session is like. If the session cannot
// be read, opening it reports that.
func (e Env) recorded(ctx context.Context, r Request, profiles provider.Profiles) (provider.Selection, bool) {
	id := cmp.Or(r.Spec.Resume, r.Like)
	if r.Spec.Terms.Continue {
		id, _ = native.Newest(ctx, e.Store(), r.Spec.Dir)
	}
	if id == "" || session.CheckID(id) != nil {
		return provider.Selection{}, false
	}
	info, err := e.Store().Info(id)
	if err != nil || info.Begin.AgentName() != native.Name || info.Provider == "" {
		return provider.Selection{}, false
	}
	return profiles.Recorded(provider.Selection{
		Provider: info.Provider, Model: info.Model, Base: info.Base, Layer: provider.LayerOf(info.Declared),
		Profile: info.Profile,
	}), true
}

// own plans a conversation with the native agent.
func (p *Plan) own(ctx context.Context) error {
	e, r := p.env, p.request
	choice, err := e.Provider(ctx, r)
	for _, note := range choice.Notes {
		e.Log("%s", note)
	}
	if err != nil {
		return err
	}
	e.Detail("the model is %s of %s at %s, because of %s, with %s", choice.Model, choice.Provider, choice.Endpoint.URL,
		choice.How, choice.Login)
	if e.Native.Problem != nil {
		return e.Native.Problem
	}
	rules, known := e.Native.Rules, guard.Known(e.Native.Tools.Specs())
	for _, text := range r.Ask {
		rule, err := known.Rule(guard.Ask, text, "the settings")
		if err != nil {
			return err
		}
		rules = append(rules, rule)
	}
	s := r.Spec
	p.native = native.Options{
		Choice: choice, Dir: s.Dir, Store: e.Store(), Forget: !p.keep, Rehearsed: s.Rehearsal != nil,
		ID: s.Fresh, Resume: s.Resume, History: r.History, Mode: cli.ModeOf(s), CanAsk: r.Services.CanAsk,
		Web: s.Shared.Web.Value, Env: orElse(s.Env, e.Environ), HandOn: e.Native.Variables, Temp: e.Temp,
		Trusted: e.Trusted, Log: e.Log, Rules: rules,
		Tools: e.Native.Tools, Agents: e.Native.Known, Others: e.Native.Others,
		Sandbox: e.sandboxFor(s),
		Network: cmp.Or(s.Terms.Network, e.Native.Network), Memory: e.Native.Memory, Read: e.Native.Read,
		Via: e.Native.Via, Home: e.Home, State: e.State,
		Limits: engine.Limits{Turns: s.Terms.MaxTurns, CostUSD: s.Terms.MaxUSD}, Lookup: e.Lookup, Version: e.Version,
		ToolProtocol: cmp.Or(r.ToolProtocol, e.Native.ToolProtocol, choice.Protocol, e.Native.UsualProtocol),
		Terms:        s.Terms, Services: r.Services, Schema: s.Schema, Retries: s.Retries,
	}
	if e.Config != "" {
		p.native.Servers, p.native.Config = filepath.Join(e.Config, "mcp.json"), e.Config
	}
	return nil
}

func orElse(a, b []string) []string {
	if a != nil {
		return a
	}
	return b
}

// minds returns a NewMind of the native agent. s is the Spec of the first Mind, with the chosen model.
func minds(o native.Options, s agent.Spec) agent.NewMind {
	first := s.Shared.Model.Value
	return func(ctx context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
		o := o
		o.Services, o.Mode, o.Terms.Dirs = sv, cli.ModeOf(s), s.Terms.Dirs
		if name := s.Shared.Model.Value; name != first {
			var err error
			if o.Choice, err = o.Choice.With(name); err != nil {
				return nil, err
			}
		}
		m, err := native.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}
