package codex

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// Login looks where the CLI keeps one.
func (driver) Login(env agent.Env) agent.Login {
	return cli.Credentials{
		Variables: []string{"CODEX_API_KEY"},
		Files:     []string{cli.InHomeOr(env, "CODEX_HOME", ".codex", "auth.json")},
	}.Find(env)
}
