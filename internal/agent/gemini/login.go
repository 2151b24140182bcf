package gemini

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// Login looks where the CLI keeps one.
func (driver) Login(env agent.Env) agent.Login {
	return cli.Credentials{
		Variables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Files: []string{".gemini/oauth_creds.json"},
		Elsewhere: true,
	}.Find(env)
}
