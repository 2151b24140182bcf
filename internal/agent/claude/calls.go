package claude

import (
	"strings"

	"omniagent/internal/event"
	wire "omniagent/internal/proto/claude"
)

// call is a tool called by the model, in our words.
func call(b wire.Block) *event.Call {
	return event.NewCall(b.ID, b.Name, kind(b.Name), b.Input, "file_path", "notebook_path")
}

func kind(tool string) event.ToolKind {
	switch tool {
	case "Bash", "PowerShell", "Monitor":
		return event.Shell
	case "Read", "NotebookRead":
		return event.Read
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return event.Write
	case "WebFetch", "WebSearch":
		return event.Web
	case "Grep", "Glob", "LS":
		return event.Search
	case "Agent", "Task":
		return event.Agent
	}
	if strings.HasPrefix(tool, "mcp__") {
		return event.MCP
	}
	return event.Other
}

// refused says whether policy forbade the tool.
func refused(kind string, d wire.Decision) bool {
	switch kind {
	case "user-rejected", "permission-rule":
		return d.Decision == "reject"
	case "automode-blocked", "automode-unavailable", "automode-parsing-error":
		return true
	}
	return false
}
