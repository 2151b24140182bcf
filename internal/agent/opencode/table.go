package opencode

import (
	"omniagent/internal/agent"
)

// measured is the version that every cell was run with. No other was, so its table serves for all.
const measured = "1.18.33"

// table is what a version can do. The parts of OPENCODE_PERMISSION that its rows name are sent as one value.
//
// It leaves edit out with auto-edit, where the CLI's own default is to allow: a value sent here would also undo what
// the plan agent denies.
func table(string) agent.Matrix {
	return agent.Matrix{
		Measured: measured,
		Limit:    agent.Limit{Note: "none was found up to 20 MB; the model's own holds"},
		Rows: append([]agent.Row{
			agent.Both(agent.Sandbox, "workspace-write",
				agent.Cell{Level: agent.None, Note: "opencode has no sandbox"}),
			agent.Both(agent.Sandbox, "off", agent.Cell{Level: agent.Full}),
			agent.Both(agent.Model, "", agent.Cell{
				Level: agent.Full, Args: []string{"-m"}, Note: "as provider/model",
			}),
			agent.Both(agent.Web, "on", agent.Cell{
				Level: agent.Full, Env: []string{permissionName + `={"webfetch":"allow","websearch":"allow"}`},
				Note: "websearch is offered by opencode's own models only, or with OPENCODE_ENABLE_EXA=1",
			}),
			agent.Both(agent.Web, "off", agent.Cell{
				Level: agent.Full, Env: []string{permissionName + `={"webfetch":"deny","websearch":"deny"}`},
				Note: "the tools are not offered; a command can still reach the network",
			}),
			agent.Both(agent.Resume, "", agent.Cell{Level: agent.Full, Args: []string{"--session"}}),
			agent.Both(agent.Schema, "", agent.Cell{Level: agent.None}),
			agent.Both(agent.SessionID, "", agent.Cell{
				Level: agent.None,
				Note:  "it makes its own; that of a one-shot run is found afterwards by its title",
			}),
			agent.Both(agent.RepoConfig, "", agent.Cell{
				Level: agent.Full,
				Note: "opencode.json starts MCP servers, widens permissions and can send the key elsewhere, " +
					".opencode/plugin runs as a program; OPENCODE_DISABLE_PROJECT_CONFIG=1 leaves the plugins that " +
					"lie in .opencode or that any opencode.json names, which --pure does not stop either, and skills " +
					"of .claude and .agents. A conversation is refused where a plugin is not trusted",
			}),
			agent.Both(agent.ACP, "", agent.Cell{Level: agent.Full, Args: []string{"acp"}}),
		}, moded()...),
	}
}

// moded are the rows that differ between the modes.
// Long because it is a table.
func moded() []agent.Row {
	ask := `={"edit":"ask","bash":"ask"}`
	edit := `={"bash":"ask"}`
	rejected := "edits and commands are rejected, and the first rejection ends the turn; MCP tools run"
	lines := agent.Cell{
		Level: agent.Nearest, Args: []string{"--format=json"},
		Note: "one JSON object a line, without a last one for the result",
	}
	stream := lines
	stream.Level, stream.Note = agent.Full, "text comes whole, not in pieces"
	none := agent.Cell{Level: agent.None, Note: "there is no such form in the terminal interface"}
	all := func(action string) []string { return []string{permissionName + `={"*":"` + action + `"}`} }
	plan := []string{permissionName +
		`={"*":"deny","read":"allow","glob":"allow","grep":"allow","list":"allow","todowrite":"allow"}`}
	return []agent.Row{
		agent.Both(agent.Approval, "deny", agent.Cell{Level: agent.Full, Env: all("deny"), Note: "no tool is offered"}),
		{
			Feature: agent.Approval, Value: "ask",
			Interactive: agent.Cell{Level: agent.Full, Env: all("ask")},
			OneShot: agent.Cell{
				Level: agent.Full, Env: all("ask"),
				Note: "every call is rejected, and the first rejection ends the turn",
			},
		},
		agent.Both(agent.Approval, "plan",
			agent.Cell{Level: agent.Full, Env: plan, Note: "commands and tools of servers are not offered"}),
		{
			Feature: agent.Approval, Value: "default",
			Interactive: agent.Cell{
				Level: agent.Full, Env: []string{permissionName + ask},
				Note: "it asks before edits and commands; MCP tools run",
			},
			OneShot: agent.Cell{
				Level: agent.Full, Env: []string{permissionName + ask},
				Note: "as prompt: " + rejected,
			},
		},
		{
			Feature: agent.Approval, Value: "prompt",
			Interactive: agent.Cell{
				Level: agent.Full, Env: []string{permissionName + ask},
				Note: "it asks before edits and commands; MCP tools run",
			},
			OneShot: agent.Cell{Level: agent.Full, Env: []string{permissionName + ask}, Note: rejected},
		},
		{
			Feature: agent.Approval, Value: "auto-edit",
			Interactive: agent.Cell{
				Level: agent.Full, Env: []string{permissionName + edit},
				Note: "it asks before commands",
			},
			OneShot: agent.Cell{
				Level: agent.Full, Env: []string{permissionName + edit},
				Note: "commands are rejected, and the first rejection ends the turn",
			},
		},
		agent.Both(agent.Approval, "yolo", agent.Cell{
			Level: agent.Full, Args: []string{"--auto"},
			Note: "outside the project too; what the configuration denies stays denied",
		}),
		agent.Both(agent.Output, "text", agent.Cell{Level: agent.Full}),
		{Feature: agent.Output, Value: "json", Interactive: none, OneShot: lines},
		{Feature: agent.Output, Value: "stream-json", Interactive: none, OneShot: stream},
		{
			Feature:     agent.Ask,
			Interactive: agent.Cell{Level: agent.Full},
			OneShot:     agent.Cell{Level: agent.None, Note: "the tool for questions is withheld"},
		},
		{
			Feature:     agent.Denials,
			Interactive: agent.Cell{Level: agent.None, Note: "a person answers"},
			OneShot:     agent.Cell{Level: agent.Full, Note: "from its database"},
		},
		{
			Feature: agent.Records,
			Interactive: agent.Cell{
				Level: agent.Nearest,
				Note:  "a database; which session is this one's is known only where --session names it",
			},
			OneShot: agent.Cell{Level: agent.Full, Note: "opencode.db, read without changing it"},
		},
	}
}
