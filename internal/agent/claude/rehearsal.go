package claude

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/setting"
)

// rehearse points the CLI to a model on this machine. It returns the files of the private home and the variables that
// would lead elsewhere: another provider, another login, other models, a proxy.
func rehearse(t *cli.Translation, s agent.Spec) (files []agent.File, remove []string) {
	r := s.Rehearsal
	home := filepath.Join(r.Home, ".claude")
	t.Env = append(t.Env,
		"HOME="+r.Home, "USERPROFILE="+r.Home, "CLAUDE_CONFIG_DIR="+home,
		"ANTHROPIC_BASE_URL="+r.URL, "ANTHROPIC_API_KEY="+r.Key,
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
		"DISABLE_ERROR_REPORTING=1",
	)
	if !r.Patient {
		t.Env = append(t.Env, "CLAUDE_CODE_MAX_RETRIES=0")
	}
	args := append(slices.Clone(t.Args), s.Passthrough...)
	if s.Machine.Root && bypasses(args) {
		t.Env = append(t.Env, "IS_SANDBOX=1")
	}
	if s.Shared.Model.Value == "" && r.Model != "" && !cli.Passed(s.Passthrough, "--model") {
		t.Args = append(t.Args, "--model", known(r.Model))
	}
	// A repository's settings may name another base URL. Those on the command line are stronger.
	t.Args = withSettings(t.Args, "env", map[string]any{"ANTHROPIC_BASE_URL": r.URL})
	for _, entry := range s.Env {
		name, _, _ := strings.Cut(entry, "=")
		if diverts(name) && !slices.Contains(remove, name) {
			remove = append(remove, name)
		}
	}
	return []agent.File{{Path: filepath.Join(home, ".claude.json"), Data: seed(s), Keep: true}}, remove
}

// known is a name that the CLI does not warn of on stderr: the scripted model answers to any.
func known(model string) string {
	if strings.HasPrefix(model, "claude-") {
		return model
	}
	return "opus"
}

// diverts says whether a variable leads the CLI to another provider or login.
func diverts(name string) bool {
	switch {
	case strings.HasPrefix(name, "ANTHROPIC_"), strings.HasPrefix(name, "CLAUDE_CODE_USE_"), strings.HasPrefix(name,
		"CLAUDE_CODE_OAUTH"):
		return true
	}
	return name == "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR" || name == "CLAUDE_CODE_SIMPLE" ||
		name == "CLAUDE_CODE_SKIP_PROMPT_HISTORY"
}

// withSettings adds a member to the settings among the arguments, or settings with it.
func withSettings(args []string, name string, value any) []string {
	for i, arg := range args {
		var all map[string]any
		if text, ok := strings.CutPrefix(arg, settings+"="); ok && json.Unmarshal([]byte(text), &all) == nil {
			all[name] = value
			args[i] = settings + "=" + encode(all)
			return args
		}
	}
	return append(args, settings+"="+encode(map[string]any{name: value}))
}

// seed is the state of somebody who has answered the questions of a first start. The directory is trusted in
// interactive runs alone: one-shot runs never ask, and trust would let them take more from the repository.
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
		projects := map[string]any{s.Dir: trusted}
		if real, err := filepath.EvalSymlinks(s.Dir); err == nil {
			projects[real] = trusted
		}
		state["projects"] = projects
	}
	return []byte(encode(state))
}
