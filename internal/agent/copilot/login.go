package copilot

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// Login looks for what can be read of one. Mostly it is in the keychain of the system.
func (driver) Login(env agent.Env) agent.Login {
	return cli.Credentials{
		Variables: []string{"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"},
		Elsewhere: true,
	}.Find(env)
}
