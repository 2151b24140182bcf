package codex

import (
	"os"
	"path/filepath"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/setting"
)

const (
	provider = "omniagent"
	keyName  = "OMNIAGENT_REHEARSAL_KEY" // the variable from which Codex takes the key of our provider
)

// rehearse points Codex to our model server. The server is named in flags, which no repository's settings can override;
// the file in the private home says only what flags cannot.
func rehearse(t *cli.Translation, s agent.Spec, p passed) []agent.File {
	r := s.Rehearsal
	retries := ""
	if !r.Patient {
		retries = ",request_max_retries=0,stream_max_retries=0"
	}
	// A provider of its own: the built-in one tries a connection of another kind first, for seven seconds.
	t.Args = append(t.Args,
		"-c", "model_provider="+quote(provider),
		"-c", "model_providers."+provider+`={name="rehearsal",base_url=`+quote(r.URL+"/v1")+`,env_key=`+quote(keyName)+
			`,wire_api="responses"`+retries+"}",
		"-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false", "-c", "features.plugins=false",
	)
	if s.Shared.Model.Value == "" && !p.model() {
		t.Args = append(t.Args, config("model", r.Model)...)
	}
	if s.Mode == setting.Interactive && !p.has("--no-daemon", "--remote") {
		t.Args = append(t.Args, "--no-daemon") // or a server may stay behind
	}
	home := filepath.Join(r.Home, ".codex")
	t.Env = append(t.Env, "HOME="+r.Home, "USERPROFILE="+r.Home, "CODEX_HOME="+home, keyName+"="+r.Key,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost")
	settings := "" // The file is written all the same: its directory has to exist.
	if s.Mode == setting.Interactive && !configured(s.Dir) {
		// The question about trust is answered beforehand; a -c does not do that. exec asks nothing, and its own check
		// for a repository is not moved by trust, so there the directory stays as untrusted as it is.
		settings = trust(s.Dir)
		if r := real(s.Dir); r != filepath.Clean(s.Dir) {
			settings += trust(r)
		}
	}
	return []agent.File{{Path: filepath.Join(home, "config.toml"), Data: []byte(settings), Keep: true}}
}

func trust(dir string) string {
	return "[projects." + quote(filepath.Clean(dir)) + "]\ntrust_level = \"trusted\"\n"
}

// configured says whether a repository brings settings for Codex. Trusted, they start MCP servers outside of the
// sandbox: then a person has to answer, in a rehearsal as well.
func configured(dir string) bool {
	for dir = real(dir); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".codex")); err == nil {
			return true
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			return false
		}
	}
}

// privateVariables are those which would lead a rehearsal out of its private home, or give it the user's keys.
func privateVariables() []string {
	return []string{"CODEX_SQLITE_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN"}
}
