package copilot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// logEvent is one event of the CLI: a line of its JSON output, or of a session's log. Both have the same form, but the
// log has no ephemeral events, and the output has no permissions and usage.
type logEvent struct {
	Type  string          `json:"type"`
	Time  string          `json:"timestamp"`
	Agent string          `json:"agentId"` // the sub-agent, if any
	Data  json.RawMessage `json:"data"`

	// For the type result, which has no data.
	Session  string `json:"sessionId"`
	ExitCode *int   `json:"exitCode"`
}

// parse reads a line. It rejects null and everything else that is not an object.
func parse(line []byte) (logEvent, bool) {
	var r logEvent
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &r) != nil || r.Type == "" {
		return logEvent{}, false
	}
	return r, true
}

// into reads the data. Members of an unexpected type keep their zero value, because a changed CLI must not stop us.
func (r logEvent) into(v any) { _ = json.Unmarshal(r.Data, v) }

// typeOf returns the type of a record without reading the rest, which may be megabytes. If the type does not come
// first, it returns "", and the whole record is read.
func typeOf(line []byte) string {
	rest, ok := bytes.CutPrefix(line, []byte(`{"type":"`))
	if !ok {
		return ""
	}
	i := bytes.IndexByte(rest, '"')
	if i < 0 || i > 64 {
		return ""
	}
	return string(rest[:i])
}

type message struct {
	Content      string            `json:"content"`
	Model        string            `json:"model"`
	ToolRequests []json.RawMessage `json:"toolRequests"`
}

type toolStart struct {
	ID        string          `json:"toolCallId"`
	Name      string          `json:"toolName"`
	Arguments json.RawMessage `json:"arguments"`
	Server    string          `json:"mcpServerName"`
}

type toolEnd struct {
	ID      string `json:"toolCallId"`
	Success bool   `json:"success"`
	Result  struct {
		Content string `json:"content"`
	} `json:"result"`
	Error *struct {
		Message     string `json:"message"`
		Code        string `json:"code"`
		Remediation string `json:"remediation"`
	} `json:"error"`
	Shell *struct {
		ExitCode int `json:"exitCode"`
	} `json:"shellExecution"`
}

// denied reports whether policy refused the call: a rule, nobody to ask, or the policy of the sandbox.
func (t toolEnd) denied() bool {
	return t.Error != nil && (t.Error.Code == "denied" || t.Error.Remediation == "review_sandbox_policy" ||
		t.Error.Remediation == "allow_sandbox_outbound")
}

type permission struct {
	ID     string `json:"toolCallId"`
	Result struct {
		Kind string `json:"kind"`
	} `json:"result"`
	By string `json:"decisionSource"`
}

type sessionError struct {
	Type    string `json:"errorType"`
	Code    string `json:"errorCode"`
	Message string `json:"message"`
	Status  int    `json:"statusCode"`
}

// failure is a failed request. Only the output has it.
type failure struct {
	Status  int    `json:"statusCode"`
	Code    string `json:"errorCode"`
	Kind    string `json:"badRequestKind"`
	Message string `json:"errorMessage"`
}

type usage struct {
	Model     string `json:"model"`
	Input     int64  `json:"inputTokens"` // including Cached
	Output    int64  `json:"outputTokens"`
	Cached    int64  `json:"cacheReadTokens"`
	Reasoning int64  `json:"reasoningTokens"`
}

// kindOf returns the kind of a tool.
func kindOf(name, server string) event.ToolKind {
	if server != "" {
		return event.MCP
	}
	return cli.Kinds{
		event.Shell: "bash read_bash stop_bash list_bash write_bash " +
			"powershell read_powershell stop_powershell list_powershell write_powershell",
		event.Read:   "view show_file",
		event.Write:  "create edit str_replace_editor apply_patch",
		event.Web:    "web_fetch web_search",
		event.Search: "grep glob lexical_code_search semantic_code_search grep_search file_search",
		event.Agent:  "task read_agent write_agent list_agents",
	}.Of(name, "github-mcp-server-")
}

func (t toolStart) call() *event.Call {
	return event.NewCall(t.ID, t.Name, kindOf(t.Name, t.Server), t.Arguments, "path")
}

// sessionFault returns the fault of a session.error. last is the failed request before it, if known.
func sessionFault(e sessionError, last failure) *fault.Fault {
	text := cmp.Or(strings.TrimSpace(e.Message), "an error without a message")
	status := e.Status
	if status == 0 && e.Type == "rate_limit" {
		status = 429
	}
	f := fault.New(fault.APIError, "the model did not answer: %s", text)
	switch {
	case overlong(e, last):
		f = fault.New(fault.ContextFull, "the conversation is longer than the model can read: %s", text)
	case e.Type == "authentication" || e.Type == "authorization" || status == 401 || status == 403:
		f = fault.New(fault.AuthRequired, "the model's provider did not accept the login: %s", text).
			Hint("log in with copilot login, or correct COPILOT_PROVIDER_API_KEY where that is set")
	case e.Type == "quota" || status == 402:
		f = fault.New(fault.QuotaExhausted, "the account with the model's provider is used up: %s", text)
	case e.Type == "rate_limit" || status == 429:
		f = fault.New(fault.TooManyRequests, "the model's provider asks for fewer requests: %s", text)
	}
	if status != 0 {
		f.With("status", status)
	}
	if e.Code != "" {
		f.With("error_code", e.Code)
	}
	return f
}

// overlong reports whether the conversation is too long. The CLI's own two messages have no code. A provider's code is
// only in the output, but its message is in the log too.
func overlong(e sessionError, last failure) bool {
	if e.Type == "context_limit" || last.Code == "context_length_exceeded" || last.Kind == "context_length_exceeded" {
		return true
	}
	for _, words := range []string{
		"exceeds the model's prompt budget", "rejected the prompt as too long", // the CLI
		"maximum context length", "prompt is too long", "context_length_exceeded", // providers
	} {
		if strings.Contains(e.Message, words) {
			return true
		}
	}
	return false
}
