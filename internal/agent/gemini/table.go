package gemini

import (
	"omniagent/internal/agent"
	"omniagent/internal/setting"
)

// measured is the version that every cell was run with.
const measured = "0.61.0"

const (
	approvalFlag = "--approval-mode"
	sandboxFlag  = "--sandbox"
	outputFlag   = "--output-format"
	resumeFlag   = "--resume"
	sessionFlag  = "--session-id"
	policyFlag   = "--policy"
	adminFlag    = "--admin-policy"

	webPolicy = "web-off.toml" // a file in Spec.Temp; in the table it stands without its directory
)

// table is what the CLI can do. There is one for all versions so far.
//
// Of --model and --sandbox the CLI takes the last. --approval-mode and --output-format must not stand twice; see
// fitOnce.
//
// Long because it is a table.
func table(string) agent.Matrix {
	yes := func(note string, args ...string) agent.Cell {
		return agent.Cell{Level: agent.Full, Args: args, Note: note}
	}
	no := func(note string) agent.Cell { return agent.Cell{Level: agent.None, Note: note} }
	container := agent.Cell{
		Level: agent.Full, Args: []string{sandboxFlag}, Needs: []string{"docker|podman|sandbox-exec"},
		Note: "everything runs in a container; its image is fetched if it is not there",
	}
	two := func(feature, value string, interactive, oneShot agent.Cell) agent.Row {
		return agent.Row{Feature: feature, Value: value, Interactive: interactive, OneShot: oneShot}
	}
	const outside = "file tools stay in the workspace, the shell does not"
	return agent.Matrix{
		Measured: measured,
		// It estimates a quarter of a token for each UTF-16 unit. Where that and what it sends along come to more than
		// the 1,048,576 tokens of the model it sends nothing, prints nothing and exits with 0: in an empty directory
		// from 4,193,800 on. Files that it tells the model of take from that. Beyond 8 MiB it cuts. An astral character
		// has two units but four bytes, so both limits together hold for all text.
		Limit: agent.Limit{
			Characters: 4_000_000, Bytes: 8_000_000,
			Note: "beyond it the CLI sends nothing, prints nothing and exits with 0",
		},
		Rows: []agent.Row{
			agent.Both(agent.Approval, string(setting.DenyAll), no("what only reads runs without a question")),
			agent.Both(agent.Approval, string(setting.AskAll), no("what only reads runs without a question")),
			agent.Both(agent.Approval, string(setting.Plan), yes("it writes plans outside of the workspace",
				approvalFlag+"=plan")),
			two(
				agent.Approval, string(setting.Default),
				yes("", approvalFlag+"=default"),
				yes("as prompt: tools that would ask are withheld from the model", approvalFlag+"=default"),
			),
			two(
				agent.Approval, string(setting.Prompt),
				yes("", approvalFlag+"=default"),
				yes("tools that would ask are withheld from the model", approvalFlag+"=default"),
			),
			two(
				agent.Approval, string(setting.AutoEdit),
				yes("web_fetch asks no more either", approvalFlag+"=auto_edit"),
				yes("web_fetch is allowed too; tools that would ask are withheld from the model",
					approvalFlag+"=auto_edit"),
			),
			agent.Both(agent.Approval, string(setting.Yolo), yes(outside, approvalFlag+"=yolo")),

			agent.Both(agent.Sandbox, string(setting.WorkspaceWrite), container),
			agent.Both(agent.Sandbox, string(setting.Off),
				agent.Cell{Level: agent.Full, Args: []string{sandboxFlag + "=false"}, Weak: []string{}}),

			two(agent.Output, string(setting.Text), yes(""), yes("", outputFlag+"=text")),
			two(agent.Output, string(setting.JSON), no("the terminal interface has no other form"),
				yes("one object at the end; on an error it goes to standard error", outputFlag+"=json")),
			two(agent.Output, string(setting.StreamJSON), no("the terminal interface has no other form"),
				yes("", outputFlag+"=stream-json")),

			agent.Both(agent.Model, "", yes("without one a small model is asked first which to take", "--model")),

			two(agent.Web, "on", yes("it is the default; web_fetch asks unless the approval allows it"),
				yes("it is the default; web_fetch is withheld unless the approval allows it")),
			agent.Both(agent.Web, "off",
				yes("by a policy for google_web_search and web_fetch; the shell can still reach the network",
					adminFlag+"="+webPolicy)),

			agent.Both(agent.Schema, "", no("")),
			agent.Both(agent.Resume, "", yes("", resumeFlag)),
			agent.Both(agent.SessionID, "", yes("one that exists already is refused (42)", sessionFlag)),
			two(agent.Ask, "", yes(""), no("ask_user is withheld")),
			agent.Both(agent.RepoConfig, "",
				yes("where it is trusted: hooks, MCP servers, settings, .env, and they can widen the approval; "+
					"elsewhere a one-shot run is refused (55), and with --skip-trust only .env counts, which can "+
					"name another API")),
			two(
				agent.Denials, "",
				agent.Cell{Level: agent.Nearest, Note: "what a policy, a hook or a person refused is recorded"},
				agent.Cell{
					Level: agent.Nearest,
					Note:  "what a policy or a hook refused is recorded; tools that are withheld leave no trace",
				},
			),
			agent.Both(agent.Records, "", yes("~/.gemini/tmp/PROJECT/chats")),
			agent.Both(agent.ACP, "", yes("", "--acp")),
		},
	}
}
