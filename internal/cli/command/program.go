// Package command assembles the program: it lists all commands, and has Main and the few commands about the program
// itself. The other commands are in the packages forks, runs, safety, sessions, setup and talk. What they share is in
// parts, flags and stores.
//
// A command reaches children, the network and standard input only through contract.Call, which opens only what the
// command declares.
package command

import (
	"slices"
	"strings"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/runs"
	"omniagent/internal/cli/safety"
	"omniagent/internal/cli/sessions"
	"omniagent/internal/cli/setup"
	"omniagent/internal/cli/talk"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/shim"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/native/tool"
)

// Version is the program's version.
const Version = parts.Version

// Parts are the lists that the program is built from. This type adds Main and Program to parts.Parts.
type Parts struct{ parts.Parts }

// Ours returns the parts of this program.
func Ours() Parts {
	apis := provider.APIs()
	return Parts{parts.Parts{
		Agents: []agent.Driver{
			claude.New(), codex.New(), copilot.New(), gemini.New(), native.New(Version, apis), opencode.New(),
		},
		APIs: apis, Tools: tool.Ours(),
	}}
}

// Program returns the command line of this program.
func Program() *contract.Program { return Ours().Program() }

// Program returns the command line with these parts.
func (p Parts) Program() *contract.Program { return contract.Open(p.app()) }

// app declares the program.
func (p Parts) app() contract.App {
	return contract.App{
		Name:    "omniagent",
		Version: Version,
		Summary: "coding agents behind one command line that people and programs can trust",
		Detail: "Results go to standard output: for people on a terminal, as one JSON envelope wherever a program " +
			"reads. Exit codes are declared\n" +
			"by each command and mean what they say. OMNIAGENT_OUTPUT sets the form of results.",
		Groups: map[string]string{
			"agents":    "the coding agents that this program knows",
			"config":    "read and write the configuration",
			"errors":    "the codes of failures",
			"fork":      "private copies of a workspace",
			"models":    "the language models behind the native agent",
			"runs":      "tasks that were handed to agents",
			"sandbox":   "the walls around commands",
			"session":   "conversations, for every agent",
			"snapshots": "what turns of agents can be taken back",
			"xnl":       "XNL, the notation in which models without tool calls write them",
		},
		Examples: []contract.Example{
			{Command: "omniagent --agent claude", Description: "a session in this terminal"},
			{Command: `omniagent --agent codex -p hello`, Description: "one prompt, and its exit code"},
			{Command: "omniagent chat", Description: "talk to any agent"},
			{Command: `omniagent run -p "mend it"`, Description: "hand a task over, and come back later"},
		},
		Tasks: tasks(),
		Topics: []contract.Topic{{
			Name: "agents", Summary: "what each agent does with the flags",
			Text: func() string { return matrixHelp(p.Agents) },
		}, {
			Name: "script", Also: []string{"rehearse", "rehearsal"}, Summary: "what a scripted model says: --rehearse",
			Text: func() string { return modelserver.ScriptText },
		}},
		Complete: p.completions,
		Keys:     slices.Concat(shim.Keys(), p.ownKeys(), agentKeys(p.Agents)),
		Direct:   func() *contract.Direct { return directCalls(p.Agents) },
		Commands: p.commands(),
	}
}

// commands lists all commands, sorted by path. Each is built only when it is needed.
func (p Parts) commands() []contract.Registered {
	all := slices.Concat([]contract.Registered{
		{Path: "changelog", Make: changelog},
		{Path: "cleanup", Make: cleanup},
		{Path: "completion", Make: completion},
		{Path: "demo", Make: p.demonstration},
		{Path: "errors list", Make: errorsList},
		{Path: "exec", Make: exec},
		{Path: "generate-man", Make: generateMan},
		{Path: "generate-skills", Make: generateSkills},
		{Path: "help", Make: help},
		{Path: "manifest", Make: manifest},
		{Path: "version", Make: version},
		{Path: "xnl check", Make: xnlCheck},
		{Path: "xnl format", Make: xnlFormat},
		{Path: "xnl parse", Make: xnlParse},
		{Path: "xnl prompt", Make: p.xnlPrompt},
	}, forks.Commands(p.Parts), runs.Commands(p.Parts), safety.Commands(p.Parts), sessions.Commands(p.Parts),
		setup.Commands(p.Parts), talk.Commands(p.Parts))
	slices.SortFunc(all, func(a, b contract.Registered) int { return strings.Compare(a.Path, b.Path) })
	return all
}
