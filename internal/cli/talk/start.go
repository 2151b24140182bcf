package talk

import (
	"context"
	"os"
	"slices"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/cli/forks"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/native/xnlcall"
)

func (p commands) start() *contract.Command {
	return &contract.Command{
		Path: "start", Summary: "run an agent for a program, in lines of JSON",
		Here: true, Class: contract.Stream,
		Danger: contract.Mutating,
		Detail: "With --prompt, or text on standard input, it answers and ends. With --session-id alone, or frames " +
			"on standard input, it stays and takes a\n" +
			"frame a line: user, interrupt, set_permission_mode, tool_approval. docs/start.md has the lines.\n" +
			"The native agent's sub-agents are general-purpose and, where agents allow has recorded an agent, " +
			"cli-runner: docs/run.md.",
		Scopes: []string{}, Auth: p.ModelKey(),
		Params: slices.Concat(p.startParams(), flags.Host(flags.DontAsk), []contract.Param{forks.Flag()}),
		Rules:  flags.RehearsalRules(),
		Exits: []contract.Exit{
			{
				Code: contract.Success,
				When: "there is an answer to the last message, or the host interrupted it or sent none",
			},
			{Code: contract.GeneralError, When: "the last turn failed; its result says why"},
			{Code: contract.ArgError, When: "wrong call, no such session, or no line of standard input could be read"},
			contract.BlockedByPolicy("in the last turn a tool needed approval and nobody could be asked"),
		},
		Children: append(p.AgentPrograms(), contract.Subprocess{Binary: "sh", CallerArgs: []string{}}),
		Network:  flags.ModelAPI(),
		Files:    stores.ConversationFiles(stores.RunFiles()),
		Examples: []contract.Example{
			{
				Description: "One question to a local model",
				Command:     "omniagent start -P openai --api-base http://127.0.0.1:11434/v1 -m qwen3 -p hi",
			},
			{Description: "A conversation over lines", Command: "omniagent start --provider anthropic --session-id s1"},
			{
				Description: "In place of Claude Code, in a host that was written for it",
				Command:     "omniagent start --dialect claude -p 'What is in this directory?'",
			},
		},
		Validate: func(c *contract.Call) []fault.Problem {
			name := c.String("provider")
			if name == "" || slices.Contains(p.Providing(), name) {
				return nil
			}
			return contract.ProblemsOf("provider", name,
				provider.Options{APIs: p.APIs, Agents: p.Providing()}.Check(name))
		},
		Serve:  parts.RedactErrors(p.forked(p.serveStart)),
		Refuse: func(c *contract.Call, f *fault.Fault) { refuseStart(c, f) },
	}
}

// startParams returns the flags that only start has. Flags of Claude Code were translated to these before.
func (p commands) startParams() []contract.Param {
	return slices.Concat(flags.Rehearsal(), []contract.Param{
		{Name: "provider", Short: "P", Kind: contract.Name, Help: "model API: " + p.APIWords()},
		{Name: "model", Short: "m", Kind: contract.Name, Help: "model"},
		{Name: "cwd", Short: "d", Kind: contract.File, Help: "working directory"},
		{Name: "session-id", Short: "s", Kind: contract.Name, Help: "session to begin or continue"},
		{Name: "prompt", Short: "p", Kind: contract.Text, MaxLen: 64 << 20, Help: "the message"},
		{Name: "resume", Short: "r", Kind: contract.Name, Help: "session to continue"},
		{
			Name: "output-format", As: "output", Kind: contract.Enum, Enum: []string{"stream-json", "json", "text"},
			Also: setting.OutputElsewhere(), Default: "stream-json", Help: "json: the result alone",
		},
		{
			Name: "input-format", Kind: contract.Enum, Enum: []string{"auto", "text", "stream-json"}, Default: "auto",
			Help: "what stdin is: a message, or frames",
		},
		{Name: "api-base", Kind: contract.Name, Value: "URL", Help: "address of the model API"},
		flags.Sandbox(),
		{Name: "network", Kind: contract.Name, Help: "what commands can reach: off, on, packages, or hosts"},
		{
			Name: "tool-protocol", Kind: contract.Enum, Enum: []string{xnlcall.Native, xnlcall.XNL},
			Help: "how the model calls tools; xnl: docs/xnl.md",
		},
		{Name: "protocol-version", Kind: contract.Enum, Enum: []string{"1"}, Default: "1", Help: "line format"},
		{Name: "history-file", Kind: contract.File, Help: "messages of an earlier conversation"},
		{Name: "max-turns", Kind: contract.Int, Max: 100_000, Help: "most answers of the model"},
		{Name: "web", Kind: contract.Enum, Enum: []string{"on", "off"}, Default: "off", Help: "web pages and search"},
		{
			Name: "dialect", Kind: contract.Enum, Enum: []string{"yume", "claude"}, Default: "yume",
			Help: "whose lines; claude takes Claude Code's flags: docs/start.md",
		},
		{Name: "agent", Kind: contract.Name, Default: native.Name, Help: "the agent"},
		{
			Name: "questions", Kind: contract.Enum, Enum: []string{"auto", "host", "none"}, Default: "auto",
			Help: "who is asked what may run",
		},
		{Name: "allow-bypass", Kind: contract.Bool, Help: "the host may let everything run"},
		{Name: "allowed-tools", Kind: contract.Text, Repeat: true, Help: "rule: calls that run without asking"},
		{Name: "disallowed-tools", Kind: contract.Text, Repeat: true, Help: "rule: calls that never run"},
		{Name: "tools", Kind: contract.Name, Repeat: true, Help: "a tool to offer, and no others"},
		{
			Name: "max-budget-usd", Kind: contract.Text, Pattern: `^[0-9]+(\.[0-9]+)?$`, Example: "0.50",
			Help: "what a turn may cost",
		},
		{Name: "continue", Kind: contract.Bool, Help: "continue the newest session here"},
		{Name: "fork-session", Kind: contract.Bool, Help: "continue in a copy"},
		{Name: "system-prompt", Kind: contract.Text, MaxLen: 1 << 20, Help: "text that replaces ours"},
		{Name: "append-system-prompt", Kind: contract.Text, MaxLen: 1 << 20, Help: "text to add to ours"},
		{Name: "system-prompt-file", Kind: contract.File, Help: "file that replaces ours"},
		{Name: "append-system-prompt-file", Kind: contract.File, Help: "file to add to ours"},
		{Name: "mcp-config", Kind: contract.Text, Repeat: true, MaxLen: 1 << 20, Help: "MCP servers: JSON or a file"},
		{Name: "strict-mcp-config", Kind: contract.Bool, Help: "no other servers"},
		flags.AddDir(),
		{Name: "json-schema", Kind: contract.Text, MaxLen: 1 << 20, Help: "JSON schema of the answer"},
		{
			Name: "json-schema-retries", Kind: contract.Int, Max: 10, Default: "4",
			Help: "how often native asks again",
		},
		{Name: "agents", Kind: contract.Text, MaxLen: 1 << 20, Help: "sub-agents: JSON or a file"},
		{Name: "settings", Kind: contract.Text, MaxLen: 1 << 20, Help: "Claude Code's: JSON or a file"},
		{
			Name: "setting-sources", Kind: contract.Enum, Enum: []string{"user", "project", "local"}, Repeat: true,
			Help: "whose prohibitions apply",
		},
		{Name: "include-partial-messages", Kind: contract.Bool, Help: "parts of messages too"},
		{Name: "replay-user-messages", Kind: contract.Bool, Help: "print user messages again"},
		{Name: "no-session-persistence", Kind: contract.Bool, Help: "keep nothing of the conversation"},
		{Name: "verbose", Short: "v", Kind: contract.Bool, Help: "more on stderr"},
	})
}

// forked returns serve for a command with --fork: in a new fork if the flag is given.
func (p commands) forked(serve contract.Serve) contract.Serve {
	return func(ctx context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
		status, done, err := forks.RerunInNew(ctx, c, signals, networkOfFork(c), p.refusesTalk)
		if done || err != nil {
			return status, err
		}
		stop := forks.RelayLoopback(ctx, c)
		defer stop()
		return serve(ctx, c, signals)
	}
}

// networkOfFork returns the network of a fork around an agent. The agent needs its model, so the fork has the internet
// unless --network is on. Other values of --network limit only the agent's commands.
func networkOfFork(c *contract.Call) string {
	if c.String("network") == "on" {
		return "on"
	}
	return parts.Internet
}

// rehearsalScript is what the scripted model does in a chat if no script is given.
const rehearsalScript = `[
	{"say": "This is a rehearsal: a script answers, not a model. I run one command, as a model would."},
	{"shell": "ls"},
	{"say": "It said: ${result}\nAnd you said: ${input}"}
]`
