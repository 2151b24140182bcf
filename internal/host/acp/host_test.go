package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/testkit/scripted"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

const (
	answers = `[{"say":"heard ${input}"}]`
	stays   = `[{"call":{"name":"Stay","input":{}}},{"say":"heard ${input}"}]`
	changes = `[{"call":{"name":"Change","input":{}}},{"say":"${result}"}]`
)

// answering is an agent that repeats what it is told.
func answering(t *testing.T) *scripted.Agent {
	t.Helper()
	return scripted.New(t, answers, scripted.Done("Change"))
}

// working is a client whose first message is being answered, until let is closed.
func working(t *testing.T, let <-chan struct{}, prepare func(*Host)) (c *client, session string, prompt int) {
	t.Helper()
	c = connect(t, scripted.New(t, stays, scripted.Stay("Stay", let)), prepare)
	session = c.begin(1)
	prompt = c.prompt(session, "one")
	c.told(`"tool_call"`, "Stay")
	return c, session, prompt
}

// TestInitialize: nothing is done before initialize, whose version holds from then on.
func TestInitialize(t *testing.T) {
	t.Parallel()
	c := connect(t, answering(t), nil)
	if e := c.refused("session/new", `{"cwd":"`+c.dir+`","mcpServers":[]}`); e.Code != jsonrpc.InvalidRequest {
		t.Errorf("a session before: %v", e)
	}
	session := c.begin(1)
	if e := c.refused("initialize", `{"protocolVersion":2,"info":{"name":"t","version":"1"}}`); e.Code !=
		jsonrpc.InvalidRequest {
		t.Errorf("another version: %v", e)
	}
	c.stops(c.prompt(session, "one"), "end_turn")
}

// TestWrongLines: each line that cannot be carried out has its error, and the session lives on.
func TestWrongLines(t *testing.T) {
	t.Parallel()
	c := connect(t, answering(t), nil)
	session := c.begin(1)
	c.say("garbage")
	c.told(`"error"`, "-32700", `"id":null`)
	for _, row := range []struct {
		method, params string
		want           int
	}{
		{"session/odd", `{}`, jsonrpc.MethodNotFound},
		{"session/prompt", `{"sessionId":"` + session + `","prompt":[]}`, jsonrpc.InvalidParams},
		{"session/new", `{"cwd":"` + c.dir + `/none","mcpServers":[]}`, jsonrpc.InvalidParams},
		{"session/prompt", `{"sessionId":"other","prompt":[{"type":"text","text":"x"}]}`, wire.NotFound},
		{"session/load", `{"sessionId":"other","cwd":"` + c.dir + `","mcpServers":[]}`, wire.NotFound},
	} {
		if e := c.refused(row.method, row.params); e.Code != row.want {
			t.Errorf("%s %s: %v", row.method, row.params, e)
		}
	}
	c.stops(c.prompt(session, "one"), "end_turn")
}

// TestTurn: what the agent says and does is told while it happens, and the message is answered at the end of its turn.
func TestTurn(t *testing.T) {
	t.Parallel()
	c := connect(t, scripted.New(t, `[{"say":"I look."},{"call":{"name":"Change","input":{}}},{"say":"heard ${input}"}]`,
		scripted.Done("Change")), func(h *Host) { h.Spec.Terms.Mode = "yolo" })
	session := c.begin(1)
	prompt := c.prompt(session, "build a bridge")
	c.stops(prompt, "end_turn")
	var order []string
	for _, line := range c.read {
		for _, word := range []string{
			`"title":"build a bridge"`, "I look.", `"sessionUpdate":"tool_call"`, `"status":"completed"`,
		} {
			if strings.Contains(line, word) {
				order = append(order, word)
			}
		}
	}
	if len(order) != 4 || order[1] != "I look." || order[3] != `"status":"completed"` ||
		c.text() != "I look.heard build a bridge" ||
		strings.Count(strings.Join(c.read, ""), `-2","sessionUpdate":"agent_message_chunk"`) != 2 { // of one message
		t.Errorf("%q %q", order, c.text())
	}
}

// TestVersion2: a message is answered when its turn begins, and a state says that the turn is over.
func TestVersion2(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	c := connect(t, scripted.New(t, stays, scripted.Stay("Stay", let)), nil)
	session := c.begin(2)
	first, second := c.prompt(session, "one"), c.prompt(session, "two")
	if m := c.response(first); !strings.Contains(string(m.Result), "u1") {
		t.Errorf("%s %v", m.Result, m.Error)
	}
	c.told("state_update", `"running"`)
	c.notify("$/cancel_request", fmt.Sprintf(`{"requestId":%d}`, first)) // too late: it was answered
	c.notify("$/cancel_request", fmt.Sprintf(`{"requestId":%d}`, second))
	c.must("session/list", `{}`) // so both cancellations have been read
	close(let)
	c.told("state_update", `"idle"`, `"end_turn"`)
	if m := c.response(second); m.Error == nil || m.Error.Code != wire.RequestCancelled {
		t.Errorf("%s %v", m.Result, m.Error)
	}
}

// TestPermission: only a clear yes lets a call run.
func TestPermission(t *testing.T) {
	t.Parallel()
	chosen := func(option string) string {
		return `"result":{"outcome":{"outcome":"selected","optionId":"` + option + `"}}`
	}
	for name, row := range map[string]struct {
		answer string
		done   bool
	}{
		"yes":         {chosen(event.Allow), true},
		"no":          {chosen(event.Deny), false},
		"unknown":     {chosen("sure"), false},
		"not offered": {chosen("approve"), false},
		"cancelled":   {`"result":{"outcome":{"outcome":"cancelled"}}`, false},
		"an error":    {`"error":{"code":-1,"message":"no window"}`, false},
		"nothing":     {`"result":null`, false},
	} {
		c := connect(t, scripted.New(t, changes, scripted.Done("Change")), nil)
		prompt := c.prompt(c.begin(1), "one")
		c.reply(c.told("session/request_permission", event.Allow, event.Deny), row.answer)
		c.stops(prompt, "end_turn")
		if done := strings.Contains(strings.Join(c.read, ""), `"text":"done"`); done != row.done {
			t.Errorf("%s: it ran: %t", name, done)
		}
	}
}

// TestForms: a client that shows forms gets a question as one, any other a choice, and the answer reaches the agent.
func TestForms(t *testing.T) {
	t.Parallel()
	script := `[{"call":{"name":"` + tool.QuestionName + `","input":{"questions":[{"question":"Which?","header":"One",
		"multiSelect":false,"options":[{"label":"red","description":"r"},{"label":"blue","description":"b"}]}]}}},
		{"say":"told ${result}"}]`
	for _, row := range []struct{ capabilities, method, answer, want string }{
		{
			`{"elicitation":{"form":{}}}`, "elicitation/create",
			`"result":{"action":"accept","content":{"question_0":"blue"}}`, "blue",
		},
		{
			`{"elicitation":{"form":{}}}`, "elicitation/create",
			`"result":{"action":"accept","content":{"question_0":"green"}}`, unanswered,
		},
		{
			`{}`, "session/request_permission",
			`"result":{"outcome":{"outcome":"selected","optionId":"choice-1"}}`, "blue",
		},
		{
			`{}`, "session/request_permission",
			`"result":{"outcome":{"outcome":"selected","optionId":"choice-2"}}`, unanswered,
		},
	} {
		c := connect(t, scripted.New(t, script, scripted.Question()), nil)
		c.must("initialize", `{"protocolVersion":1,"clientCapabilities":`+row.capabilities+`}`)
		c.must("session/new", `{"cwd":"`+c.dir+`","mcpServers":[]}`)
		prompt := c.prompt("session-1", "go")
		c.reply(c.told(row.method), row.answer)
		c.stops(prompt, "end_turn")
		if said := c.text(); !strings.Contains(said, row.want) {
			t.Errorf("%s: %s", row.answer, said)
		}
	}
}

// TestCancel: a cancellation ends the turn that runs, and what waits without a turn; the session goes on.
func TestCancel(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	c, session, first := working(t, let, nil)
	second := c.prompt(session, "two")
	c.notify("session/cancel", `{"sessionId":"`+session+`"}`)
	c.stops(first, "cancelled")
	c.stops(second, "cancelled")
	close(let)
	c.stops(c.prompt(session, "three"), "end_turn")
	if said := c.text(); said != "heard three" {
		t.Errorf("%q", said)
	}
}

// TestCancelAtOnce: no turn begins with a message that is cancelled while it is being sent.
func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, scripted.New(t, stays, scripted.Stay("Stay", nil)), nil)
	session := c.begin(2)
	for range 20 {
		c.prompt(session, "one")
		c.told(`"tool_call_update"`, "Stay", `"pending"`)
		second := c.prompt(session, "two")
		c.notify("session/cancel", `{"sessionId":"`+session+`"}`)
		if m := c.response(second); m.Error == nil || m.Error.Code != wire.RequestCancelled {
			t.Fatalf("%s", m.Result)
		}
		c.told("state_update", `"idle"`, `"cancelled"`)
	}
}

// TestCancelRequest: one message alone is cancelled by the id of its request.
func TestCancelRequest(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	c, session, first := working(t, let, nil)
	second, third := c.prompt(session, "two"), c.prompt(session, "three")
	c.notify("$/cancel_request", fmt.Sprintf(`{"requestId":%d}`, second))
	c.must("session/list", `{}`) // so the cancellation has been read
	close(let)
	c.stops(first, "end_turn")
	c.stops(second, "cancelled")
	c.stops(third, "end_turn")
}

// TestFailures: what ends a turn is the error of its message, with its kind and a step that helps.
func TestFailures(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{
		`[{"error":401}]`: wire.AuthRequired, `[{"error":400}]`: jsonrpc.InternalError,
	} {
		c := connect(t, scripted.New(t, script, scripted.Done("Change")), nil)
		m := c.response(c.prompt(c.begin(1), "one"))
		if m.Error == nil || m.Error.Code != want || !strings.Contains(fmt.Sprint(m.Error.Data), "code:") {
			t.Errorf("%s: %s %v", script, m.Result, m.Error)
		}
	}
	c := connect(t, answering(t), func(h *Host) {
		h.Open = func(context.Context, string, agent.Spec, agent.Services) (*conversation.Conversation, error) {
			return nil, fault.New(fault.NotInstalled, "x is not installed").Hint("install x")
		}
		h.Ready = func(context.Context) error { return errors.New("not yet") }
	})
	c.must("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
	e := c.refused("session/new", `{"cwd":"`+c.dir+`","mcpServers":[]}`)
	if e.Code != jsonrpc.InvalidParams || !strings.Contains(e.Message, "hint: install x") {
		t.Errorf("%v", e)
	}
	c.refused("authenticate", `{"methodId":"x"}`)
}

// TestOptions: a mode that is offered holds from then on, and every client hears of it; another changes nothing.
func TestOptions(t *testing.T) {
	t.Parallel()
	c := connect(t, scripted.New(t, changes, scripted.Done("Change")), nil)
	session := c.begin(1)
	for _, params := range []string{
		`"configId":"mode","value":"deny"`, `"configId":"model","value":"x"`, `"configId":"odd","value":"x"`,
	} {
		if e := c.refused("session/set_config_option", `{"sessionId":"`+session+`",`+params+`}`); e.Code !=
			jsonrpc.InvalidParams {
			t.Errorf("%s: %v", params, e)
		}
	}
	c.must("session/set_mode", `{"sessionId":"`+session+`","modeId":"yolo"}`)
	c.told("current_mode_update", `"yolo"`)
	c.stops(c.prompt(session, "one"), "end_turn") // nothing is asked
	c.told(`"text":"done"`)
}

// TestPastSessions: a session that was closed is listed, told again with all that was said, and goes on; one that was
// deleted is gone; one that works cannot be opened again.
func TestPastSessions(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	c, session, first := working(t, let, nil)
	again := `{"sessionId":"` + session + `","cwd":"` + c.dir + `","mcpServers":[]}`
	if e := c.refused("session/load", again); e.Code != jsonrpc.InvalidRequest {
		t.Errorf("at work: %v", e)
	}
	close(let)
	c.stops(first, "end_turn")
	c.must("session/close", `{"sessionId":"`+session+`"}`)
	if list := string(c.must("session/list", `{"cwd":"`+c.dir+`"}`)); !strings.Contains(list, `"`+session+`"`) {
		t.Errorf("%s", list)
	}
	c.read = nil
	c.must("session/load", again)
	c.told("user_message_chunk", "one")
	c.told("agent_message_chunk", "heard one")
	c.stops(c.prompt(session, "two"), "end_turn")
	c.must("session/delete", `{"sessionId":"`+session+`"}`)
	if list := string(c.must("session/list", `{}`)); strings.Contains(list, session) {
		t.Errorf("%s", list)
	}
}

// TestUndoCommand: a message that is one of our commands is carried out for the directory of the session, does not
// reach the agent, and takes nothing back while the agent works.
func TestUndoCommand(t *testing.T) {
	t.Parallel()
	var undone []string
	let := make(chan struct{})
	c, session, first := working(t, let, func(h *Host) {
		h.Undo = func(_ context.Context, dir, session string, redo bool) (string, error) {
			undone = append(undone, fmt.Sprint(dir, " ", session, " ", redo))
			return "Took it back.", nil
		}
	})
	c.told("available_commands_update", undoCommand, redoCommand)
	c.stops(c.prompt(session, "/undo"), "end_turn")
	c.told("the agent is at work")
	close(let)
	c.stops(first, "end_turn")
	c.stops(c.prompt(session, " /redo "), "end_turn")
	c.told("Took it back.")
	if want := c.dir + " " + session + " true"; len(undone) != 1 || undone[0] != want {
		t.Errorf("%q, not %q", undone, want)
	}
}

// TestClientIsGone: a client that goes away, and a signal, end what runs; every message has its answer, and the exit
// code says which it was.
func TestClientIsGone(t *testing.T) {
	t.Parallel()
	c, _, first := working(t, nil, nil)
	if code := c.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	c.stops(first, "cancelled")
	signals := make(chan os.Signal, 1)
	c, _, first = working(t, nil, func(h *Host) { h.Signals = signals })
	signals <- syscall.SIGTERM
	c.stops(first, "cancelled")
	if code := <-c.code; code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
}
