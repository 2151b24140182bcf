// Package command is the command tree: every subcommand in a file of its own.
//
// A command reaches children, network and standard input only through contract.Call, which opens what was declared.
// Commands that run agents get what they need as values; nothing here is global.
package command

import (
	"omniagent/internal/agent"
	"omniagent/internal/agent/claude"
	"omniagent/internal/agent/codex"
	"omniagent/internal/agent/copilot"
	"omniagent/internal/agent/gemini"
	"omniagent/internal/agent/native"
	"omniagent/internal/agent/opencode"
	"omniagent/internal/contract"
	"omniagent/internal/shim"
)

// Version is the program's version: the same in the manifest, AGENTS.md and the skills.
const Version = "0.1.0"

// Program returns the whole command line.
func Program() *contract.Program { return contract.Open(app()) }

func app() contract.App {
	return contract.App{
		Name:    "omniagent",
		Version: Version,
		Summary: "coding agents behind one command line that people and programs can trust",
		Detail: "Results go to standard output: for people on a terminal, as one JSON envelope wherever a program " +
			"reads. Exit codes are declared\n" +
			"by each command and mean what they say. OMNIAGENT_OUTPUT sets the form of results.",
		Groups: map[string]string{
			"agents":  "the coding agents that this program knows",
			"config":  "read and write the configuration",
			"errors":  "the codes of failures",
			"sandbox": "the walls around commands",
			"session": "conversations, for every agent",
		},
		Keys:   append(shim.Keys(), ownKeys()...),
		Direct: func() *contract.Direct { return directCalls(drivers()) },
		Commands: []*contract.Command{
			acpCommand(),
			agentsList(drivers()),
			agentsShow(drivers()),
			auditLog(),
			changelog(),
			chat(),
			checkPermissions(),
			cleanup(),
			completion(),
			configGet(),
			configList(),
			configPath(),
			configSet(),
			configUnset(),
			demonstration(drivers()),
			doctor(drivers()),
			errorsList(),
			exec(),
			generateMan(),
			generateSkills(),
			manifest(),
			mcpServer(drivers()),
			sandboxExplain(),
			sandboxRun(),
			sessionDelete(),
			sessionEvents(),
			sessionExport(),
			sessionFork(),
			sessionList(),
			sessionSearch(),
			sessionShow(),
			start(),
			status(),
			trust(),
			trustList(),
			version(),
		},
	}
}

// drivers returns the agents, by name.
func drivers() []agent.Driver {
	return []agent.Driver{claude.New(), codex.New(), copilot.New(), gemini.New(), native.New(Version), opencode.New()}
}
