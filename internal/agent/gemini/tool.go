package gemini

import (
	"encoding/json"
	"strings"

	"omniagent/internal/event"
)

// kind is what a tool does.
func kind(tool string) event.ToolKind {
	switch tool {
	case "run_shell_command":
		return event.Shell
	case "read_file", "read_many_files", "list_directory":
		return event.Read
	case "write_file", "replace":
		return event.Write
	case "glob", "grep_search", "search_file_content":
		return event.Search
	case "google_web_search", "web_fetch":
		return event.Web
	case "invoke_agent", "codebase_investigator", "cli_help", "generalist":
		return event.Agent
	case "read_mcp_resource", "list_mcp_resources":
		return event.MCP
	}
	if strings.HasPrefix(tool, "mcp_") {
		return event.MCP
	}
	return event.Other
}

// call makes a Call of what the CLI says of one.
func call(id, name string, input json.RawMessage) *event.Call {
	return event.NewCall(id, name, kind(name), input, "file_path", "absolute_path", "dir_path")
}

// withheld says whether it is a tool of the CLI itself which it hides from the model where nobody can be asked, or
// where a policy forbids it. A model that calls it all the same is told that there is none.
func withheld(tool string) bool {
	switch tool {
	case "run_shell_command", "write_file", "replace", "web_fetch", "google_web_search", "ask_user", "activate_skill":
		return true
	}
	return false
}

// The words of the CLI's own tool errors, and the types that only its stream tells.
const (
	typePolicy  = "policy_violation"
	typeMissing = "tool_not_registered"

	wordsPolicy = "Tool execution denied by policy."
	wordsHook   = "Tool execution blocked: "
)

// denied says whether a tool failed because it was not allowed. Where the CLI's records have no type for an error, it
// is known by the words which the CLI itself puts there, at their beginning.
func denied(tool, errorType, message string) bool {
	switch {
	case errorType == typePolicy:
		return true
	case errorType == typeMissing:
		return withheld(tool)
	case errorType != "":
		return false
	}
	return strings.HasPrefix(message, wordsPolicy) || strings.HasPrefix(message, wordsHook) ||
		withheld(tool) && strings.HasPrefix(message, `Tool "`+tool+`" not found.`)
}
