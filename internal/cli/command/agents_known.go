package command

import (
	"slices"
	"strings"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/agents/custom"
	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/config"
)

// knownAgent is an agent and the file that defines it, if it is not built in.
type knownAgent struct {
	agent.Driver
	from *string
}

// knownAgents returns the agents that a call without a command can start from here, by name: the built-in ones, those
// of the user's own file, and those of the repository's file if its content is trusted. The first agent of a name
// counts.
func knownAgents(c *contract.Call, builtIn []agent.Driver) ([]knownAgent, error) {
	var known []knownAgent
	add := func(drivers []agent.Driver, from *string) {
		for _, d := range drivers {
			if _, taken := agent.Find(known, d.Name()); !taken {
				known = append(known, knownAgent{d, from})
			}
		}
	}
	add(builtIn, nil)
	if !c.Bool("no-config") {
		own, err := ownFile(c.Paths)
		if err != nil {
			return nil, err
		}
		theirs, err := repositoryFile(c)
		if err != nil {
			return nil, err
		}
		for _, file := range []*agentsfile.File{own, theirs} {
			if file == nil {
				continue
			}
			made, err := custom.New(file, builtIn)
			if err != nil {
				return nil, err
			}
			add(made, &file.Path)
		}
	}
	slices.SortStableFunc(known, func(a, b knownAgent) int { return strings.Compare(a.Name(), b.Name()) })
	return known, nil
}

// repositoryFile returns the repository's file in the agents directory. It returns nil, with a warning, if the file
// defines nothing that counts.
func repositoryFile(c *contract.Call) (*agentsfile.File, error) {
	file, err := agentsfile.Read(agentsfile.Resolve(c.Dir(), ""), false)
	if err != nil || file == nil || len(file.Targets) == 0 {
		return nil, err
	}
	if !config.OpenTrust(c.TrustFile()).Trusted(file.Path, file.Content) {
		c.Warn(config.UntrustedConfig,
			"%s defines agents, which are ignored: its content is not trusted; look at it, then run: omniagent "+
				"trust %s", file.Path, file.Path)
		return nil, nil
	}
	return file, nil
}

// namesOf returns the names of agents.
func namesOf[D agent.Driver](all []D) (names []string) {
	for _, d := range all {
		names = append(names, d.Name())
	}
	return names
}

// named returns the one of them that answers to a name.
func named(known []knownAgent, name string) (knownAgent, error) {
	if k, ok := agent.Find(known, name); ok {
		return k, nil
	}
	f := fault.New(fault.NotFoundCode, "there is no agent %q", name).Hint("omniagent agents list")
	if near := text.Nearest(name, namesOf(known)); near != "" {
		f.With("did_you_mean", near)
	}
	return knownAgent{}, f
}

// agentNamed returns the agent that answers to a name.
func (p Parts) agentNamed(c *contract.Call, name string) (knownAgent, error) {
	known, err := knownAgents(c, p.Agents)
	if err != nil {
		return knownAgent{}, err
	}
	return named(known, name)
}
