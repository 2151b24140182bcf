package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

const canary = "canary-5f1b2c"

// env is an environment of pairs.
func env(pairs ...string) func(string) (string, bool) {
	all := map[string]string{}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		all[name] = value
	}
	return func(name string) (string, bool) { value, ok := all[name]; return value, ok }
}

// executable puts a script of that name into a directory and returns the directory.
func executable(t *testing.T, name, script string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell script")
	}
	dir := t.TempDir()
	if err := hermetic.WriteProgram(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestChoose(t *testing.T) {
	t.Parallel()
	key := "=" + canary
	for name, c := range map[string]struct {
		o                              Options
		provider, model, url, how, log string
	}{
		"one key": {
			Options{Lookup: env("ANTHROPIC_API_KEY" + key)},
			Anthropic, Default(Anthropic), "https://api.anthropic.com", "ANTHROPIC_API_KEY in the environment",
			"the key in ANTHROPIC_API_KEY",
		},
		"one token": {
			Options{Lookup: env("ANTHROPIC_AUTH_TOKEN" + key)},
			Anthropic, Default(Anthropic),
			"https://api.anthropic.com", "ANTHROPIC_AUTH_TOKEN in the environment",
			"the token in ANTHROPIC_AUTH_TOKEN",
		},
		"two of one": {
			Options{Lookup: env("ANTHROPIC_AUTH_TOKEN"+key, "ANTHROPIC_API_KEY=x")},
			Anthropic,
			Default(Anthropic), "https://api.anthropic.com", "ANTHROPIC_AUTH_TOKEN in the environment",
			"the token in ANTHROPIC_AUTH_TOKEN",
		},
		"openai": {
			Options{Lookup: env("OPENAI_API_KEY" + key)},
			OpenAI, Default(OpenAI),
			"https://api.openai.com/v1", "OPENAI_API_KEY in the environment", "the key in OPENAI_API_KEY",
		},
		"gemini": {
			Options{Lookup: env("GEMINI_API_KEY" + key)},
			Gemini, Default(Gemini),
			"https://generativelanguage.googleapis.com", "GEMINI_API_KEY in the environment",
			"the key in GEMINI_API_KEY",
		},
		"both of Google": {
			Options{Lookup: env("GEMINI_API_KEY=x", "GOOGLE_API_KEY"+key)},
			Gemini, Default(Gemini),
			"https://generativelanguage.googleapis.com", "GOOGLE_API_KEY in the environment",
			"the key in GOOGLE_API_KEY",
		},
		"empty is not set": {
			Options{Lookup: env("OPENAI_API_KEY= ", "GEMINI_API_KEY"+key)},
			Gemini, Default(Gemini),
			"https://generativelanguage.googleapis.com", "GEMINI_API_KEY in the environment",
			"the key in GEMINI_API_KEY",
		},
		"codex": {
			Options{Provider: "Codex", Lookup: env("OPENAI_API_KEY" + key)},
			Codex, Default(Codex),
			"https://api.openai.com/v1", "--provider", "the key in OPENAI_API_KEY",
		},
		"claude": {
			Options{
				Provider: "claude", Model: "claude-x", Lookup: env("ANTHROPIC_API_KEY"+key, "OPENAI_API_KEY=x"),
			},
			Anthropic, "claude-x",
			"https://api.anthropic.com", "--provider", "the key in ANTHROPIC_API_KEY",
		},
		"typed address": {
			Options{
				Provider: "openai", Model: "m", Base: "https://h/x//",
				Lookup: env("OPENAI_API_KEY"+key, "OPENAI_BASE_URL=https://other/v1"),
			},
			OpenAI, "m", "https://h/x",
			"--provider", "the key in OPENAI_API_KEY",
		},
		"kept query": {
			Options{
				Provider: "openai", Model: "m", Base: "https://h/openai/?api-version=1",
				Lookup: env("OPENAI_API_KEY" + key),
			},
			OpenAI, "m", "https://h/openai?api-version=1", "--provider",
			"the key in OPENAI_API_KEY",
		},
		"address of env": {
			Options{
				Provider: "anthropic",
				Lookup:   env("ANTHROPIC_API_KEY"+key, "ANTHROPIC_BASE_URL=https://gate/anthropic"),
			},
			Anthropic,
			Default(Anthropic), "https://gate/anthropic", "--provider", "the key in ANTHROPIC_API_KEY",
		},
		"local needs none": {
			Options{Provider: "openai", Model: "m", Base: "http://127.0.0.1:1/v1", Lookup: env()},
			OpenAI, "m", "http://127.0.0.1:1/v1", "--provider", "no key: the server is on this machine",
		},
		"local by variable": {
			Options{Model: "m", Lookup: env("OPENAI_BASE_URL=http://localhost:1/v1/")},
			OpenAI, "m",
			"http://localhost:1/v1", "OPENAI_BASE_URL in the environment", "no key: the server is on this machine",
		},
		"local with a key": {
			Options{Model: "m", Lookup: env("OPENAI_BASE_URL=http://[::1]:1", "OPENAI_API_KEY"+key)},
			OpenAI, "m", "http://[::1]:1", "OPENAI_API_KEY in the environment", "the key in OPENAI_API_KEY",
		},
		"typed http": {
			Options{
				Provider: "openai", Model: "m", Base: "http://10.0.0.5:8000/v1",
				Lookup: env("OPENAI_API_KEY" + key),
			},
			OpenAI, "m", "http://10.0.0.5:8000/v1", "--provider",
			"the key in OPENAI_API_KEY",
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
			printed, _ := json.Marshal(got)
			for _, text := range []string{
				fmt.Sprintf("%v %+v %#v", got, got, got),
				fmt.Sprint(got.credential, got.credential.key), string(printed),
			} {
				if strings.Contains(text, canary) {
					t.Errorf("the key is printed: %s", text)
				}
			}
		})
	}
}

func TestChooseRefuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, c := range map[string]struct {
		o    Options
		code fault.Code
		says []string // in the message or the hint
	}{
		"nothing": {Options{Lookup: env()}, fault.AuthRequired, []string{
			"ANTHROPIC_API_KEY", "OPENAI_API_KEY",
			"GEMINI_API_KEY", "--provider",
		}},
		"only an address": {
			Options{Lookup: env("OPENAI_BASE_URL=https://h/v1")},
			fault.AuthRequired,
			[]string{"no model was chosen"},
		},
		"no lookup": {Options{}, fault.AuthRequired, []string{"OPENAI_API_KEY"}},
		"two": {
			Options{Lookup: env("OPENAI_API_KEY="+canary, "ANTHROPIC_API_KEY="+canary)},
			fault.MissingArgument,
			[]string{
				"OPENAI_API_KEY", "ANTHROPIC_API_KEY",
				"--provider anthropic or --provider openai",
			},
		},
		"missing openai": {
			Options{Provider: "openai", Lookup: env("ANTHROPIC_API_KEY=" + canary)},
			fault.AuthRequired,
			[]string{"OPENAI_API_KEY", "anthropic"},
		},
		"missing codex": {Options{Provider: "codex", Lookup: env()}, fault.AuthRequired, []string{"OPENAI_API_KEY"}},
		"missing claude": {
			Options{Provider: "claude", Lookup: env()},
			fault.AuthRequired,
			[]string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"},
		},
		"missing gemini": {
			Options{Provider: "gemini", Lookup: env("PATH=" + empty), Home: empty},
			fault.AuthRequired,
			[]string{"GEMINI_API_KEY", "gcloud"},
		},
		"unknown": {Options{Provider: "opnai", Lookup: env()}, fault.ArgError, []string{"opnai", "openai"}},
		"a program is listed": {
			Options{Provider: "nosuch", Agents: []string{"copilot"}, Lookup: env()},
			fault.ArgError,
			[]string{"anthropic, openai, codex, gemini, copilot"},
		},
		"copilot": {
			Options{Provider: "copilot", Agents: []string{"copilot"}, Lookup: env()},
			fault.ArgError,
			[]string{"--agent copilot"},
		},
		"local model": {
			Options{Provider: "openai", Base: "http://127.0.0.1:1", Lookup: env()},
			fault.MissingArgument,
			[]string{"--model"},
		},
		"plain http": {
			Options{
				Provider: "anthropic",
				Lookup:   env("ANTHROPIC_API_KEY="+canary, "ANTHROPIC_BASE_URL=http://gate"),
			},
			fault.PermissionDenied,
			[]string{"https", "--api-base"},
		},
		"loopback's name": {
			Options{
				Provider: "anthropic",
				Lookup:   env("ANTHROPIC_API_KEY="+canary, "ANTHROPIC_BASE_URL=http://127.0.0.1.evil.example"),
			},
			fault.PermissionDenied,
			[]string{"https"},
		},
		"remote, no key": {
			Options{Provider: "openai", Model: "m", Base: "https://h/v1", Lookup: env()},
			fault.AuthRequired,
			[]string{"OPENAI_API_KEY", "https://h/v1"},
		},
		"torn key": {
			Options{Provider: "openai", Lookup: env("OPENAI_API_KEY=" + canary + "\nsecond")},
			fault.AuthRequired,
			[]string{"OPENAI_API_KEY"},
		},
		"not a URL": {
			Options{Provider: "openai", Model: "m", Base: "api.example.com/v1", Lookup: env()},
			fault.ArgError,
			[]string{"--api-base", "https://"},
		},
		"password in it": {Options{
			Provider: "openai", Model: "m", Base: "https://u:" + canary + "@h/v1",
			Lookup: env(),
		}, fault.ArgError, []string{"password"}},
		"broken URL": {
			Options{Provider: "openai", Model: "m", Base: "https://" + canary + "%zz", Lookup: env()},
			fault.ArgError,
			[]string{"not a URL"},
		},
		"file": {
			Options{Provider: "openai", Model: "m", Base: "file:///etc/passwd", Lookup: env()},
			fault.ArgError,
			[]string{"https://"},
		},
		"no model's name": {
			Options{Provider: "openai", Model: "a b", Lookup: env("OPENAI_API_KEY=" + canary)},
			fault.ArgError,
			[]string{"a b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(c.o)
			if !errors.Is(err, c.code) {
				t.Fatalf("got %+v, %v", got, err)
			}
			f := fault.Of(err)
			text := f.Error() + " " + f.Suggestion
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in %q", want, text)
				}
			}
			if strings.Contains(fmt.Sprintf("%v %+v %s", err, f.Detail, text), canary) {
				t.Errorf("a secret is told: %s", text)
			}
			if f.Suggestion == "" {
				t.Error("there is no hint")
			}
		})
	}
}

func TestTravel(t *testing.T) {
	t.Parallel()
	for layer := Project; layer <= Builtin; layer++ {
		for from := Project; from <= Environment; from++ {
			for _, url := range []string{"https://h", "http://h", "http://127.0.0.1:1"} {
				err := checkTravel(Credential{Layer: from, Source: "a key", key: Hide(canary)},
					Endpoint{URL: url, Layer: layer, From: "x"})
				want := (url != "http://h" || layer == Flag) && (layer != Project || from == Project)
				if (err == nil) != want {
					t.Errorf("a credential of %v to %s of %v: %v", from, url, layer, err)
				}
			}
		}
	}
	if err := checkTravel(Credential{}, Endpoint{URL: "http://h", Layer: Project}); err != nil {
		t.Errorf("no credential is refused: %v", err)
	}
}

func TestNoteOfModelsWithoutChatTools(t *testing.T) {
	t.Parallel()
	o := Options{Provider: OpenAI, Model: "gpt-6.2-sol", Lookup: env("OPENAI_API_KEY=x")}
	c, err := Choose(o)
	if err != nil || !strings.Contains(strings.Join(c.Notes, ""), "--provider codex") {
		t.Errorf("got %q, %v", c.Notes, err)
	}
	o.Base = "https://gateway/v1"
	if c, err = Choose(o); err != nil || c.Notes != nil || c.Known.Search {
		t.Errorf("at a gateway: got %q, %v", c.Notes, err)
	}
	if apiOf(OpenAI).Advice(Default(OpenAI)) != "" {
		t.Error("the default takes no tools")
	}
}
