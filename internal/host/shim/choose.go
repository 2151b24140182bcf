package shim

import (
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/agentsfile"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// chooseAgent chooses the agent by --agent, OMNIAGENT_AGENT, the file in the agents directory, or the configuration, in
// this order.
func (c *shimCall) chooseAgent() error {
	c.custom = c.settings.Custom
	configuredAgent, isSet := c.settings.Set.Lookup("agent")
	fromEnvironment := isSet && strings.HasPrefix(configuredAgent.Source, "env:")
	// The file is read if it decides, or if --agent could name one of its targets.
	file, err := c.agentsFile(c.args.Agent != "" || fromEnvironment)
	if err != nil {
		return err
	}
	switch {
	case c.args.Agent != "":
		return c.take(c.args.Agent, "--agent")
	case fromEnvironment:
		return c.take(configuredAgent.Text, "OMNIAGENT_AGENT")
	case file != nil && file.DefaultAgent != "":
		return c.takeDefault(file)
	case isSet && configuredAgent.Text != "":
		return c.take(configuredAgent.Text, "agent in "+strings.TrimPrefix(configuredAgent.Source, "file:"))
	}
	return c.nothingChosen()
}

// agentsFile reads the file of the agents directory. Its targets are used only if its exact content is trusted. If the
// agent is named, but not the directory, an unreadable repository file is only a warning.
func (c *shimCall) agentsFile(named bool) (*agentsfile.File, error) {
	given := ""
	if c.args.AgentsDir != nil {
		given = strings.TrimSpace(*c.args.AgentsDir)
	}
	file, err := agentsfile.Read(agentsfile.Resolve(c.dir, given), given != "")
	if err != nil && named && given == "" {
		c.warn("%v; it is ignored, since an agent is named", err)
		return nil, nil
	}
	if err != nil || file == nil {
		return nil, err
	}
	if len(file.Targets) == 0 {
		return file, nil
	}
	if c.settings.Trust == nil || !c.settings.Trust.Trusted(file.Path, file.Content) {
		c.warn("%s defines agents, which are ignored: its content is not trusted (omniagent trust %s)",
			c.relative(file.Path), c.relative(file.Path))
		return file, nil
	}
	if c.settings.Targets == nil {
		return file, nil
	}
	targets, err := c.settings.Targets(file)
	if err != nil {
		return nil, err
	}
	c.custom = append(slices.Clone(c.custom), targets...)
	return file, nil
}

// takeDefault takes the agent that a repository's file names, and prints a note.
func (c *shimCall) takeDefault(file *agentsfile.File) error {
	name := strings.ToLower(strings.TrimSpace(file.DefaultAgent))
	place := c.relative(file.Path) + ":" + file.DefaultAgentPos.String()
	if _, ok := agent.Find(c.known(), name); !ok {
		return c.unknown(file.DefaultAgent, "defaultAgent in "+place).FixBy("name one of these agents", "")
	}
	c.note("using %s, the default of %s", name, c.relative(file.Path))
	return c.take(name, place)
}

func (c *shimCall) relative(path string) string {
	if rel, err := filepath.Rel(c.host.Dir, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

func (c *shimCall) take(name, from string) error {
	name = strings.ToLower(strings.TrimSpace(name))
	d, ok := agent.Find(c.known(), name)
	if !ok {
		return c.unknown(name, from)
	}
	c.driver = d
	return nil
}

// known returns all agents. The built-in ones are first, so that the configuration cannot replace one.
func (c *shimCall) known() []agent.Driver { return slices.Concat(c.shim.Drivers, c.custom) }

func (c *shimCall) names() []string {
	var names []string
	for _, d := range c.known() {
		names = append(names, d.Name())
	}
	return names
}

func (c *shimCall) unknown(name, from string) *fault.Fault {
	f := fault.New(fault.ArgError, "there is no agent %q (%s); there are %s", printable(name), from,
		strings.Join(c.names(), ", "))
	if near := text.Nearest(strings.ToLower(name), c.names()); near != "" {
		return f.Hint("omniagent --agent %s", near)
	}
	return f.Hint("omniagent agents list")
}

// nothingChosen asks a person at a terminal which agent they want. Otherwise it returns the fault that lists the
// installed agents and how to choose one.
func (c *shimCall) nothingChosen() error {
	installed := c.installedAgents()
	if len(installed) == 0 {
		f := fault.New(fault.MissingArgument, "no agent is chosen, and none is installed here")
		if c.person() {
			f.Ways = c.ways()
			return f.Hint("ways to begin:")
		}
		return f.Hint(
			"omniagent doctor shows how to install one; omniagent --agent native needs only the key of a " +
				"model API")
	}
	if c.person() && c.args.Prompt == nil {
		name, err := c.pick(installed)
		if err != nil {
			return err
		}
		if name != "" {
			return c.take(name, "typed")
		}
	}
	f := fault.New(fault.MissingArgument, "no agent is chosen; installed here: %s", strings.Join(installed, ", "))
	return f.Hint("omniagent --agent %s, or for good: omniagent config set agent %s --global", installed[0],
		installed[0])
}
