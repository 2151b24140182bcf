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

// KnownAgents returns the agents that a call without a command can start in this directory, sorted by name: the
// built-in ones, those of the user's own file, and those of the repository's file if its content is trusted. If several
// have the same name, the first in this order counts.
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

// repositoryFile returns the file in which the repository defines agents. It returns nil if the repository defines no
// agents, and warns if it returns nil because the content of the file is not trusted.
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

// Named returns the known agent of that name.
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

// AgentNamed returns the agent of that name among those that a call knows.
func (p Parts) AgentNamed(c *contract.Call, name string) (KnownAgent, error) {
	known, err := KnownAgents(c, p.Agents)
	if err != nil {
		return KnownAgent{}, err
	}
	return Named(known, name)
}

// AgentRow is an agent as commands list it.
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

// Row returns the row of an agent, and its program. It does not start the program, so the version may be unknown.
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

// standing returns what the list of allowed agents says of an agent, and why it may not be started, or nil if it may.
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

// RequestFor returns the request to start an agent with its program, for a check against the list of allowed agents.
func RequestFor(k KnownAgent, install agent.Install) allow.Request {
	return allow.Request{Driver: k.Driver, Custom: k.From != nil, Install: install, Env: os.Environ()}
}

// UserGate returns the gate for an agent in a directory, from the user's configuration and list of allowed agents.
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

// OwnFile returns the file in which the user defines agents, or nil if it does not exist. It has the same form as that
// of a repository.
func OwnFile(paths contract.Paths) (*agentsfile.File, error) {
	if paths.Config == "" {
		return nil, nil
	}
	return agentsfile.Read(filepath.Join(paths.Config, agentsfile.Default), false)
}

// AgentKey returns the name of a setting of one agent.
func AgentKey(agent, key string) string { return "agents." + agent + "." + key }
