package gemini

import (
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/literal"
	"omniagent/internal/setting"
)

// refusals lists why this launch is known to fail.
func refusals(s agent.Spec, l agent.Launch) []agent.Refusal {
	var out []agent.Refusal
	if s.Mode == setting.OneShot && s.Rehearsal == nil && !cli.Passed(s.Passthrough, "--skip-trust", "--skipTrust") &&
		!trusted(s) {
		out = append(out, agent.Refusal{
			Reason: "Gemini CLI does not run unattended in an untrusted directory.",
			Fix: "If its contents may be trusted, add -- --skip-trust; or start the CLI there once without a " +
				"prompt and trust the directory.",
			Codes: []int{55},
		})
	}
	if slices.Contains(l.Args[:l.Translated], sandboxFlag) && contained(s) {
		runtime := "docker"
		if !has(s, runtime) {
			runtime = "podman"
		}
		out = append(out, agent.Refusal{
			Reason: "The sandbox of Gemini CLI needs a container image, and " + runtime + " running.",
			Fix:    "Fetch the image while " + runtime + " runs.", Command: runtime + " pull " + image(s),
			Codes: []int{1, 44}, // 1 where the image cannot be fetched
		})
	}
	if url, ok := cli.Lookup(l.Env, "GOOGLE_GEMINI_BASE_URL"); ok && url != "" && s.Rehearsal == nil &&
		!choseSignIn(s) {
		out = append(out, agent.Refusal{
			Reason: "With GOOGLE_GEMINI_BASE_URL set, Gemini CLI needs a way to sign in that was chosen before.",
			Fix:    `Set security.auth.selectedType to "gemini-api-key" in ~/.gemini/settings.json.`,
			Codes:  []int{41},
		})
	}
	return out
}

func has(s agent.Spec, program string) bool { return s.Machine.Has != nil && s.Machine.Has(program) }

// image is the container image that the CLI would take.
func image(s agent.Spec) string {
	version := s.Install.Version
	if version == "" {
		version = measured
	}
	return lookup(s.Env, "GEMINI_SANDBOX_IMAGE", "us-docker.pkg.dev/gemini-code-dev/gemini-cli/sandbox:"+version)
}

// trusted says whether the CLI takes the directory for trusted. Where a file cannot be read we say so too: a hint after
// a failure that is missing does less harm than one that is wrong.
func trusted(s agent.Spec) bool {
	workspace := lookup(s.Env, "GEMINI_CLI_TRUST_WORKSPACE", "")
	switch {
	case lookup(s.Env, "GEMINI_RESTRICTED_MODE", "") == "true", workspace == "false":
		return false
	case workspace == "true", s.Rehearsal != nil:
		return true
	}
	for i, path := range settingsFiles(s) {
		if i == 1 { // the repository has no say in it
			continue
		}
		if on, ok := member(path, "security", "folderTrust", "enabled"); ok && on.Kind == literal.Bool {
			if !on.Bool {
				return true
			}
			break
		}
	}
	return listed(lookup(s.Env, "GEMINI_CLI_TRUSTED_FOLDERS_PATH", own(s.Env, "trustedFolders.json")), s.Dir)
}

// widening lists what the repository's settings have that lets more be done than the approval says, where the CLI
// follows them. It reads them before --skip-trust, so that alone does not make it.
func widening(s agent.Spec) []string {
	if !trusted(s) {
		return nil
	}
	settings, err := literal.ParseJSON5(head(filepath.Join(s.Dir, ".gemini", "settings.json")))
	if err != nil {
		return nil
	}
	var found []string
	for _, key := range []string{
		"hooks", "mcpServers", "policyPaths", "tools.allowed", "tools.core",
		"tools.discoveryCommand",
	} {
		if _, ok := settings.Lookup(strings.Split(key, ".")...); ok {
			found = append(found, key)
		}
	}
	return found
}

// listed looks the directory up among those that a person decided about. The longest rule that covers it counts.
func listed(file, dir string) bool {
	rules, err := literal.ParseJSON5(head(file))
	if err != nil {
		return false
	}
	longest, trust := -1, false
	for _, rule := range rules.Members {
		path := filepath.Clean(rule.Key)
		if rule.Value.Str == "TRUST_PARENT" {
			path = filepath.Dir(path)
		}
		if len(rule.Key) > longest && beneath(real(path), real(dir)) {
			longest, trust = len(rule.Key), rule.Value.Str != "DO_NOT_TRUST"
		}
	}
	return trust
}

func real(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

func beneath(parent, path string) bool {
	rel, err := filepath.Rel(parent, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// choseSignIn says whether some settings say how to sign in.
func choseSignIn(s agent.Spec) bool {
	return slices.ContainsFunc(settingsFiles(s), func(path string) bool {
		_, chosen := member(path, "security", "auth", "selectedType")
		_, external := member(path, "security", "auth", "useExternal")
		return chosen || external
	})
}

// member reads one value of a settings file, which may have comments.
func member(path string, keys ...string) (literal.Value, bool) {
	all, err := literal.ParseJSON5(head(path))
	if err != nil {
		return literal.Value{}, false
	}
	return all.Lookup(keys...)
}
