package copilot

import (
	"omniagent/internal/agent"
	"omniagent/internal/setting"
)

// measured is the version that every cell was run with.
const measured = "1.0.102"

const (
	allowAll     = "--allow-all-tools"
	yoloFlag     = "--yolo"
	planFlag     = "--plan"
	writeFlag    = "--allow-tool=write"
	sandboxFlag  = "--sandbox"
	noSandbox    = "--no-sandbox"
	outputFlag   = "--output-format"
	modelFlag    = "--model"
	resumeFlag   = "--resume"
	sessionFlag  = "--session-id"
	excludeFlag  = "--excluded-tools"
	denyFlag     = "--deny-tool"
	allURLs      = "--allow-all-urls"
	stayHere     = "COPILOT_DISABLE_RESUME_AUTO_CD=true"
	promptsAgain = "COPILOT_ALLOW_ALL=false"
	noJudge      = "COPILOT_ASSISTED_APPROVAL=false"
)

// What --web off means where it is sent, and where it need not be.
const (
	withheld = "the tool is withheld; commands still reach the network where the approval lets them run"
	notAsked = "nobody asked: nothing is sent; a fetch needs an approval"
)

// nothing is what a cell sends where nobody chose and nothing need be said.
func nothing() []string { return []string{} }

// table is what every version that we know can do: there is one so far. The system decides what a sandbox needs.
//
// Every flag may be repeated, and of two that contradict each other the last holds, so that nothing needs a weak
// spelling of its own; lists add up, and what is denied or excluded once stays so.
func table(system string) agent.Matrix {
	m := agent.Matrix{
		Measured: measured,
		Limit:    agent.Limit{Note: "the model's budget decides; what is longer is refused before it is sent"},
	}
	m.Rows = append(m.Rows, policies(system)...)
	m.Rows = append(m.Rows, outputs()...)
	m.Rows = append(m.Rows, abilities()...)
	return m
}

func policies(system string) []agent.Row {
	// No flag asks for approvals: it is what happens without one. A variable of the user's would turn them off; a
	// repository's settings cannot.
	careful := []string{promptsAgain, noJudge}
	reads := agent.Cell{Level: agent.None, Note: "what only reads runs without a question"}
	return []agent.Row{
		agent.Both(agent.Approval, string(setting.DenyAll), reads),
		agent.Both(agent.Approval, string(setting.AskAll), reads),
		agent.Both(agent.Approval, string(setting.Plan), agent.Cell{
			Level: agent.Full, Args: []string{planFlag, denyFlag + "=write", denyFlag + "=shell"}, Env: careful,
			Note: "commands are denied, those that only read too",
		}),
		{
			Feature: agent.Approval, Value: string(setting.Default),
			Interactive: agent.Cell{Level: agent.Full, Env: careful},
			OneShot: agent.Cell{
				Level: agent.Full, Env: careful,
				Note: "as prompt: what would need an approval is denied",
			},
		},
		{
			Feature: agent.Approval, Value: string(setting.Prompt),
			Interactive: agent.Cell{Level: agent.Full, Env: careful},
			OneShot: agent.Cell{
				Level: agent.Full, Env: careful,
				Note: "what would need an approval is denied, and the agent goes on",
			},
		},
		agent.Both(agent.Approval, string(setting.AutoEdit), agent.Cell{
			Level: agent.Full, Args: []string{writeFlag}, Env: careful,
			Note: "files in the workspace, also by commands that only read and redirect their output",
		}),
		agent.Both(agent.Approval, string(setting.Yolo), agent.Cell{Level: agent.Full, Args: []string{yoloFlag}}),
		agent.Both(agent.Sandbox, string(setting.WorkspaceWrite), sandboxed(system)),
		agent.Both(agent.Sandbox, string(setting.Off), agent.Cell{
			Level: agent.Full, Args: []string{noSandbox},
			Note: "the CLI's default, said aloud because a person's own settings may turn it on",
		}),
		agent.Both(agent.Web, "on", agent.Cell{
			Level: agent.Full, Args: []string{allURLs},
			Note: "pages are fetched without asking; a web search needs a GitHub login",
		}),
		agent.Both(agent.Web, "off", agent.Cell{
			Level: agent.Full, Args: []string{excludeFlag + "=web_fetch", denyFlag + "=github-mcp-server(web_search)"},
			Weak: nothing(),
			Note: withheld + "; " + notAsked + ". With yolo it is sent all the same",
		}),
	}
}

func sandboxed(system string) agent.Cell {
	c := agent.Cell{
		Level: agent.Full, Args: []string{sandboxFlag},
		Note: "commands write in the workspace and temporary directories only; the network stays open; file tools " +
			"are held by the CLI itself",
	}
	switch system {
	case "linux":
		c.Needs = helpers()
	case "darwin": // Seatbelt is a part of the system
	default:
		c = agent.Cell{
			Level: agent.Nearest, Args: []string{sandboxFlag}, Weak: nothing(),
			Note: "not measured on this system",
		}
	}
	return c
}

// helpers are the programs without one of which every sandboxed command fails. The CLI needs unshare as well, which is
// where nsenter is.
func helpers() []string { return []string{"bwrap", "slirp4netns", "iptables", "ip6tables", "nsenter"} }

func outputs() []agent.Row {
	none := agent.Cell{Level: agent.None, Note: "only one-shot runs have a form of output"}
	row := func(o setting.Output, interactive, oneShot agent.Cell) agent.Row {
		return agent.Row{Feature: agent.Output, Value: string(o), Interactive: interactive, OneShot: oneShot}
	}
	return []agent.Row{
		row(setting.Text, agent.Cell{Level: agent.Full}, agent.Cell{
			Level: agent.Full, Args: []string{outputFlag + "=text"}, Weak: nothing(),
			Note: "the answer with what the tools did; -s leaves the answer",
		}),
		row(setting.JSON, none, agent.Cell{
			Level: agent.Nearest, Args: []string{outputFlag + "=json"},
			Note: "one object a line while it works, the last one with the exit code",
		}),
		row(setting.StreamJSON, none, agent.Cell{Level: agent.Full, Args: []string{outputFlag + "=json"}}),
	}
}

func abilities() []agent.Row {
	yes := func(note string, args ...string) agent.Cell {
		return agent.Cell{Level: agent.Full, Args: args, Note: note}
	}
	no := func(note string) agent.Cell { return agent.Cell{Level: agent.None, Note: note} }
	resume := yes("in the directory of this call; without the variable the CLI goes to that of the session", resumeFlag)
	resume.Env = []string{stayHere}
	const trusted = "hooks and MCP servers of a repository run where the directory was trusted or COPILOT_ALLOW_ALL " +
		"is exactly true; "
	unasked := []string{
		promptsAgain, "COPILOT_PROMPT_MODE_REPO_HOOKS=false", "COPILOT_PROMPT_MODE_WORKSPACE_MCP=false",
		"COPILOT_PROMPT_MODE_EXTENSIONS=false",
	}
	off := agent.Cell{
		Level: agent.Nearest, Env: unasked,
		Note: "in a directory that was trusted, hooks and MCP servers still run; instructions are read, unless " +
			"--no-custom-instructions is passed on",
	}
	return []agent.Row{
		agent.Both(agent.Model, "", yes("", modelFlag)),
		agent.Both(agent.Schema, "", no("")),
		agent.Both(agent.Resume, "", resume),
		agent.Both(agent.SessionID, "", yes("an existing one is gone on with", sessionFlag)),
		{
			Feature: agent.Ask, Interactive: yes(""),
			OneShot: no("the tool for questions is withheld; a question in the answer ends the run with exit code 0"),
		},
		{
			Feature: agent.RepoConfig,
			Interactive: yes(
				"once the directory is trusted, which it asks for: hooks, MCP servers and extensions; approval, " +
					"sandbox and model stay as they are"),
			OneShot: agent.Cell{
				Level: agent.Nearest, Note: trusted +
					"instructions, skills and agents are read always; approval, sandbox and model stay as they are",
			},
		},
		agent.Both(agent.RepoConfig, "off", off),
		{
			Feature: agent.Denials, Interactive: no("a person sees them"), OneShot: yes("in the session's event log"),
		},
		agent.Both(agent.Records, "", yes("session-state/SESSION/events.jsonl below COPILOT_HOME or ~/.copilot")),
		agent.Both(agent.ACP, "", yes("version 1", "--acp")),
	}
}
