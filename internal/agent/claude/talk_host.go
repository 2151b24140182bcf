package claude

import (
	"encoding/json"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/setting"
)

// hookInput is what a hook is told.
type hookInput struct {
	Event    string          `json:"hook_event_name"`
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	ToolUse  string          `json:"tool_use_id"`
	Response json.RawMessage `json:"tool_response"`
	Error    string          `json:"error"`
	Prompt   string          `json:"prompt"`
	Last     string          `json:"last_assistant_message"`
	Source   string          `json:"source"`
	Reason   string          `json:"reason"`
	Trigger  string          `json:"trigger"`
	Kind     string          `json:"agent_type"`
	Parent   string          `json:"parent_tool_use_id"`
	Again    bool            `json:"stop_hook_active"`
}

// hooked is a moment at which the host may have a word. Without a host it is our own, for the modes that the CLI does
// not have.
func (t *talk) hooked(id string, raw []byte) {
	var l struct {
		Request struct {
			Input hookInput `json:"input"`
		} `json:"request"`
	}
	if json.Unmarshal(raw, &l) != nil {
		t.reject(id, "it cannot be read")
		return
	}
	in := l.Request.Input
	t.needs[id] = in.Event
	if !t.o.hooks || t.mode == setting.DenyAll && in.Event == string(agent.BeforeTool) {
		t.met(cli.Met{Need: id})
		return
	}
	m := &agent.Moment{
		Name: agent.MomentName(in.Event), Parent: in.Parent, Again: in.Again,
		Text: firstOf(in.Prompt, in.Last, in.Source, in.Reason, in.Trigger, in.Kind),
	}
	if in.Tool != "" {
		m.Call = call(block{ID: in.ToolUse, Name: in.Tool, Input: in.Input})
		if len(in.Response) > 0 || in.Error != "" {
			m.Result = &event.Result{
				ID: in.ToolUse, Name: in.Tool, Failed: in.Error != "",
				Output: firstOf(in.Error, outputOf(in.Response)),
			}
		}
	}
	t.step.Needs = append(t.step.Needs, cli.Need{ID: id, Moment: m})
}

// outputOf is the text of a tool's answer, or all of it where it has another form.
func outputOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if text = plain(raw); text != "" {
		return text
	}
	var command struct {
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}
	if json.Unmarshal(raw, &command) == nil && command.Stdout+command.Stderr != "" {
		return command.Stdout + command.Stderr
	}
	return string(raw)
}

// served is a message for an MCP server that lives in the host.
func (t *talk) served(id string, raw []byte) {
	var l struct {
		Request struct {
			Server  string          `json:"server_name"`
			Message json.RawMessage `json:"message"`
		} `json:"request"`
	}
	if json.Unmarshal(raw, &l) != nil || len(l.Request.Message) == 0 {
		t.reject(id, "it cannot be read")
		return
	}
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(l.Request.Message, &m)
	t.needs[id] = string(firstRaw(m.ID, json.RawMessage("null")))
	t.step.Needs = append(t.step.Needs, cli.Need{ID: id, Server: l.Request.Server, Message: l.Request.Message})
}

// met passes on what the host says.
func (t *talk) met(m cli.Met) {
	what, open := t.needs[m.Need]
	if !open {
		return
	}
	delete(t.needs, m.Need)
	if what != "" && what[0] >= 'A' && what[0] <= 'Z' {
		t.respond(m.Need, t.worded(agent.MomentName(what), m.Word))
		return
	}
	var answer any = json.RawMessage(m.Message)
	if m.Err != nil || !json.Valid(m.Message) {
		message := "the server did not answer"
		if m.Err != nil {
			message = m.Err.Error()
		}
		answer = map[string]any{
			"jsonrpc": "2.0", "id": json.RawMessage(what),
			"error": map[string]any{"code": -32603, "message": message},
		}
	}
	if what == "null" { // of a notification nothing is expected but that it was heard
		answer = map[string]any{"jsonrpc": "2.0", "id": 0, "result": map[string]any{}}
	}
	t.respond(m.Need, map[string]any{"mcp_response": answer})
}

// worded is a host's word in the CLI's form, with the mode in it.
func (t *talk) worded(name agent.MomentName, w agent.Word) map[string]any {
	out, special := map[string]any{}, map[string]any{"hookEventName": string(name)}
	if name == agent.BeforeTool {
		switch {
		case t.mode == setting.DenyAll:
			w.Decision, w.Reason, w.Input = "deny", "nothing runs in this conversation", nil
		case t.mode == setting.AskAll && w.Decision == "":
			w.Decision, w.Reason = "ask", "every call is asked about"
		}
		if w.Decision != "" {
			special["permissionDecision"], special["permissionDecisionReason"] = w.Decision, w.Reason
		}
		if len(w.Input) > 0 {
			special["updatedInput"] = w.Input
		}
	} else if w.Decision == "deny" {
		out["decision"], out["reason"] = "block", w.Reason
	}
	if w.Context != "" {
		special["additionalContext"] = w.Context
	}
	if len(special) > 1 {
		out["hookSpecificOutput"] = special
	}
	if w.End != "" {
		out["continue"], out["stopReason"] = false, w.End
	}
	if w.Note != "" {
		out["systemMessage"] = w.Note
	}
	return out
}
