package command

import (
	_ "embed" // the keys

	"omniagent/internal/core/agent"
	"omniagent/internal/sys/config"
)

//go:embed keys.txt
var keyTable string

// ownKeys returns the settings of the gate, of the native agent and of what is kept.
func ownKeys() []config.Key { return config.ReadKeys(keyTable) }

// agentKeys are the settings of each agent that is a program of its own. A project cannot set them.
func agentKeys(drivers []agent.Driver) []config.Key {
	var keys []config.Key
	for _, d := range drivers {
		if d.Describe().BuiltIn {
			continue
		}
		keys = append(keys,
			config.Key{
				Name: agentKey(d.Name(), "deny_flags"), Type: config.List, Personal: true,
				Help: "flags that nobody may pass to " + d.Name() + ", such as --dangerously-*; only in your own file",
			},
			config.Key{
				Name: agentKey(d.Name(), "roots"), Type: config.List, Personal: true,
				Help: "directories in which " + d.Name() + " may work for others; unset: any; only in your own file",
			})
	}
	return keys
}

func agentKey(agent, key string) string { return "agents." + agent + "." + key }

const keepKey = "session.keep"
