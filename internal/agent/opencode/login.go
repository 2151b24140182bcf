package opencode

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// Login looks where the CLI keeps those of all its providers. It has a model that needs none, so none found does not
// mean that it cannot work.
func (driver) Login(env agent.Env) agent.Login {
	return cli.Credentials{
		Files:     []string{cli.InHomeOr(env, "XDG_DATA_HOME", ".local/share", "opencode/auth.json")},
		Elsewhere: true,
	}.Find(env)
}
