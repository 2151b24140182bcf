// Package parts has what the commands are built from: the lists of agents, model APIs and tools; the agents that a call
// knows; and Opener, which opens conversations with them as the flags and the configuration say.
//
// It knows no command. The groups of commands import it.
package parts

import (
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/cli/contract"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/shim"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/launch"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native/tool"
	"omniagent/internal/native/xnlcall"
	"omniagent/internal/walls/guard"
)

// Parts are the lists that the program is built from. A new agent, model API or tool is added to one of them.
type Parts struct {
	Agents []agent.Driver // by name
	APIs   []model.API
	Tools  tool.List // of the native agent

	Eidolon bool // the program was started under the name eidolon

	Plain *shim.Plain // how a call without a command starts installed agents; nil: as in any conversation
}

// Executable returns the path of this program.
func Executable() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fault.New(fault.Internal, "this program cannot be found").Because(err)
	}
	return path, nil
}

// AgentPrograms declares the programs of the agents, for Command.Children.
func (p Parts) AgentPrograms() (list []contract.Subprocess) {
	for _, d := range p.Agents {
		list = append(list, contract.Subprocess{Binary: d.Describe().Binary, FixedArgs: []string{}})
	}
	return list
}

// APIWords returns the words of --provider, for people.
func (p Parts) APIWords() string { return text.Either(provider.Names(p.APIs)) }

// Guarded returns what guard must know about the agents, and where our own keys are, to judge a call of a tool.
func (p Parts) Guarded(c *contract.Call) guard.Agents { return p.GuardAgents(c.Paths, c.Host.Lookup) }

// GuardAgents is Guarded where there is no contract.Call.
func (p Parts) GuardAgents(paths contract.Paths, lookup func(string) (string, bool)) guard.Agents {
	var all guard.Agents
	for _, d := range p.Agents {
		about := d.Describe()
		all = append(all, guard.Agent{
			Program: about.Binary, Package: about.Package, Private: about.Private,
			Settings: slices.Concat(about.Settings, about.RepoFiles),
		})
	}
	home, _ := lookup("HOME")
	if ours, err := filepath.Rel(home, paths.Config); err == nil && paths.Config != "" {
		all = append(all, guard.Agent{Private: []string{ours}})
	}
	return all
}

// veiled returns the names of files in a workspace that at least one agent obeys.
func (p Parts) veiled() (names []string) {
	for _, d := range p.Agents {
		names = append(names, launch.Veiled(d.Describe())...)
	}
	return names
}

// Providing returns the names of agents that --provider may name.
func (p Parts) Providing() []string {
	var names []string
	for _, d := range p.Agents {
		if d.Describe().Provides {
			names = append(names, d.Name())
		}
	}
	return names
}

// toolProtocol returns how a model calls tools if no flag, profile or setting says how.
func (p Parts) toolProtocol() string {
	if p.Eidolon {
		return xnlcall.XNL
	}
	return xnlcall.Native
}

// ModelKey declares that a command needs the key of a model API.
func (p Parts) ModelKey() *contract.Auth {
	return &contract.Auth{HeadlessSupported: true, TokenEnv: provider.Keys(p.APIs)}
}
