package acp

import (
	"testing"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
)

// TestEndsByItself: an agent that is suddenly gone is an error of the turn, and the session can be loaded again.
func TestEndsByItself(t *testing.T) {
	t.Parallel()
	b := newBench(t, ledger(t), []event.Event{{Kind: event.Text, Text: "I"}})
	session, p := b.begin(`{}`)
	b.prompt(3, session, "go")
	b.until(func(m object) bool { return dig(m, "params", "update", "sessionUpdate") == "agent_message_chunk" })
	p.events.Close()
	if got := b.reply(3); dig(got, "error", "data", "code") != string(fault.AgentFailed) {
		t.Error(got)
	}
	b.prompt(4, session, "still there?")
	if got := b.reply(4); dig(got, "error", "code") != float64(wire.NotFound) {
		t.Error(got)
	}
	b.say(`{"jsonrpc":"2.0","id":5,"method":"session/load","params":{"cwd":` + quoted(t.TempDir()) + `,"mcpServers":[],"sessionId":"` + session + `"}}`)
	if got := b.reply(5); got["error"] != nil {
		t.Error(got)
	}
	b.end()
}

// TestCancelIsHeard: a turn that was cancelled is that, whatever the agent makes of it.
func TestCancelIsHeard(t *testing.T) {
	t.Parallel()
	b := newBench(t, ledger(t), []event.Event{{Kind: event.Text, Text: "I"}})
	session, _ := b.begin(`{}`)
	b.prompt(3, session, "go")
	b.until(func(m object) bool { return dig(m, "params", "update", "sessionUpdate") == "agent_message_chunk" })
	b.say(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"` + session + `"}}`)
	if got := b.reply(3); dig(got, "result", "stopReason") != "cancelled" {
		t.Error(got)
	}
	b.prompt(4, session, "again")
	b.until(func(m object) bool { return dig(m, "params", "update", "sessionUpdate") == "agent_message_chunk" })
	b.say(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":4}}`)
	if got := b.reply(4); dig(got, "result", "stopReason") != "cancelled" {
		t.Error(got)
	}
	b.end()
}

// TestUnasked: the end of a turn that nobody asked for is not that of a message, and a question that is withdrawn is withdrawn here as well.
func TestUnasked(t *testing.T) {
	t.Parallel()
	b := newBench(t, ledger(t), []event.Event{
		{Kind: event.Ended, Unasked: true, End: &event.End{OK: true}}, {Kind: event.Text, Text: "I"}, questions(false, 1), done("ok"),
	})
	session, p := b.begin(`{}`)
	b.prompt(3, session, "go")
	q := b.until(func(m object) bool { return m["method"] == "session/request_permission" })
	p.events.Put(event.Event{Kind: event.Withdrawn, Ask: &event.Ask{ID: "q"}})
	b.until(func(m object) bool {
		return m["method"] == "$/cancel_request" && dig(m, "params", "requestId") == q["id"]
	})
	p.answers <- event.Reply{Option: "deny"} // the agent answers itself
	if got := b.reply(3); dig(got, "result", "stopReason") != "end_turn" {
		t.Error(got)
	}
	b.end()
}
