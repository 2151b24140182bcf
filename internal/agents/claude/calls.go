package claude

import (
	"omniagent/internal/agents/cli"
	"omniagent/internal/core/event"
	wire "omniagent/internal/wire/claude"
)

// call converts a tool_use block.
func call(b wire.Block) *event.Call {
	return event.NewCall(b.ID, b.Name, kind(b.Name), b.Input, "file_path", "notebook_path")
}

func kind(tool string) event.ToolKind {
	return cli.Kinds{
		event.Shell:  "Bash PowerShell Monitor",
		event.Read:   "Read NotebookRead",
		event.Write:  "Write Edit MultiEdit NotebookEdit",
		event.Web:    "WebFetch WebSearch",
		event.Search: "Grep Glob LS",
		event.Agent:  "Agent Task",
	}.Of(tool, "mcp__")
}

// refused reports whether policy, not a person's answer, forbade a call.
func refused(kind string, d wire.Decision) bool {
	switch kind {
	case "user-rejected", "permission-rule":
		return d.Decision == "reject"
	case "automode-blocked", "automode-unavailable", "automode-parsing-error":
		return true
	}
	return false
}
