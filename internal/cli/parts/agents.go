package parts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/agents/custom"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch/allow"
	"omniagent/internal/sys/config"
)

// KnownAgent is an agent and the file that defines it, if it is not built in.
type KnownAgent struct {
	agent.Driver
	From *string
}

// KnownAgents returns the agents that a call without a command can start from here, by name: the built-in ones, those
// of the user's own file, and those of the repository's file if its content is trusted. The first agent of a name
// counts.
func KnownAgents(c *contract.Call, builtIn []agent.Driver) ([]KnownAgent, error) {
	var known []KnownAgent
	add := func(drivers []agent.Driver, from *string) {
		for _, d := range drivers {
			if _, taken := agent.Find(known, d.Name()); !taken {
				known = append(known, KnownAgent{d, from})
			}
		}
	}
	add(builtIn, nil)
	if !c.Bool("no-config") {
		own, err := OwnFile(c.Paths)
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
	slices.SortStableFunc(known, func(a, b KnownAgent) int { return strings.Compare(a.Name(), b.Name()) })
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

// NamesOf returns the names of agents.
func NamesOf[D agent.Driver](all []D) (names []string) {
	for _, d := range all {
		names = append(names, d.Name())
	}
	return names
}

// Named returns the one of them that answers to a name.
func Named(known []KnownAgent, name string) (KnownAgent, error) {
	if k, ok := agent.Find(known, name); ok {
		return k, nil
	}
	f := fault.New(fault.NotFoundCode, "there is no agent %q", name).Hint("omniagent agents list")
	if near := text.Nearest(name, NamesOf(known)); near != "" {
		f.With("did_you_mean", near)
	}
	return KnownAgent{}, f
}

// AgentNamed returns the agent that answers to a name.
func (p Parts) AgentNamed(c *contract.Call, name string) (KnownAgent, error) {
	known, err := KnownAgents(c, p.Agents)
	if err != nil {
		return KnownAgent{}, err
	}
	return Named(known, name)
}

// AgentRow is an agent as commands tell of it.
type AgentRow struct {
	Name           string  `json:"name"`
	Title          string  `json:"title"`
	Installed      bool    `json:"installed"`
	Version        *string `json:"version" doc:"null: not installed, or it does not say"`
	Path           *string `json:"path"`
	InstallCommand string  `json:"install_command"`
	DefinedIn      *string `json:"defined_in" doc:"the file that defines it; null: built in"`
	Allowed        string  `json:"allowed" enum:"yes,no,denied,changed,built-in" doc:"to be started by run, see agents allow; hosts refuse denied ones only"`
	AllowedWhy     *string `json:"allowed_why" doc:"why it is not; null: it is"`
}

// Row returns the row of an agent, and its program. The version is the one that is known without asking the program.
func (k KnownAgent) Row(c *contract.Call) (AgentRow, agent.Install) {
	about := k.Describe()
	row := AgentRow{Name: k.Name(), Title: about.Title, InstallCommand: about.InstallCommand, DefinedIn: k.From}
	install, err := k.Locate(agent.Env{Lookup: c.Host.Lookup, Dir: c.Dir(), Printed: stores.Versions(c.Paths).Of})
	row.Allowed, row.AllowedWhy = k.standing(c, install)
	if err != nil {
		return row, install
	}
	row.Installed, row.Path = true, &install.Path
	if install.Version != "" {
		row.Version = &install.Version
	}
	return row, install
}

// standing returns what the list says of an agent, and why if that is not enough to start it.
func (k KnownAgent) standing(c *contract.Call, install agent.Install) (state string, why *string) {
	if k.Describe().BuiltIn {
		return "built-in", nil
	}
	gate := UserGate(c, k.Name(), c.Dir())
	err := gate.Listed(RequestFor(k, install))
	if err == nil {
		return "yes", nil
	}
	reason := fault.Of(err).Message
	switch e, ok, problem := gate.List.Find(k.Name()); {
	case problem != nil || e.Denied:
		return "denied", &reason
	case ok:
		return "changed", &reason
	}
	return "no", &reason
}

// RequestFor returns what the list of agents is asked about an agent with its program.
func RequestFor(k KnownAgent, install agent.Install) allow.Request {
	return allow.Request{Driver: k.Driver, Custom: k.From != nil, Install: install, Env: os.Environ()}
}

// UserGate is what the user's configuration and list let programs start in a directory.
func UserGate(c *contract.Call, name, dir string) allow.Gate {
	root, _ := config.ProjectRoot(dir)
	home := c.Host.Home()
	within := c.Config.List(AgentKey(name, "roots"))
	for i, root := range within {
		if rest, ok := strings.CutPrefix(root, "~"); ok && home != "" {
			within[i] = filepath.Join(home, rest)
		}
	}
	return allow.Gate{
		Allow: c.Config.List("agents.allow"), More: c.Config.List("agents.env"), Roots: []string{dir, root},
		List: stores.Allowlist(c), Within: within, DenyFlags: c.Config.List(AgentKey(name, "deny_flags")),
	}
}

// OwnFile returns the file in which the user defines agents, in the same form as a repository; nil if it does not
// exist.
func OwnFile(paths contract.Paths) (*agentsfile.File, error) {
	if paths.Config == "" {
		return nil, nil
	}
	return agentsfile.Read(filepath.Join(paths.Config, agentsfile.Default), false)
}

// AgentKey returns the name of a setting of one agent.
func AgentKey(agent, key string) string { return "agents." + agent + "." + key }
