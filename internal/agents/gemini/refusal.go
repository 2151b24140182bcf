package gemini

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
)

// refusals returns the known reasons why this launch fails.
func refusals(s agent.Spec, l agent.Launch) []agent.Refusal {
	var out []agent.Refusal
	if s.Mode == setting.OneShot && s.Rehearsal == nil && !cli.Passed(s.Passthrough, "--skip-trust", "--skipTrust") &&
		!trusted(s) {
		out = append(out, agent.Refusal{
			Reason: "Gemini CLI does not run unattended in an untrusted directory.",
			Fix: "If its contents may be trusted, add -- --skip-trust; or start the CLI there once without a " +
				"prompt and trust the directory.",
			Codes: []int{exitUntrusted},
		})
	}
	if slices.Contains(l.Args[:l.Translated], sandboxFlag) && startsContainer(s) {
		runtime := "docker"
		if !has(s, runtime) {
			runtime = "podman"
		}
		out = append(out, agent.Refusal{
			Reason: "The sandbox of Gemini CLI needs a container image, and " + runtime + " running.",
			Fix:    "Fetch the image while " + runtime + " runs.", Command: runtime + " pull " + image(s),
			Codes: []int{1, exitSandbox}, // 1 if the image cannot be fetched
		})
	}
	if cli.First(l.Env, "GOOGLE_GEMINI_BASE_URL") != "" && s.Rehearsal == nil && !choseSignIn(s) {
		out = append(out, agent.Refusal{
			Reason: "With GOOGLE_GEMINI_BASE_URL set, Gemini CLI needs a way to sign in that was chosen before.",
			Fix:    `Set security.auth.selectedType to "gemini-api-key" in ~/.gemini/settings.json.`,
			Codes:  []int{exitAuth}, Login: true,
		})
	}
	return out
}

func has(s agent.Spec, program string) bool { return s.Machine.Has != nil && s.Machine.Has(program) }

// image returns the container image that the CLI would use.
func image(s agent.Spec) string {
	return cmp.Or(cli.First(s.Env, "GEMINI_SANDBOX_IMAGE"),
		"us-docker.pkg.dev/gemini-code-dev/gemini-cli/sandbox:"+cmp.Or(s.Install.Version, measured))
}

// trusted reports whether the CLI trusts the directory. If a file cannot be read, it reports true, because after a
// failure a missing hint does less harm than a wrong one.
func trusted(s agent.Spec) bool {
	workspace := cli.First(s.Env, "GEMINI_CLI_TRUST_WORKSPACE")
	switch {
	case cli.First(s.Env, "GEMINI_RESTRICTED_MODE") == "true", workspace == "false":
		return false
	case workspace == "true", s.Rehearsal != nil:
		return true
	}
	for i, path := range settingsFiles(s) {
		if i == 1 { // a repository cannot trust itself
			continue
		}
		if on, ok := member(path, "security", "folderTrust", "enabled"); ok && on.Kind == literal.Bool {
			if !on.Bool {
				return true
			}
			break
		}
	}
	return trustListed(cmp.Or(cli.First(s.Env, "GEMINI_CLI_TRUSTED_FOLDERS_PATH"),
		configPath(s.Env, "trustedFolders.json")), s.Dir)
}

// widening returns the keys of the repository's settings that allow more than the approval, if the CLI obeys them.
// --skip-trust alone does not make it obey, because it reads the settings before that flag.
func widening(s agent.Spec) []string {
	if !trusted(s) {
		return nil
	}
	settings, err := literal.ParseJSON5(head(filepath.Join(s.Dir, ".gemini", "settings.json")))
	if err != nil {
		return nil
	}
	var found []string
	for key := range strings.FieldsSeq("hooks mcpServers policyPaths tools.allowed tools.core tools.discoveryCommand") {
		if _, ok := settings.Lookup(strings.Split(key, ".")...); ok {
			found = append(found, key)
		}
	}
	return found
}

// trustListed reports whether a person trusted the directory. The longest rule that covers it counts.
func trustListed(file, dir string) bool {
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
		if len(rule.Key) > longest && pathname.Within(pathname.Real(path), pathname.Real(dir)) {
			longest, trust = len(rule.Key), rule.Value.Str != "DO_NOT_TRUST"
		}
	}
	return trust
}

// choseSignIn reports whether any settings choose how to sign in.
func choseSignIn(s agent.Spec) bool {
	return slices.ContainsFunc(settingsFiles(s), func(path string) bool {
		_, chosen := member(path, "security", "auth", "selectedType")
		_, external := member(path, "security", "auth", "useExternal")
		return chosen || external
	})
}

// member returns one value of a settings file, which may have comments.
func member(path string, keys ...string) (literal.Value, bool) {
	all, err := literal.ParseJSON5(head(path))
	if err != nil {
		return literal.Value{}, false
	}
	return all.Lookup(keys...)
}
