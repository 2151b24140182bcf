package opencode

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

// rehearse points the CLI to our model server: it adds a provider of a built-in kind, and a private home. It removes
// the variables that would lead the CLI elsewhere. The CLI's retries cannot be turned off, but they obey the server's
// Retry-After-Ms.
func rehearse(t *cli.Translation, s agent.Spec) {
	r := s.Rehearsal
	provider, model := "rehearsal", r.Model
	chosen := s.Shared.Model.Value
	if passed, ok := cli.PassedValue(s.Passthrough, "--model", "-m"); ok {
		chosen = passed
	}
	if p, m, ok := strings.Cut(chosen, "/"); ok {
		provider, model = p, m // serve the model that a person chose
	}
	t.Env = append(t.Env,
		"HOME="+r.Home,
		"USERPROFILE="+r.Home,
		"XDG_CONFIG_HOME="+filepath.Join(r.Home, ".config"),
		"XDG_DATA_HOME="+filepath.Join(r.Home, ".local", "share"),
		"XDG_STATE_HOME="+filepath.Join(r.Home, ".local", "state"),
		"XDG_CACHE_HOME="+filepath.Join(r.Home, ".cache"),
		"OPENCODE_DISABLE_AUTOUPDATE=1",
		"OPENCODE_DISABLE_MODELS_FETCH=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_SHARE=1",
		"OPENCODE_CONFIG_CONTENT="+content(r, provider, model),
		// If a shortened conversation is still too long, the CLI shortens it and asks again forever.
		"OPENCODE_DISABLE_AUTOCOMPACT=1",
	)
	t.Unset = []string{
		"OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_DB", "OPENCODE_AUTH_CONTENT",
		"OPENCODE_SERVER_PASSWORD", "OPENCODE_MODELS_PATH", "OPENCODE_MODELS_URL",
	}
}

// content returns the configuration that overrides all others. It disables the agent named title, which would make a
// second request.
func content(r *agent.Rehearsal, provider, model string) string {
	type object = map[string]any
	data, _ := json.Marshal(object{ // strings and booleans always encode
		"model":       provider + "/" + model,
		"small_model": provider + "/" + model,
		"autoupdate":  false,
		"share":       "disabled",
		"agent":       object{"title": object{"disable": true}},
		"provider": object{provider: object{
			"npm": "@ai-sdk/openai-compatible", "name": "rehearsal",
			"options": object{"baseURL": strings.TrimSuffix(r.URL, "/") + "/v1", "apiKey": r.Key},
			"models":  object{model: object{"name": model}},
		}},
	})
	return string(data)
}
