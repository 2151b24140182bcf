package codex

import (
	"omniagent/internal/agent"
	"omniagent/internal/setting"
)

const measured = "0.169.0" // the version that every cell was run with

// The names of sandboxes, in Codex's words.
const (
	workspaceWrite = "workspace-write"
	readOnly       = "read-only"
	fullAccess     = "danger-full-access"
)

// unasked is what --approval prompt does not keep it from.
const unasked = "inside the workspace it writes without asking"

// planned is what --approval plan is.
const planned = "commands run in a sandbox in which nothing can be written, and nothing is asked"

// config is one setting as -c takes it. Repeated, the last counts; a flag for the same thing counts more, wherever it
// stands.
func config(key, value string) []string {
	return []string{"-c", key + "=" + quote(value)}
}

func row(feature, value string, interactive, oneShot agent.Cell) agent.Row {
	return agent.Row{Feature: feature, Value: value, Interactive: interactive, OneShot: oneShot}
}

func join(lists ...[]string) []string {
	out := []string{}
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// table is what the version can do. One was measured, so it stands for all.
func table(string) agent.Matrix {
	return agent.Matrix{
		Measured: measured,
		Limit:    agent.Limit{Characters: 1 << 20, Note: "codex exec rejects a longer one, exit code 1"},
		Rows:     append(append(approvals(), sandboxes()...), append(outputs(), others()...)...),
	}
}

// approvals: exec never asks, whatever the policy says, unless a model is set up as the reviewer; so the person is
// named as the reviewer always. The settings of a user, and of a repository which a user trusts, would otherwise change
// that.
func approvals() []agent.Row {
	person := config("approvals_reviewer", "user")
	exec := join(config("approval_policy", "never"), person)
	ask := func(word, note string) agent.Cell {
		return agent.Cell{
			Level: agent.Full, Note: note,
			Args: join([]string{"--ask-for-approval", word}, person),
			Weak: join(config("approval_policy", word), person),
		}
	}
	oneShot := func(note string) agent.Cell { return agent.Cell{Level: agent.Full, Args: exec, Note: note} }
	// nearest: the sandbox is what it asks about, so under the default one it does not ask about the workspace.
	nearest := func(c agent.Cell) agent.Cell {
		c.Level = agent.Nearest
		return c
	}
	reads := agent.Cell{Level: agent.None, Note: "what only reads runs without a question"}
	return []agent.Row{
		agent.Both(agent.Approval, string(setting.DenyAll), reads),
		agent.Both(agent.Approval, string(setting.AskAll), reads),
		row(agent.Approval, string(setting.Plan),
			agent.Cell{Level: agent.Full, Args: join([]string{"--ask-for-approval", "never", "--sandbox", readOnly},
				person), Note: planned},
			agent.Cell{Level: agent.Full, Args: join(exec, []string{"--sandbox", readOnly}), Note: planned},
		),
		row(agent.Approval, string(setting.Default),
			nearest(ask("on-request", unasked+", commands run too; it asks before anything beyond")),
			oneShot("inside the sandbox it writes and runs commands; anything beyond is denied"),
		),
		row(agent.Approval, string(setting.Prompt),
			nearest(ask("on-request", unasked+", commands run too; it asks before anything beyond")),
			nearest(oneShot(unasked+
				", commands run too; anything beyond is denied, because exec cannot ask; with -- --sandbox read-only "+
				"the workspace stays as it is")),
		),
		row(agent.Approval, string(setting.AutoEdit),
			ask("on-request", "inside the sandbox commands run too; it asks before anything beyond"),
			oneShot("inside the sandbox commands run too; anything beyond is denied, MCP tools as well"),
		),
		row(agent.Approval, string(setting.Yolo),
			ask("never", ""),
			oneShot("with --sandbox workspace-write MCP tools are denied"),
		),
	}
}

func sandboxes() []agent.Row {
	sandbox := func(word, note string) agent.Cell {
		return agent.Cell{
			Level: agent.Full, Note: note,
			Args: []string{"--sandbox", word}, Weak: config("sandbox_mode", word),
		}
	}
	return []agent.Row{
		agent.Both(agent.Sandbox, string(setting.WorkspaceWrite), sandbox(workspaceWrite,
			"writes go to the workspace and to temporary directories, .git aside; no network")),
		agent.Both(agent.Sandbox, string(setting.Off), sandbox(fullAccess, "")),
	}
}

func outputs() []agent.Row {
	none := agent.Cell{Level: agent.None, Note: "the terminal interface has no form for programs"}
	text := agent.Cell{Level: agent.Full}
	lines := agent.Cell{Level: agent.Full, Args: []string{"--json"}}
	return []agent.Row{
		row(agent.Output, string(setting.Text), text, text),
		row(agent.Output, string(setting.JSON), none, agent.Cell{
			Level: agent.Nearest, Args: []string{"--json"},
			Note: "JSON lines, not one object",
		}),
		row(agent.Output, string(setting.StreamJSON), none, lines),
	}
}

func others() []agent.Row {
	yes := func(note string, args ...string) agent.Cell {
		return agent.Cell{Level: agent.Full, Args: args, Note: note}
	}
	no := func(note string) agent.Cell { return agent.Cell{Level: agent.None, Note: note} }
	return []agent.Row{
		agent.Both(agent.Model, "", yes("", "--model")),
		agent.Both(agent.Web, "on", yes("live search", config("web_search", "live")...)),
		agent.Both(agent.Web, "off", yes("", config("web_search", "disabled")...)),
		row(agent.Schema, "", no(""),
			yes("a schema that the model's service takes: every object closed, every member required",
				"--output-schema")),
		agent.Both(agent.Resume, "", yes("resume ID; behind it exec does not take --sandbox", "resume")),
		agent.Both(agent.SessionID, "", no("it makes its own")),
		row(agent.Ask, "", yes("approvals, and questions in plan mode"),
			no("a question of the model becomes a part of its answer")),
		agent.Both(agent.RepoConfig, "",
			no("only in a project that codex itself was told to trust: then its MCP servers are started, outside of "+
				"the sandbox, and its hooks after a review; AGENTS.md is always read")),
		row(agent.Denials, "",
			agent.Cell{Level: agent.Nearest, Note: "what policy rejected, not what a person declined"},
			agent.Cell{
				Level: agent.Nearest,
				Note: "in the transcript, but for what a script of the model caught, and connections that the " +
					"sandbox stopped",
			},
		),
		agent.Both(agent.Records, "", yes("$CODEX_HOME/sessions; not with --ephemeral")),
		agent.Both(agent.ACP, "", agent.Cell{Level: agent.Nearest, Note: "with the adapter codex-acp"}),
	}
}
