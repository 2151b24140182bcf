package claude

import (
	"cmp"
	"encoding/json"

	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	wire "omniagent/internal/wire/claude"
	"omniagent/internal/wire/jsonrpc"
)

// hook handles a moment at which the host may intervene. Our own hook enforces the modes that the CLI does not have.
func (t *talk) hook(id string, raw []byte) {
	var in wire.HookInput
	if json.Unmarshal(raw, &in) != nil {
		t.reject(id, "invalid request")
		return
	}
	t.needs[id] = need{moment: agent.MomentName(in.Event)}
	if !t.o.hooks || t.mode == setting.DenyAll && in.Event == string(agent.BeforeTool) {
		t.hostAnswered(live.HostAnswer{Need: id})
		return
	}
	m := &agent.Moment{
		Name: agent.MomentName(in.Event), Parent: in.Parent, Again: in.Again,
		Text: cmp.Or(in.Prompt, in.Last, in.Source, in.Reason, in.Trigger, in.Kind),
	}
	if in.Tool != "" {
		m.Call = call(wire.Block{ID: in.ToolUse, Name: in.Tool, Input: in.Input})
		if len(in.Response) > 0 || in.Error != "" {
			m.Result = &event.Result{
				ID: in.ToolUse, Name: in.Tool, Failed: in.Error != "", Output: cmp.Or(in.Error, outputOf(in.Response)),
			}
		}
	}
	t.step.Needs = append(t.step.Needs, live.Need{ID: id, Moment: m})
}

// outputOf returns the text of a tool's result, or the raw result if its form is unknown.
func outputOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if text = wire.Plain(raw); text != "" {
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

// serve passes a message to an MCP server that lives in the host.
func (t *talk) serve(id string, c wire.Control) {
	if len(c.Message) == 0 {
		t.reject(id, "invalid request")
		return
	}
	m, _ := jsonrpc.Read(c.Message)
	t.needs[id] = need{message: firstRaw(m.ID, json.RawMessage("null"))}
	t.step.Needs = append(t.step.Needs, live.Need{ID: id, Server: c.Server, Message: c.Message})
}

// hostAnswered sends the host's answer.
func (t *talk) hostAnswered(m live.HostAnswer) {
	n, open := t.needs[m.Need]
	if !open {
		return
	}
	delete(t.needs, m.Need)
	if n.message == nil {
		t.respond(m.Need, t.decided(n.moment, m.HookAnswer))
		return
	}
	answer := m.Message
	if m.Err != nil || !json.Valid(m.Message) {
		message := "the server did not answer"
		if m.Err != nil {
			message = m.Err.Error()
		}
		answer = jsonrpc.Failure(n.message, jsonrpc.Errorf(jsonrpc.InternalError, "%s", message))
	}
	if string(n.message) == "null" { // a notification is only acknowledged
		answer = jsonrpc.Result(json.RawMessage("0"), struct{}{})
	}
	t.respond(m.Need, wire.MessageAnswer{Response: answer})
}

// decided applies the mode to the host's decision, and returns it in the CLI's form.
func (t *talk) decided(name agent.MomentName, w agent.HookAnswer) wire.HookOutput {
	switch {
	case name != agent.BeforeTool:
	case t.mode == setting.DenyAll:
		w.Decision, w.Reason, w.Input = "deny", "nothing runs in this conversation", nil
	case t.mode == setting.AskAll && w.Decision == "":
		w.Decision, w.Reason = "ask", "this conversation asks about every call"
	}
	return wire.Output(name, w)
}
