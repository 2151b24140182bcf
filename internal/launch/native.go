package launch

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"

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
	o := e.Native.Model
	o.Provider, o.Model, o.Base = r.Provider, r.Spec.Shared.Model.Value, r.Base
	o.Programs = o.Programs.Also(r.Spec.Dir)
	profiles := provider.Profiles{Chosen: -1}
	if e.Native.Profiles != nil {
		profiles = e.Native.Profiles(r.Spec.Dir)
	}
	o.Selections = slices.Clone(o.Selections)
	if w, ok := e.recorded(ctx, r, profiles); ok {
		o.Selections = slices.Insert(o.Selections, 0, w)
	}
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
	set, s := e.Native.Settings, r.Spec
	known := guard.Known(set.Tools.Specs())
	set.Rules = slices.Clone(set.Rules)
	for _, text := range r.Ask {
		rule, err := known.Rule(guard.Ask, text, "the settings")
		if err != nil {
			return err
		}
		set.Rules = append(set.Rules, rule)
	}
	set.Sandbox, set.Walls.Network = e.sandboxFor(s), cmp.Or(s.Terms.Network, set.Walls.Network)
	set.ToolProtocol = cmp.Or(r.ToolProtocol, set.ToolProtocol, choice.Protocol, e.Native.UsualProtocol)
	p.native = native.Options{
		Settings: set,
		Choice:   choice, Dir: s.Dir, Store: e.Store(), Forget: !p.keep, Rehearsed: s.Rehearsal != nil,
		ID: s.Fresh, Resume: s.Resume, History: r.History, Mode: cli.ModeOf(s), CanAsk: r.Services.CanAsk,
		Web: s.Shared.Web.Value, Env: orElse(s.Env, e.Environ), Temp: e.Temp, Version: e.Version,
		Trusted: e.Trust.Trusted, Log: e.Log,
		Limits: engine.Limits{Turns: s.Terms.MaxTurns, CostUSD: s.Terms.MaxUSD},
		Terms:  s.Terms, Services: r.Services, Schema: s.Schema, Retries: s.Retries,
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
