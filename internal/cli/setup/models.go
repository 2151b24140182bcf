package setup

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/llm/provider"
	"omniagent/internal/sys/config"
)

type modelRow struct {
	Name     string  `json:"name" doc:"what models use takes"`
	Provider string  `json:"provider" doc:"a word of --provider"`
	Model    *string `json:"model" doc:"null: the server has models of its own, and none is named"`
	Base     string  `json:"api_base"`
	From     string  `json:"from" doc:"what names it: a profile, a setting, or this program"`
	Key      bool    `json:"key" doc:"whether a credential for it is known, or none is needed"`
	Login    *string `json:"login" doc:"which credential, never its text; null: there is none"`
	Problem  *string `json:"problem" doc:"why it cannot be used; null: it can"`
	Protocol *string `json:"tool_protocol" doc:"how a profile's model calls tools; null: it does not say"`
	Output   *int64  `json:"max_output_tokens" doc:"of a profile; null: not a profile"`
	Input    *int64  `json:"max_input_chars" doc:"of a profile; null: not a profile"`
	Active   bool    `json:"active" doc:"a new conversation here asks it, without flags"`
}

type modelsData struct {
	Models  contract.Rows[modelRow] `json:"models"`
	Problem *string                 `json:"problem" doc:"why no model is active; null: one is"`
}

func (p commands) modelsList() *contract.Command {
	return &contract.Command{
		Path: "models list", Summary: "list the models that can be asked here", Class: contract.Envelope,
		Danger: contract.Safe, Version: "1.0.0", Scopes: []string{}, Output: contract.TypeOf[modelsData](),
		Detail: "The configuration's model, the profiles of ~/.eidolon and of a trusted project, and each model API. " +
			"Nothing is asked for it, neither an API nor a keyring.",
		List: &contract.List{
			Key: "models", ID: "name", Order: "given",
			Columns: []string{"name", "provider", "model", "key", "active", "from"},
		},
		Exits: []contract.Exit{{Code: contract.Success, When: "they are listed"}},
		Examples: []contract.Example{
			{Description: "Which model is asked, and what else there is", Command: "omniagent models list"},
		},
		Run: p.runModelsList,
	}
}

func (p commands) runModelsList(ctx context.Context, c *contract.Call) (contract.Result, error) {
	env := p.QuietOpener(c).Env()
	env.Native.Model.Keys = PlaceholderKeys{Store: stores.Keys(c)}
	active, problem := env.Provider(ctx, launch.Request{Spec: agent.Spec{Dir: c.Dir()}})
	set := env.Native.Model
	options := provider.Options{
		APIs: set.APIs, Lookup: set.Lookup, Programs: set.Programs, Home: set.Home, Keys: set.Keys,
	}
	var data modelsData
	var rows []modelRow
	if problem != nil {
		data.Problem = contract.OrNil(fault.Of(problem).Message)
	}
	add := func(name, from string, w *provider.Selection) *modelRow {
		o := options
		if o.Provider = name; w != nil {
			o.Provider, o.Selections = "", []provider.Selection{*w}
		}
		rows = append(rows, modelRowOf(name, from, o))
		row := &rows[len(rows)-1]
		row.Active = problem == nil && row.Problem == nil && active.Provider == row.Provider &&
			active.Endpoint.URL == row.Base && row.Model != nil && active.Model == *row.Model &&
			(active.Profile == "" || active.Profile == name) &&
			!slices.ContainsFunc(rows[:len(rows)-1], func(r modelRow) bool { return r.Active })
		return row
	}
	for _, w := range set.Selections {
		add("configured", w.From, &w)
	}
	for _, one := range env.Native.Profiles(c.Dir()).All {
		w := one.Selection()
		row := add(cmp.Or(one.Name, "(the single model)"), one.File, &w)
		row.Protocol, row.Output, row.Input = contract.OrNil(one.Protocol), &one.Output, &one.Input
	}
	for _, name := range provider.Names(p.APIs) {
		add(name, "this program", nil)
	}
	if siliconflow := provider.EidolonDefault(); siliconflow.Vendor != "" {
		add(siliconflow.Vendor, "this program", &siliconflow)
	}
	for _, note := range env.Native.Profiles(c.Dir()).Notices {
		c.Warn("PROFILE_NOTICE", "%s", note)
	}
	data.Models = contract.RowsOf(rows)
	return contract.Result{Data: data}, nil
}

// modelRowOf returns the row of the model that the options choose, or would choose if there were a key.
func modelRowOf(name, from string, o provider.Options) modelRow {
	row := modelRow{Name: name, From: from}
	choice, err := provider.Choose(o)
	if err == nil {
		row.Provider, row.Model, row.Base = choice.Provider, contract.OrNil(choice.Model), choice.Endpoint.URL
		row.Key, row.Login = !choice.Unsure, contract.OrNil(choice.Login)
		return row
	}
	row.Problem = contract.OrNil(fault.Of(err).Message)
	row.Provider, row.Base = o.Provider, ""
	if len(o.Selections) > 0 {
		first := o.Selections[0]
		row.Provider, row.Base, row.Model = first.Provider, first.Base, contract.OrNil(first.Model)
	}
	for _, api := range o.APIs {
		if api.Name == row.Provider {
			row.Base = cmp.Or(row.Base, api.Base)
			if row.Model == nil && row.Base == api.Base {
				row.Model = contract.OrNil(api.Default)
			}
		}
	}
	return row
}

type modelUsed struct {
	Name     string   `json:"name"`
	Provider string   `json:"provider"`
	Model    *string  `json:"model" doc:"null: the default of the provider"`
	Was      *string  `json:"was" doc:"the profile or the provider that was named there before; null: none"`
	Changed  []string `json:"changed" doc:"what was written, as file and member"`
}

func (p commands) modelsUse() *contract.Command {
	return &contract.Command{
		Path: "models use", Summary: "say which model new conversations ask", Class: contract.Envelope,
		Danger: contract.Mutating, Version: "1.0.0", DryRun: true, Reversible: true, Scopes: []string{},
		ConfigScope: "global", Output: contract.TypeOf[modelUsed](),
		Detail: "The name of a profile is written as models.active into your ~/.eidolon/config.json, of which every " +
			"other byte stays, and your own\n" +
			"native.provider, native.model and native.api_base, which would be stronger, are removed. PROVIDER or " +
			"PROVIDER/MODEL is written as native.provider\n" +
			"and native.model into your own configuration.",
		Params: []contract.Param{{
			Name: "name", Kind: contract.Name, Position: 1, Required: true, MaxLen: 256,
			Help: "a profile, PROVIDER or PROVIDER/MODEL",
		}},
		Files: []contract.FileEffect{
			{Path: "~/.config/omniagent/config.toml", Type: "config"},
			{Path: "~/.eidolon/config.json", Type: "config"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is what new conversations ask"},
			{Code: contract.PreconditionFailed, When: "no home directory, or an unsafe file"},
			{Code: contract.Conflict, When: "another process is changing the file", Retryable: true},
			{Code: contract.PermissionDenied, When: "the file cannot be written"},
		},
		Examples: []contract.Example{
			{Description: "A model API and a model", Command: "omniagent models use anthropic/claude-sonnet-4-5"},
		},
		Validate: func(c *contract.Call) []fault.Problem {
			_, _, _, err := p.parseModel(c.String("name"), parts.ProfilesOf(c)(c.Dir()))
			return contract.ProblemOf("name", c.String("name"), err)
		},
		Run: p.runModelsUse,
	}
}

func (p commands) runModelsUse(ctx context.Context, c *contract.Call) (contract.Result, error) {
	name := strings.TrimSpace(c.String("name"))
	home := c.Host.Home()
	if home == "" || c.Paths.UserConfig() == "" {
		return contract.Result{}, fault.New(fault.NoHome, "no home directory is known").Hint("set HOME")
	}
	profiles := parts.ProfilesOf(c)(c.Dir())
	u := modelChange{c: c, data: modelUsed{Name: name}}
	one, word, model, err := p.parseModel(name, profiles)
	if err != nil {
		return contract.Result{}, err
	}
	if u.data.Provider, u.data.Model = word, contract.OrNil(model); one != nil {
		err = u.profile(ctx, home, *one)
	} else {
		err = u.provider(ctx)
	}
	if err != nil {
		return contract.Result{}, err
	}
	effect := contract.Updated
	if len(u.data.Changed) == 0 {
		effect = contract.Noop
	}
	u.shadows(profiles)
	return contract.Result{Data: u.data, Effect: effect, Target: map[string]any{"changed": u.data.Changed}}, nil
}

// parseModel returns what a name means: a profile, or else nil, and the provider and the model, which may be "".
func (p commands) parseModel(name string, profiles provider.Profiles) (
	one *provider.Profile, word, model string, err error,
) {
	name = strings.TrimSpace(name)
	if one, ok := profiles.Named(name); ok {
		return &one, one.Kind, one.Model, nil
	}
	word, model, slash := strings.Cut(name, "/")
	word = strings.ToLower(word)
	switch {
	case !slices.Contains(provider.Names(p.APIs), word):
		err = p.unknownModel(name, profiles)
	case slash && (model == "" || strings.ContainsFunc(model, unicode.IsSpace)):
		err = fault.New(fault.ArgError, "%q names no model after the slash", name).
			Hint("omniagent models list lists what can be asked here")
	}
	return nil, word, model, err
}

// unknownModel returns the fault for a name of no profile or provider, with the names that exist.
func (p commands) unknownModel(name string, profiles provider.Profiles) error {
	var names []string
	for _, one := range profiles.All {
		if one.Name != "" {
			names = append(names, one.Name)
		}
	}
	names = append(names, provider.Names(p.APIs)...)
	f := fault.New(fault.ArgError, "there is no profile or provider %q", name).With("choices", names)
	if near := text.Nearest(name, names); near != "" {
		return f.Hint("Did you mean %s? There are %s.", near, strings.Join(names, ", "))
	}
	return f.Hint("Choose one of %s, or PROVIDER/MODEL.", strings.Join(names, ", "))
}

// modelChange is a change of the user's files by models use.
type modelChange struct {
	c    *contract.Call
	data modelUsed
}

// profile makes a profile the active one.
func (u *modelChange) profile(ctx context.Context, home string, one provider.Profile) error {
	file, was, err := provider.Activate(ctx, home, one, u.c.DryRun())
	if err != nil {
		return err
	}
	if u.data.Was = contract.OrNil(was); was != one.Name {
		u.data.Changed = append(u.data.Changed, file+": models.active")
	}
	for _, key := range []string{parts.ProviderKey, parts.ModelKey, parts.BaseKey} {
		if err := u.set(ctx, key, ""); err != nil {
			return err
		}
	}
	return nil
}

// provider writes the provider and the model into the user's configuration. If the provider changes, it removes the
// address, which is that of the earlier one.
func (u *modelChange) provider(ctx context.Context) error {
	was, err := config.Peek(u.edit(parts.ProviderKey))
	if err != nil {
		return err
	}
	u.data.Was = contract.OrNil(was)
	if was != u.data.Provider {
		if err := u.set(ctx, parts.BaseKey, ""); err != nil {
			return err
		}
	}
	model := ""
	if u.data.Model != nil {
		model = *u.data.Model
	}
	if err := u.set(ctx, parts.ModelKey, model); err != nil {
		return err
	}
	return u.set(ctx, parts.ProviderKey, u.data.Provider)
}

func (u *modelChange) edit(key string) config.Edit {
	return config.Edit{
		File: u.c.Paths.UserConfig(), Key: key, Keys: u.c.Program.ConfigKeys(), Wait: u.c.LockWait(),
		LockDir: u.c.LockDir(),
	}
}

// set writes a setting. An empty value removes it.
func (u *modelChange) set(ctx context.Context, key, value string) error {
	e := u.edit(key)
	was, err := config.Peek(e)
	if err != nil || was == value {
		return err
	}
	u.data.Changed = append(u.data.Changed, e.File+": "+key)
	if u.c.DryRun() {
		return nil
	}
	if e.Value = value; value == "" {
		_, _, err = config.Remove(ctx, e)
	} else {
		_, _, err = config.Write(ctx, e)
	}
	return err
}

// shadows warns of settings that take precedence over the user's own files.
func (u *modelChange) shadows(profiles provider.Profiles) {
	for _, key := range []string{parts.ProviderKey, parts.ModelKey, parts.BaseKey} {
		v, ok := u.c.Config.Lookup(key)
		if layer := parts.LayerOf(u.c, v); ok && (layer == provider.Environment || layer == provider.Project) {
			u.c.Warn("VALUE_SHADOWED", "%s is set by %s, which wins", key, v.Source)
		}
	}
	if profiles.Project != "" {
		u.c.Warn("VALUE_SHADOWED", "models.active is set by %s, which wins", profiles.Project)
	}
}
