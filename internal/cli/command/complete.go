package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/runs"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/provider"
	"omniagent/internal/sys/config"
	"omniagent/internal/talk/session"
	"omniagent/internal/work/run"
)

// completions returns the values of a parameter that depend on this machine: names of agents, models and settings, and
// ids of sessions and runs.
func (p Parts) completions(c *contract.Call, param contract.Param) []contract.Choice {
	area, _, _ := strings.Cut(c.Command.Path, " ")
	switch param.Name {
	case "agent":
		return p.agentChoices(c)
	case "provider":
		return p.providerChoices()
	case "model":
		return p.modelChoices(c.String("provider"), false)
	case "resume", "session-id", "session":
		return sessionChoices(c)
	case "run":
		return runChoices(c)
	case "about":
		return helpChoices(c)
	}
	switch area + " " + param.Name {
	case "agents name":
		return p.agentChoices(c)
	case "models name":
		return slices.Concat(p.profileChoices(c), p.providerChoices(), p.modelChoices("", true))
	case "config key":
		return keyChoices(c)
	case "config value":
		return p.valueChoices(c)
	case "session id":
		return sessionChoices(c)
	case "runs id", "answer id":
		return runChoices(c)
	case "audit-log command":
		return commandNames(c)
	case "errors code":
		return codeChoices()
	}
	return nil
}

func (p Parts) agentChoices(c *contract.Call) (list []contract.Choice) {
	known, _ := parts.KnownAgents(c, p.Agents) // after an error, offer nothing
	for _, k := range known {
		about := k.Describe().Title
		if row, _ := k.Row(c); !row.Installed {
			about += ", not installed"
		}
		list = append(list, contract.Choice{Value: k.Name(), About: about})
	}
	return list
}

func (p Parts) providerChoices() (list []contract.Choice) {
	for _, name := range provider.Names(p.APIs) {
		list = append(list, contract.Choice{Value: name, About: "model API"})
	}
	return list
}

// modelChoices returns the models of one provider, or of all. It leaves out prefixes without a price, which stand for a
// whole family of models.
func (p Parts) modelChoices(of string, prefixed bool) (list []contract.Choice) {
	for _, api := range p.APIs {
		if of != "" && api.Name != provider.AccountOf(p.APIs, of) || api.Account != "" {
			continue
		}
		names := []string{api.Default}
		for short, whole := range api.Short {
			names = append(names, short, whole)
		}
		if api.Models != nil {
			for _, family := range api.Models() {
				if family.Prices != nil {
					names = append(names, family.Prefix)
				}
			}
		}
		slices.Sort(names)
		for _, name := range slices.Compact(names) {
			switch {
			case name == "":
			case prefixed:
				list = append(list, contract.Choice{Value: api.Name + "/" + name, About: "model"})
			default:
				list = append(list, contract.Choice{Value: name, About: api.Name})
			}
		}
	}
	return list
}

func (p Parts) profileChoices(c *contract.Call) (list []contract.Choice) {
	for _, one := range parts.ProfilesOf(c)(c.Dir()).All {
		if one.Name != "" {
			list = append(list, contract.Choice{Value: one.Name, About: "profile: " + one.Model})
		}
	}
	return list
}

func keyChoices(c *contract.Call) (list []contract.Choice) {
	for _, key := range c.Program.ConfigKeys() {
		list = append(list, contract.Choice{Value: key.Name, About: key.Help})
	}
	slices.SortFunc(list, func(a, b contract.Choice) int { return strings.Compare(a.Value, b.Value) })
	return list
}

func (p Parts) valueChoices(c *contract.Call) (list []contract.Choice) {
	switch c.String("key") {
	case "agent":
		return p.agentChoices(c)
	case parts.ProviderKey:
		return p.providerChoices()
	case parts.ModelKey:
		return p.modelChoices(c.Config.String(parts.ProviderKey), false)
	}
	for _, key := range c.Program.ConfigKeys() {
		if key.Name != c.String("key") {
			continue
		}
		values := key.Enum
		if key.Type == config.Bool {
			values = []string{"true", "false"}
		} else if len(values) == 0 && key.Default != "" {
			values = []string{key.Default}
		}
		for _, value := range values {
			about := ""
			if value == key.Default {
				about = "default"
			}
			list = append(list, contract.Choice{Value: value, About: about})
		}
	}
	return list
}

// mostChoices limits the sessions and runs that completion offers, the newest first.
const mostChoices = 100

func sessionChoices(c *contract.Call) (list []contract.Choice) {
	store, err := stores.Sessions(c)
	if err != nil {
		return nil
	}
	filter := session.Filter{Limit: mostChoices}
	if c.Given("agent") {
		filter.Agent = c.String("agent")
	}
	infos, _, err := store.List(context.Background(), filter)
	if err != nil {
		return nil
	}
	for _, i := range infos {
		list = append(list, contract.Choice{
			Value: i.Begin.ID, About: i.Begin.AgentName() + ", " + text.Age(time.Since(i.Updated)) + ": " + i.Title,
		})
	}
	return list
}

// runChoices returns the runs. For the command answer these are the ones that wait for an answer.
func runChoices(c *contract.Call) (list []contract.Choice) {
	store, err := stores.Runs(c)
	if err != nil {
		return nil
	}
	all, _, err := store.List(context.Background())
	if err != nil {
		return nil
	}
	for _, r := range all {
		if c.Command.Path == "answer" && r.State != run.NeedsInput || len(list) == mostChoices {
			continue
		}
		list = append(list, contract.Choice{Value: r.ID, About: runs.About(r)})
	}
	return list
}

// helpChoices returns the next word after help: commands, groups and topics, or after a group its commands.
func helpChoices(c *contract.Call) (list []contract.Choice) {
	group := strings.Join(c.Strings("about"), " ")
	for _, one := range c.Program.All() {
		switch first, verb, nested := strings.Cut(one.Path, " "); {
		case group == "" && !nested:
			list = append(list, contract.Choice{Value: one.Path, About: one.Summary})
		case group != "" && nested && first == group:
			list = append(list, contract.Choice{Value: verb, About: one.Summary})
		}
	}
	if group != "" {
		return list
	}
	for name, about := range c.Program.Groups {
		list = append(list, contract.Choice{Value: name, About: about})
	}
	for _, t := range c.Program.Topics {
		list = append(list, contract.Choice{Value: t.Name, About: t.Summary})
	}
	slices.SortFunc(list, func(a, b contract.Choice) int { return strings.Compare(a.Value, b.Value) })
	return slices.CompactFunc(list, func(a, b contract.Choice) bool { return a.Value == b.Value })
}

// commandNames returns the commands as the audit log names them.
func commandNames(c *contract.Call) (list []contract.Choice) {
	for _, one := range c.Program.All() {
		list = append(list, contract.Choice{Value: strings.ReplaceAll(one.Path, " ", "."), About: one.Summary})
	}
	return list
}

func codeChoices() (list []contract.Choice) {
	for _, e := range fault.Catalogue() {
		list = append(list, contract.Choice{Value: string(e.Code), About: e.Summary})
	}
	return list
}
