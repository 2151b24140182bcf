package claude

import (
	"runtime"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// Login looks where the CLI keeps one. On macOS that is the keychain.
func (driver) Login(env agent.Env) agent.Login {
	return cli.Credentials{
		Variables: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
		Files:     []string{cli.InHomeOr(env, "CLAUDE_CONFIG_DIR", ".claude", ".credentials.json")},
		Elsewhere: runtime.GOOS == "darwin",
	}.Find(env)
}
