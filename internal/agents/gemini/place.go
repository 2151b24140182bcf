package gemini

import (
	"cmp"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

const (
	maxHead = 1 << 20 // bytes read of a settings file; usual ones have some hundred
	maxLine = 1 << 20 // bytes read of a line of a transcript
)

// configPath returns a path in the CLI's own directory, .gemini, or "".
func configPath(env []string, path ...string) string {
	home := cli.First(env, "GEMINI_CLI_HOME", "HOME", "USERPROFILE")
	if home == "" {
		return ""
	}
	return filepath.Join(home, ".gemini", filepath.Join(path...))
}

// keeps returns the places of the CLI's own data.
func keeps(env []string) agent.Keeps { return agent.Keeps{Dirs: []string{configPath(env)}} }

// systemDir returns the directory of the machine's settings.
func systemDir(system string) string {
	switch system {
	case "darwin":
		return "/Library/Application Support/GeminiCli"
	case "windows":
		return `C:\ProgramData\gemini-cli`
	}
	return "/etc/gemini-cli"
}

// settingsFiles returns the files that the CLI merges its settings from, the strongest first. The CLI reads the
// repository's file only if it is trusted.
func settingsFiles(s agent.Spec) []string {
	repository := filepath.Join(s.Dir, ".gemini", "settings.json")
	system := cmp.Or(cli.First(s.Env, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"),
		filepath.Join(systemDir(s.Machine.OS), "settings.json"))
	defaults := cmp.Or(cli.First(s.Env, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"),
		filepath.Join(filepath.Dir(system), "system-defaults.json"))
	return []string{system, repository, configPath(s.Env, "settings.json"), defaults}
}

// head returns the beginning of a settings file, or nothing.
func head(path string) []byte {
	data, _ := cli.Head(path, maxHead)
	return data
}
