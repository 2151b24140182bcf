package copilot

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
)

// rehearse points the CLI to a model on this machine. It adds the files of the private home, and removes the variables
// that would lead elsewhere: to another provider, a GitHub login, telemetry.
//
// The CLI always repeats a failed request five times, which takes 6 to 17 seconds.
func rehearse(t *cli.Translation, s agent.Spec) {
	r := s.Rehearsal
	home := filepath.Join(r.Home, ".copilot")
	t.Env = append(t.Env,
		"HOME="+r.Home, "USERPROFILE="+r.Home, "COPILOT_HOME="+home, "COPILOT_CACHE_HOME="+filepath.Join(r.Home,
			".cache", "copilot"),
		"COPILOT_PROVIDER_BASE_URL="+strings.TrimSuffix(r.URL, "/")+"/v1", "COPILOT_PROVIDER_API_KEY="+r.Key,
		"COPILOT_AUTO_UPDATE=false", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
	)
	if cache := packages(s.Env); cache != "" {
		// The CLI unpacks 235 MB of itself there. Without this it would unpack them again in the private home.
		t.Env = append(t.Env, "COPILOT_PKG_CACHE_HOME="+cache)
	}
	if s.Shared.Web.Value {
		t.Args = append(t.Args, "--disable-client-telemetry") // the offline switch would remove the web tool
		t.Unset = append(t.Unset, "COPILOT_OFFLINE")
	} else {
		t.Env = append(t.Env, "COPILOT_OFFLINE=true")
	}
	if s.Shared.Model.Value == "" && r.Model != "" && !cli.Passed(s.Passthrough, modelFlag) {
		t.Args = append(t.Args, modelFlag, r.Model)
	}
	t.Unset = append(t.Unset, cli.Matching(s.Env, "COPILOT_PROVIDER*", "COPILOT_OTEL_*", "OTEL_*",
		"COPILOT_PROMPT_MODE_*",
		"COPILOT_MODEL", "COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "GITHUB_COPILOT_TOKEN", "COPILOT_API_URL",
		"COPILOT_GH_HOST", "GH_HOST")...)
	file := func(name string, v any) agent.File {
		data, _ := json.Marshal(v) // strings always encode
		return agent.File{Path: filepath.Join(home, name), Data: append(data, '\n'), Keep: true}
	}
	config := map[string]any{"appTipShown": true}
	if s.Mode == setting.Interactive {
		// One-shot runs do not ask for trust. With it they would start the repository's own programs.
		config["trustedFolders"] = slices.Compact([]string{s.Dir, pathname.Real(s.Dir)})
	}
	t.Files = []agent.File{
		file("config.json", config),
		file("settings.json", map[string]any{"banner": "never", "showTipsOnStartup": false, "autoUpdate": false}),
	}
}

// packages returns the user's own cache of the CLI's unpacked programs.
func packages(env []string) string {
	if dir := cli.First(env, "COPILOT_PKG_CACHE_HOME", "COPILOT_CACHE_HOME"); dir != "" {
		return dir
	}
	home, cache := cli.First(env, "HOME"), ""
	switch runtime.GOOS {
	case "windows":
		home, cache = "", cli.First(env, "LOCALAPPDATA")
	case "darwin":
		home = filepath.Join(home, "Library", "Caches")
	default:
		home, cache = filepath.Join(home, ".cache"), cli.First(env, "XDG_CACHE_HOME")
	}
	if cache = cmp.Or(cache, home); !filepath.IsAbs(cache) {
		return ""
	}
	return filepath.Join(cache, "copilot")
}
