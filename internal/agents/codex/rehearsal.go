package codex

import (
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
)

const (
	provider = "omniagent"
	keyName  = "OMNIAGENT_REHEARSAL_KEY" // the variable with the key of our provider
)

// rehearse points Codex to our model server. It uses flags, because a repository's settings cannot override those. The
// file in the private home has only settings that flags cannot express.
func rehearse(t *cli.Translation, s agent.Spec, p passed) {
	r := s.Rehearsal
	// The built-in provider would first try another kind of connection for seven seconds.
	t.Args = append(t.Args,
		"-c", "model_provider="+literal.QuoteTOML(provider),
		"-c", "model_providers."+provider+`={name="rehearsal",base_url=`+literal.QuoteTOML(r.URL+"/v1")+
			`,env_key=`+literal.QuoteTOML(keyName)+
			`,wire_api="responses",request_max_retries=0,stream_max_retries=0}`,
		"-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false", "-c", "features.plugins=false",
	)
	if s.Shared.Model.Value == "" && !p.model() {
		t.Args = append(t.Args, config("model", r.Model)...)
	}
	if s.Mode == setting.Interactive && !p.has("--no-daemon", "--remote") {
		t.Args = append(t.Args, "--no-daemon") // otherwise a server may remain
	}
	home := filepath.Join(r.Home, ".codex")
	t.Env = append(t.Env, "HOME="+r.Home, "USERPROFILE="+r.Home, "CODEX_HOME="+home, keyName+"="+r.Key,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	settings := "" // an empty file is written too, because its directory has to exist
	if s.Mode == setting.Interactive && !configured(s.Dir) {
		// This answers the question about trust, which -c cannot. exec never asks, and its check for a repository
		// ignores trust, so there the directory stays untrusted.
		settings = trust(s.Dir)
		if real := pathname.Real(s.Dir); real != filepath.Clean(s.Dir) {
			settings += trust(real)
		}
	}
	t.Files = append(t.Files, agent.File{Path: filepath.Join(home, "config.toml"), Data: []byte(settings), Keep: true})
	t.Unset = privateVariables()
}

func trust(dir string) string {
	return "[projects." + literal.QuoteTOML(filepath.Clean(dir)) + "]\ntrust_level = \"trusted\"\n"
}

// configured reports whether a repository has settings for Codex. Trusted settings start MCP servers outside the
// sandbox, so a person has to decide, even in a rehearsal.
func configured(dir string) bool {
	for at := range cli.Upward(pathname.Real(dir)) {
		if cli.Exists(at, ".codex") {
			return true
		}
		if cli.Exists(at, ".git") {
			break
		}
	}
	return false
}

// privateVariables returns the variables that would lead a rehearsal out of its private home, or give it the user's
// keys.
func privateVariables() []string {
	return []string{"CODEX_SQLITE_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"}
}
