package claude

import (
	"cmp"
	"encoding/json"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	wire "omniagent/internal/proto/claude"
	"omniagent/internal/proto/jsonrpc"
	"omniagent/internal/setting"
)

// hooked is a moment at which the host may have a word. Without a host it is our own, for the modes that the CLI does
// not have.
func (t *talk) hooked(id string, raw []byte) {
	var in wire.HookInput
	if json.Unmarshal(raw, &in) != nil {
		t.reject(id, "it cannot be read")
		return
	}
	t.needs[id] = in.Event
	if !t.o.hooks || t.mode == setting.DenyAll && in.Event == string(agent.BeforeTool) {
		t.met(cli.Met{Need: id})
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
				ID: in.ToolUse, Name: in.Tool, Failed: in.Error != "",
				Output: cmp.Or(in.Error, outputOf(in.Response)),
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

// served is a message for an MCP server that lives in the host.
func (t *talk) served(id string, c wire.Control) {
	if len(c.Message) == 0 {
		t.reject(id, "it cannot be read")
		return
	}
	m, _ := jsonrpc.Read(c.Message)
	t.needs[id] = string(firstRaw(m.ID, json.RawMessage("null")))
	t.step.Needs = append(t.step.Needs, cli.Need{ID: id, Server: c.Server, Message: c.Message})
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
	answer := m.Message
	if m.Err != nil || !json.Valid(m.Message) {
		message := "the server did not answer"
		if m.Err != nil {
			message = m.Err.Error()
		}
		answer = jsonrpc.Failure(json.RawMessage(what), jsonrpc.Errorf(jsonrpc.InternalError, "%s", message))
	}
	if what == "null" { // of a notification nothing is expected but that it was heard
		answer = jsonrpc.Result(json.RawMessage("0"), struct{}{})
	}
	t.respond(m.Need, wire.MessageAnswer{Response: answer})
}

// worded is a host's word in the CLI's form, with the mode in it.
func (t *talk) worded(name agent.MomentName, w agent.Word) wire.HookOutput {
	switch {
	case name != agent.BeforeTool:
	case t.mode == setting.DenyAll:
		w.Decision, w.Reason, w.Input = "deny", "nothing runs in this conversation", nil
	case t.mode == setting.AskAll && w.Decision == "":
		w.Decision, w.Reason = "ask", "every call is asked about"
	}
	return wire.Output(name, w)
}
