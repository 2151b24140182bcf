package claude

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
)

// rehearse points the CLI to a model on this machine. It adds the files of the private home, and removes the variables
// that would lead elsewhere: to another provider, another login, other models, a proxy.
func rehearse(t *cli.Translation, s agent.Spec) {
	r := s.Rehearsal
	home := filepath.Join(r.Home, ".claude")
	t.Env = append(t.Env,
		"HOME="+r.Home, "USERPROFILE="+r.Home, "CLAUDE_CONFIG_DIR="+home,
		"ANTHROPIC_BASE_URL="+r.URL, "ANTHROPIC_API_KEY="+r.Key,
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_MAX_RETRIES=0",
	)
	args := append(slices.Clone(t.Args), s.Passthrough...)
	if s.Machine.Root && bypasses(args) {
		t.Env = append(t.Env, "IS_SANDBOX=1")
	}
	if s.Shared.Model.Value == "" && r.Model != "" && !cli.Passed(s.Passthrough, "--model") {
		t.Args = append(t.Args, "--model", known(r.Model))
	}
	// A repository's settings may name another base URL. Those on the command line take precedence.
	t.Args = withSettings(t.Args, "env", map[string]any{"ANTHROPIC_BASE_URL": r.URL})
	t.Unset = cli.Matching(s.Env, "ANTHROPIC_*", "CLAUDE_CODE_USE_*", "CLAUDE_CODE_OAUTH*",
		"CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SKIP_PROMPT_HISTORY")
	t.Files = []agent.File{{Path: filepath.Join(home, ".claude.json"), Data: seed(s), Keep: true}}
}

// known returns a model name that the CLI does not warn about on stderr. The scripted model answers to any name.
func known(model string) string {
	if strings.HasPrefix(model, "claude-") {
		return model
	}
	return "opus"
}

// withSettings adds members to an object of the settings in the arguments, or adds settings.
func withSettings(args []string, name string, members map[string]any) []string {
	for i, arg := range args {
		var all map[string]any
		if text, ok := strings.CutPrefix(arg, settings+"="); ok && json.Unmarshal([]byte(text), &all) == nil {
			object, _ := all[name].(map[string]any)
			if object == nil {
				object = map[string]any{}
			}
			maps.Copy(object, members)
			all[name] = object
			args[i] = settings + "=" + encode(all)
			return args
		}
	}
	return append(args, settings+"="+encode(map[string]any{name: members}))
}

// seed returns the state of a user who has answered the questions of the first start. It trusts the directory only for
// interactive runs: one-shot runs never ask for trust, and with it they would obey more of the repository's files.
func seed(s agent.Spec) []byte {
	key := s.Rehearsal.Key
	state := map[string]any{
		"hasCompletedOnboarding":        true,
		"lastOnboardingVersion":         measured,
		"theme":                         "dark",
		"bypassPermissionsModeAccepted": true,
		"autoUpdates":                   false,
		"customApiKeyResponses": map[string]any{
			"approved": []string{key[max(0, len(key)-20):]},
			"rejected": []string{},
		},
	}
	if s.Mode == setting.Interactive && s.Dir != "" {
		trusted := map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}
		state["projects"] = map[string]any{s.Dir: trusted, pathname.Real(s.Dir): trusted}
	}
	return []byte(encode(state))
}
