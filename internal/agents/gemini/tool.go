package gemini

import (
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/event"
)

// kind returns the kind of a tool.
func kind(tool string) event.ToolKind {
	return cli.Kinds{
		event.Shell:  "run_shell_command",
		event.Read:   "read_file read_many_files list_directory",
		event.Write:  "write_file replace",
		event.Search: "glob grep_search search_file_content",
		event.Web:    "google_web_search web_fetch",
		event.Agent:  "invoke_agent codebase_investigator cli_help generalist",
		event.MCP:    "read_mcp_resource list_mcp_resources",
	}.Of(tool, "mcp_")
}

// call returns the event for a tool call.
func call(id, name string, input json.RawMessage) *event.Call {
	return event.NewCall(id, name, kind(name), input, "file_path", "absolute_path", "dir_path")
}

// withheld reports whether the CLI may hide one of its own tools from the model, because nobody can be asked or a
// policy forbids it. If the model calls it anyway, the CLI answers that it does not exist.
func withheld(tool string) bool {
	return slices.Contains([]string{
		"run_shell_command", "write_file", "replace", "web_fetch", "google_web_search", "ask_user", "activate_skill",
	}, tool)
}

// The CLI's messages for denied tools, and the types of errors, which only its stream has.
const (
	typePolicy  = "policy_violation"
	typeMissing = "tool_not_registered"

	wordsPolicy = "Tool execution denied by policy."
	wordsHook   = "Tool execution blocked: "
)

// denied reports whether a tool failed because it was not allowed. The CLI's records have no error types, so there the
// beginning of the message decides.
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
