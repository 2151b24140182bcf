package command

import (
	_ "embed" // the keys
	"slices"

	"omniagent/internal/cli/parts"
	"omniagent/internal/core/agent"
	"omniagent/internal/sys/config"
	"omniagent/internal/walls/guard"
)

//go:embed keys.txt
var keyTable string

// ownKeys returns the settings in keys.txt, which the framework and the shim do not declare.
func (p Parts) ownKeys() []config.Key {
	keys := config.ReadKeys(keyTable)
	for _, list := range parts.RuleKeys() {
		i := slices.IndexFunc(keys, func(k config.Key) bool { return k.Name == list.Key })
		keys[i].Valid = func(text string) error {
			_, err := guard.Known(p.Tools.Specs()).Rule(list.Word, text, "")
			return err
		}
	}
	return keys
}

// agentKeys returns the settings of each agent that is not built in. A project cannot set them.
func agentKeys(drivers []agent.Driver) []config.Key {
	var keys []config.Key
	for _, d := range drivers {
		if d.Describe().BuiltIn {
			continue
		}
		keys = append(keys,
			config.Key{
				Name: parts.AgentKey(d.Name(), "deny_flags"), Type: config.List, Personal: true,
				Help: "flags that nobody may pass to " + d.Name() + ", such as --dangerously-*; only in your own file",
			},
			config.Key{
				Name: parts.AgentKey(d.Name(), "roots"), Type: config.List, Personal: true,
				Help: "directories in which " + d.Name() + " may work for others; unset: any; only in your own file",
			})
	}
	return keys
}
