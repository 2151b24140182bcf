package claude

import (
	"omniagent/internal/agent"
	"omniagent/internal/setting"
)

const measured = "2.1.329"

// The tools that reach the web. A command in a shell can still do it, unless a sandbox holds it.
const webTools = "WebSearch,WebFetch"

const (
	bypass   = "--dangerously-skip-permissions"
	modeFlag = "--permission-mode"
	noTools  = "--tools="
	settings = "--settings"
)

// nothing is what a cell sends where nobody chose and nothing need be said.
func nothing() []string { return []string{} }

// table is what every version that we know can do: there is one so far. The system decides what a sandbox needs.
func table(system string) agent.Matrix {
	m := agent.Matrix{
		Measured: measured,
		Limit: agent.Limit{
			Bytes: 10 << 20,
			Note:  "more is refused; long before, the CLI finds it too long for the model",
		},
	}
	m.Rows = append(m.Rows, policies(system)...)
	m.Rows = append(m.Rows, outputs()...)
	m.Rows = append(m.Rows, abilities()...)
	return m
}

func policies(system string) []agent.Row {
	return []agent.Row{
		agent.Both(agent.Approval, string(setting.DenyAll), agent.Cell{
			Level: agent.Full, Args: []string{noTools, "--strict-mcp-config"}, Note: "the model is offered no tool",
		}),
		{
			Feature: agent.Approval, Value: string(setting.AskAll),
			Interactive: agent.Cell{Level: agent.None, Note: "what only reads runs without a question"},
			OneShot: agent.Cell{
				Level: agent.Full, Args: []string{noTools, "--strict-mcp-config"},
				Note: "nobody can be asked, so the model is offered no tool",
			},
		},
		agent.Both(agent.Approval, string(setting.Plan), agent.Cell{
			Level: agent.Full, Args: []string{modeFlag, "plan"}, Note: "it writes its plan outside of the workspace",
		}),
		{
			Feature: agent.Approval, Value: string(setting.Default),
			Interactive: agent.Cell{Level: agent.Full, Args: []string{modeFlag, "default"}},
			OneShot: agent.Cell{
				Level: agent.Full, Args: []string{
					modeFlag,
					"default",
				}, Note: "as prompt: what would need an approval is denied",
			},
		},
		{
			Feature: agent.Approval, Value: string(setting.Prompt),
			Interactive: agent.Cell{Level: agent.Full, Args: []string{modeFlag, "default"}},
			OneShot: agent.Cell{
				Level: agent.Full, Args: []string{modeFlag, "default"},
				Note: "what would need an approval is denied, and the agent goes on",
			},
		},
		agent.Both(agent.Approval, string(setting.AutoEdit), agent.Cell{
			Level: agent.Full, Args: []string{modeFlag, "acceptEdits"},
			Note: "files in the workspace, also by simple commands such as touch; in a sandbox all commands",
		}),
		agent.Both(agent.Approval, string(setting.Yolo), agent.Cell{
			Level: agent.Full, Args: []string{bypass},
			Note: "refused to the superuser unless IS_SANDBOX=1 is set",
		}),
		agent.Both(agent.Sandbox, string(setting.WorkspaceWrite), sandboxed(system)),
		agent.Both(agent.Sandbox, string(setting.Off), agent.Cell{
			Level: agent.Full, Args: []string{settings + "=" + encode(noSandbox())},
			Note: "the CLI's default, said aloud because other settings may turn it on",
		}),
		agent.Both(agent.Web, "on", agent.Cell{
			Level: agent.Full, Args: []string{"--allowedTools=" + webTools},
		}),
		agent.Both(agent.Web, "off", agent.Cell{
			Level: agent.Full, Args: []string{"--disallowedTools=" + webTools},
			Note: "the tools are withheld; commands may still reach the network unless sandboxed",
		}),
	}
}

// sandboxed is the cell of workspace-write. Its arguments are those for prompt; Command fits them to the approval.
func sandboxed(system string) agent.Cell {
	c := agent.Cell{
		Level: agent.Full, Args: []string{settings + "=" + encode(sandbox(false))},
		Note: "commands write in the workspace and a temporary directory only, and reach the network only by the " +
			"CLI's proxy; file tools ask outside of it",
	}
	switch system {
	case "linux":
		c.Needs = []string{"bwrap", "socat"}
	case "darwin": // Seatbelt is a part of the system
	default:
		c = agent.Cell{Level: agent.None, Note: "the CLI has none on this system"}
	}
	return c
}

func outputs() []agent.Row {
	none := agent.Cell{Level: agent.None, Note: "only one-shot runs have a form of output"}
	row := func(o setting.Output, c agent.Cell) agent.Row {
		return agent.Row{Feature: agent.Output, Value: string(o), Interactive: none, OneShot: c}
	}
	return []agent.Row{
		{
			Feature: agent.Output, Value: string(setting.Text),
			Interactive: agent.Cell{Level: agent.Full, Note: "the agent's own screen"},
			OneShot: agent.Cell{
				Level: agent.Full, Args: []string{"--output-format=text"}, Weak: nothing(),
				Note: "the CLI's default",
			},
		},
		row(setting.JSON, agent.Cell{
			Level: agent.Full, Args: []string{"--output-format=json"},
			Note: "where a background task woke the agent again, only its last answer",
		}),
		row(setting.StreamJSON,
			agent.Cell{Level: agent.Full, Args: []string{"--output-format=stream-json", "--verbose"}}),
	}
}

func abilities() []agent.Row {
	yes := func(note string, args ...string) agent.Cell {
		return agent.Cell{Level: agent.Full, Args: args, Note: note}
	}
	no := func(note string) agent.Cell { return agent.Cell{Level: agent.None, Note: note} }
	return []agent.Row{
		agent.Both(agent.Model, "", yes("", "--model")),
		{
			Feature: agent.Schema, Interactive: no("only one-shot runs"),
			OneShot: yes(
				"an answer that the model gives without the tool for it is passed on as it is, with exit code 0",
				"--json-schema"),
		},
		agent.Both(agent.Resume, "", yes("works from other directories too", "--resume")),
		agent.Both(agent.SessionID, "", yes("an id is taken once: in the same directory an existing one is refused",
			"--session-id")),
		{
			Feature: agent.Ask, Interactive: yes(""),
			OneShot: no("the tool for questions is withheld; a question in the answer ends the run with exit code 0"),
		},
		{
			Feature: agent.RepoConfig,
			Interactive: yes(
				"once a person has trusted the directory, a repository's hooks, environment, base URL and allow " +
					"rules take effect; its MCP servers " +
					"are asked for. Its default mode does not, since the approval is always sent"),
			OneShot: yes("hooks, MCP servers, environment and base URL of a repository take effect without trust. " +
				"Its default mode does not, since the approval is always sent; its allow rules only from a " +
				".claude/settings.local.json that git does not track. " +
				"Where the passthrough's --settings replaces ours, its sandbox settings let commands run unasked"),
		},
		agent.Both(agent.RepoConfig, "off", agent.Cell{
			Level: agent.Nearest, Args: []string{settings + `={"disableAllHooks":true}`, "--strict-mcp-config"},
			Note: "the last --settings replaces the others, so they have to be one; environment, base URL and " +
				"sandbox still take effect unless it names them too, " +
				"and the allow rules of a trusted directory",
		}),
		agent.Both(agent.Denials, "", yes("in the transcript")),
		agent.Both(agent.Records, "", yes("projects/DIRECTORY/SESSION.jsonl below CLAUDE_CONFIG_DIR or ~/.claude")),
		agent.Both(agent.ACP, "", agent.Cell{
			Level: agent.Nearest, Note: "by the adapter claude-agent-acp, which brings a CLI of its own",
			Needs: []string{"claude-agent-acp"},
		}),
	}
}
