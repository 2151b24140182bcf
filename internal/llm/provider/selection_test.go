package provider

import (
	"errors"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
)

// kept are stored keys.
type kept map[string]string

func (k kept) Has(name string) bool { return k[name] != "" }

func (k kept) Get(name string) (key, from string, err error) { return k[name], "the keyring", nil }

func TestWishes(t *testing.T) {
	t.Parallel()
	profile := Profile{
		Name: "p", Vendor: "siliconflow", Model: "m", Kind: "openai", Base: "https://h/v1", Key: Hide(canary),
		Layer: User, Protocol: "xnl",
	}
	change := func(f func(*Profile)) Selection {
		p := profile
		f(&p)
		return p.Selection()
	}
	record := Selection{Provider: "openai", Model: "r", Base: "http://127.0.0.1:7/v1", Layer: Flag, From: "the record"}
	settings := Selection{Provider: "gemini", Model: "g", Layer: User, From: "native.provider"}
	key := "=" + canary
	for name, c := range map[string]struct {
		o                              Options
		provider, model, url, how, log string
	}{
		"profile": {
			Options{
				Selections: []Selection{profile.Selection()},
				Lookup:     env("ANTHROPIC_API_KEY=x", "OPENAI_BASE_URL=https://other"),
			},
			OpenAI, "m", "https://h/v1", "the profile p", "the key of the profile p",
		},
		"the variable replaces its key": {
			Options{
				Selections: []Selection{profile.Selection()},
				Lookup:     env("SILICONFLOW_API_KEY"+key, "SILICONFLOW_TOKEN=x"),
			},
			OpenAI, "m", "https://h/v1", "the profile p", "the key in SILICONFLOW_API_KEY",
		},
		"the second variable": {
			Options{Selections: []Selection{profile.Selection()}, Lookup: env("SILICONFLOW_TOKEN" + key)},
			OpenAI, "m", "https://h/v1", "the profile p", "the key in SILICONFLOW_TOKEN",
		},
		"another vendor keeps its own key": {
			Options{
				Selections: []Selection{change(func(p *Profile) { p.Vendor = "minimax" })},
				Lookup:     env("SILICONFLOW_API_KEY=x"),
			},
			OpenAI, "m", "https://h/v1", "the profile p", "the key of the profile p",
		},
		"a vendor without a name of ours, on this machine": {
			Options{
				Selections: []Selection{change(func(p *Profile) { p.Vendor, p.Base = "x", "http://127.0.0.1:3" })},
				Lookup:     env("SILICONFLOW_API_KEY" + key),
			},
			OpenAI, "m", "http://127.0.0.1:3", "the profile p", "the key in SILICONFLOW_API_KEY",
		},
		"a stored key of the vendor": {
			Options{
				Selections: []Selection{change(func(p *Profile) { p.Vendor, p.Key = "minimax", Secret{} })},
				Keys:       kept{"minimax": canary}, Lookup: env("OPENAI_API_KEY=x"),
			},
			OpenAI, "m", "https://h/v1", "the profile p", "the key for minimax in the keyring",
		},
		"the vendor's own address takes its usual key": {
			Options{
				Selections: []Selection{change(func(p *Profile) { p.Kind, p.Base, p.Key = "anthropic", "", Secret{} })},
				Lookup:     env("ANTHROPIC_API_KEY" + key),
			},
			Anthropic, "m", "https://api.anthropic.com", "the profile p", "the key in ANTHROPIC_API_KEY",
		},
		"a typed model": {
			Options{Model: "n", Selections: []Selection{profile.Selection()}},
			OpenAI, "n", "https://h/v1", "the profile p", "the key of the profile p",
		},
		"a typed provider sets a profile aside": {
			Options{
				Provider: "openai", Selections: []Selection{profile.Selection()},
				Lookup: env("OPENAI_API_KEY" + key),
			},
			OpenAI, Default(OpenAI), "https://api.openai.com/v1", "--provider", "the key in OPENAI_API_KEY",
		},
		"the key of a profile stays with its address": {
			Options{Base: "http://127.0.0.1:5/v1", Selections: []Selection{profile.Selection()}},
			OpenAI, "m", "http://127.0.0.1:5/v1", "the profile p", "no key: the server is on this machine",
		},
		"the record before the configuration": {
			Options{Selections: []Selection{record, settings, profile.Selection()}},
			OpenAI, "r", "http://127.0.0.1:7/v1", "the record", "no key: the server is on this machine",
		},
		"the configuration before a profile": {
			Options{Selections: []Selection{settings, profile.Selection()}, Lookup: env("GEMINI_API_KEY" + key)},
			Gemini, "g", "https://generativelanguage.googleapis.com", "native.provider", "the key in GEMINI_API_KEY",
		},
		"a typed provider that the configuration is about": {
			Options{Provider: "openai", Selections: []Selection{record}},
			OpenAI, "r", "http://127.0.0.1:7/v1", "--provider", "no key: the server is on this machine",
		},
		"a typed provider that it is not about": {
			Options{Provider: "openai", Selections: []Selection{settings}, Lookup: env("OPENAI_API_KEY" + key)},
			OpenAI, Default(OpenAI), "https://api.openai.com/v1", "--provider", "the key in OPENAI_API_KEY",
		},
		"a configured model alone": {
			Options{
				Selections: []Selection{{Model: "claude-x", Layer: User, From: "native.model"}},
				Lookup:     env("ANTHROPIC_API_KEY" + key),
			},
			Anthropic, "claude-x", "https://api.anthropic.com", "ANTHROPIC_API_KEY in the environment",
			"the key in ANTHROPIC_API_KEY",
		},
		"an address of the environment that has changed since": {
			Options{
				Selections: []Selection{
					{Provider: "openai", Model: "m", Base: "http://127.0.0.1:1", Layer: Environment},
				},
				Lookup: env("OPENAI_BASE_URL=http://127.0.0.1:2"),
			},
			OpenAI, "m", "http://127.0.0.1:2", "", "no key: the server is on this machine",
		},
		"a local address of a project gets no key": {
			Options{
				Selections: []Selection{{Provider: "openai", Model: "m", Base: "http://127.0.0.1:1", Layer: Project}},
				Lookup:     env("OPENAI_API_KEY=x"),
			},
			OpenAI, "m", "http://127.0.0.1:1", "", "no key: the server is on this machine",
		},
		"a project's own key": {
			Options{
				Selections: []Selection{change(func(p *Profile) { p.Layer = Project })},
				Lookup:     env("SILICONFLOW_TOKEN=x"),
			},
			OpenAI, "m", "https://h/v1", "the profile p", "the key of the profile p",
		},
		"a stored key alone": {
			Options{Keys: kept{"anthropic": canary}},
			Anthropic, Default(Anthropic), "https://api.anthropic.com", "the stored key for anthropic",
			"the key for anthropic in the keyring",
		},
		"a variable before a stored key": {
			Options{Keys: kept{"openai": "x"}, Lookup: env("OPENAI_API_KEY" + key)},
			OpenAI, Default(OpenAI), "https://api.openai.com/v1", "OPENAI_API_KEY in the environment",
			"the key in OPENAI_API_KEY",
		},
		"eidolon's own vendor alone": {
			Options{Lookup: env("SILICONFLOW_TOKEN" + key)},
			OpenAI, "minimax-m2", "https://api.siliconflow.cn/v1", "SILICONFLOW_TOKEN in the environment",
			"the key in SILICONFLOW_TOKEN",
		},
		"eidolon's own vendor, stored": {
			Options{Keys: kept{"siliconflow": canary}},
			OpenAI, "minimax-m2", "https://api.siliconflow.cn/v1", "the stored key for siliconflow",
			"the key for siliconflow in the keyring",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got.Provider != c.provider || got.Model != c.model || got.Endpoint.URL != c.url || got.How != c.how ||
				got.Login != c.log {
				t.Errorf("got %s %s %s, by %s, with %s", got.Provider, got.Model, got.Endpoint.URL, got.How, got.Login)
			}
			secret := got.credential.key.reveal() + got.credential.token.reveal()
			if want := map[bool]string{true: "", false: canary}[strings.HasPrefix(c.log, "no key")]; secret != want {
				t.Errorf("the credential is %q, not %q", secret, want)
			}
		})
	}
}

func TestWishesThatAreRefused(t *testing.T) {
	t.Parallel()
	base := Selection{Provider: "openai", Model: "m", Base: "https://h/v1", From: "native.api_base"}
	of := func(l Layer) Selection { base.Layer = l; return base }
	bare := Profile{Name: "p", Vendor: "minimax", Model: "m", Kind: "openai", Base: "https://h/v1"}
	for name, c := range map[string]struct {
		o    Options
		code fault.Code
		says []string
	}{
		"a project's address": {
			Options{Selections: []Selection{of(Project)}, Lookup: env("OPENAI_API_KEY=" + canary)},
			fault.PermissionDenied,
			[]string{"OPENAI_API_KEY", "https://h/v1", "--api-base"},
		},
		"a stored key to a project's address": {
			Options{Selections: []Selection{of(Project)}, Keys: kept{"openai": canary}},
			fault.PermissionDenied,
			[]string{"openai", "--api-base"},
		},
		"a project's profile gets no key of the user's": {
			Options{
				Selections: []Selection{bare.Selection()}, Keys: kept{"minimax": canary},
				Lookup: env("SILICONFLOW_API_KEY="+canary, "OPENAI_API_KEY="+canary),
			},
			fault.AuthRequired,
			[]string{"the profile p", "omniagent login minimax"},
		},
		"eidolon's vendor gets the key of no other": {
			Options{Selections: []Selection{EidolonDefault()}, Lookup: env("OPENAI_API_KEY=" + canary)},
			fault.AuthRequired,
			[]string{"omniagent login siliconflow"},
		},
		"an unknown provider": {
			Options{Selections: []Selection{{Provider: "opnai", From: "native.provider in a file"}}},
			fault.ArgError,
			[]string{"native.provider in a file", "openai"},
		},
		"a key and a stored key of two vendors": {
			Options{Keys: kept{"anthropic": canary}, Lookup: env("OPENAI_API_KEY=" + canary)},
			fault.MissingArgument,
			[]string{"OPENAI_API_KEY in the environment", "the stored key for anthropic", "models use"},
		},
		"eidolon's vendor and another": {
			Options{Lookup: env("OPENAI_API_KEY="+canary, "SILICONFLOW_API_KEY="+canary)},
			fault.MissingArgument,
			[]string{"SILICONFLOW_API_KEY", "OPENAI_API_KEY"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(c.o)
			if !errors.Is(err, c.code) {
				t.Fatalf("got %+v, %v", got, err)
			}
			text := fault.Of(err).Error() + " " + fault.Of(err).Suggestion
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in %q", want, text)
				}
			}
			if strings.Contains(text, canary) {
				t.Errorf("a secret is told: %s", text)
			}
		})
	}
}
