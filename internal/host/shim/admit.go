package shim

import (
	"path/filepath"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/launch/allow"
	"omniagent/internal/sys/config"
)

// admit returns an error if the program comes with the workspace, unless --allow-workspace-agent is set, because npx,
// npm run and direnv put directories of a repository first in PATH. It checks the program that is really started, with
// its own PATH.
func (c *shimCall) admit(launch agent.Launch) error {
	if c.args.Workspace || c.driver.Describe().BuiltIn {
		return nil
	}
	in := agent.Install{Path: launch.Path, RealPath: launch.Path}
	if real, err := filepath.EvalSymlinks(launch.Path); err == nil {
		in.RealPath = real
	}
	if launch.Path == c.install.Path {
		in.Program = c.install.Program
	}
	root, _ := config.ProjectRoot(c.dir)
	gate := allow.Gate{Roots: []string{c.dir, root}}
	found := gate.FromWorkspace(in, launch.Env)
	if found == "" {
		return nil
	}
	hint := "--allow-workspace-agent starts it all the same"
	if other := c.elsewhere(gate); other != "" {
		hint += "; without the directories of the workspace in PATH it would be " + other
	}
	return fault.New(fault.Unsafe,
		"%s is not started: %s comes with the workspace, and a repository can put any program there",
		c.driver.Name(), found).
		With("path", found).Hint("%s", hint)
}

// elsewhere returns the path of the agent that is installed outside the workspace, or "".
func (c *shimCall) elsewhere(gate allow.Gate) string {
	path := gate.Outside(c.host.Env)
	install, err := c.driver.Locate(agent.Env{Dir: c.dir, Lookup: func(name string) (string, bool) {
		if name == "PATH" {
			return path, true
		}
		return c.host.lookup(name)
	}})
	if err != nil || gate.FromWorkspace(install, c.host.Env) != "" {
		return ""
	}
	return install.Path
}
