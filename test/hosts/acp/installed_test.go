package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuestionsOfAnother: questions with answers of the agent's own, and questions that it asks without remembering the
// answer.
func TestQuestionsOfAnother(t *testing.T) {
	t.Parallel()
	forms := object{"elicitation": object{"form": object{}}}
	const form, permission = "elicitation/create", "session/request_permission"
	const colour = `form [{"question":"Colour?","options":[{"label":"red"},{"label":"blue"}]}]`
	const name = `form [{"question":"Name?"}]`
	choose := func(option string) any { return object{"outcome": object{"outcome": "selected", "optionId": option}} }
	for title, c := range map[string]struct {
		capabilities object
		message      string
		method       string // of the request; empty: there is none
		result       any
		want         string
	}{
		"own words":     {nil, colour, permission, choose("choice-0"), `"Colour?":"red"`},
		"own words, no": {nil, colour, permission, object{"outcome": object{"outcome": "cancelled"}}, "q=deny"},
		"own words, in a form": {
			forms, colour, form,
			object{"action": "accept", "content": object{"answer": "blue"}},
			`"Colour?":"blue"`,
		},
		"not offered": {
			forms, colour, form,
			object{"action": "accept", "content": object{"answer": "green"}},
			"q=deny",
		},
		"free": {
			forms, name, form,
			object{"action": "accept", "content": object{"answer": "Ann"}},
			`"Name?":"Ann"`,
		},
		"free, no form":  {nil, name, "", nil, "q=deny"},
		"not remembered": {nil, "permit q", permission, choose("always"), "q=deny"},
		"allowed":        {nil, "permit q", permission, choose("allow"), "q=allow"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			p := installed(t)
			a := p.launch(t)
			var methods []string
			a.answer = func(method string, _ object) (any, object) {
				a.mu.Lock()
				methods = append(methods, method)
				a.mu.Unlock()
				return c.result, nil
			}
			if got := a.prompt(a.begin(1, p.work, c.capabilities), c.message); got["stopReason"] != "end_turn" {
				t.Error(got)
			}
			if got := a.said("agent_message_chunk"); strings.Join(methods, " ") != c.method ||
				!strings.Contains(got, c.want) {
				t.Errorf("asked with %q; the agent heard %s", methods, got)
			}
			a.end()
		})
	}
}

// TestSeveralQuestions are asked at once and answered in another order.
func TestSeveralQuestions(t *testing.T) {
	t.Parallel()
	p := installed(t)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	turn := c.send("session/prompt", object{"sessionId": id, "prompt": text("permit a b c")})
	requests := map[string]any{}
	c.await(0, func(m object) bool {
		if m["method"] == "session/request_permission" {
			title := fmt.Sprint(dig(m, "params", "toolCall", "title"))
			requests[title[len(title)-1:]] = m["id"]
		}
		return len(requests) == 3
	})
	for _, name := range []string{"b", "c", "a"} {
		option := "allow"
		if name == "c" {
			option = "deny"
		}
		c.say(object{
			"jsonrpc": "2.0", "id": requests[name],
			"result": object{"outcome": object{"outcome": "selected", "optionId": option}},
		})
	}
	c.reply(turn)
	got := c.said("agent_message_chunk")
	for _, want := range []string{"a=allow", "b=allow", "c=deny"} {
		if !strings.Contains(got, want) {
			t.Error(got)
		}
	}
	c.end()
}

// TestWithdrawn: a question that the agent takes back is taken back from the client.
func TestWithdrawn(t *testing.T) {
	t.Parallel()
	p := installed(t)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	if got := c.prompt(id, "withdraw"); got["stopReason"] != "end_turn" {
		t.Error(got)
	}
	question, _ := c.await(0, func(m object) bool { return m["method"] == "session/request_permission" })
	c.await(0, func(m object) bool {
		return m["method"] == "$/cancel_request" && dig(m, "params", "requestId") == question["id"]
	})
	c.end()
}

// TestUnasked: a turn that nobody asked for is told, and its end is not that of a message.
func TestUnasked(t *testing.T) {
	t.Parallel()
	p := installed(t)
	c := p.launch(t)
	id := c.begin(2, p.work, nil)
	if got := c.prompt(id, "woken"); got["messageId"] != "u1" {
		t.Error(got)
	}
	c.await(0, func(object) bool { return len(c.updates("state_update")) == 4 })
	if got := c.said("agent_message_chunk"); got != "firsta task has ended" {
		t.Error(got)
	}
	if got := c.prompt(id, "and now"); got["messageId"] != "u3" {
		t.Error(got)
	}
	c.await(0, func(object) bool { return strings.Contains(c.said("agent_message_chunk"), "You said and now") })
	c.end()
}

// TestEndsByItself: an agent that is suddenly gone is an error of the turn; the next message starts it again, with its
// own session.
func TestEndsByItself(t *testing.T) {
	t.Parallel()
	p := installed(t)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	got := c.reply(c.send("session/prompt", object{"sessionId": id, "prompt": text("die")}))
	if dig(got, "error", "data", "code") == nil || c.said("agent_message_chunk") != "I" {
		t.Error(got)
	}
	if got := c.prompt(id, "args"); got["stopReason"] != "end_turn" || !strings.Contains(c.said("agent_message_chunk"),
		"its-own-id") {
		t.Error(got, c.said("agent_message_chunk"))
	}
	c.end()
}

// TestCancelIsHeard: a turn that was cancelled is that, whatever the agent makes of it.
func TestCancelIsHeard(t *testing.T) {
	t.Parallel()
	p := installed(t)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	for i := range 2 {
		turn := c.send("session/prompt", object{"sessionId": id, "prompt": text("wait")})
		c.await(0, func(object) bool { return c.said("agent_message_chunk") == strings.Repeat("I", i+1) })
		if i == 0 {
			c.notify("session/cancel", object{"sessionId": id})
		} else {
			c.notify("$/cancel_request", object{"requestId": turn})
		}
		if got := c.reply(turn); dig(got, "result", "stopReason") != "cancelled" {
			t.Error(got)
		}
	}
	c.end()
}

// TestKept: what another agent said is kept in the one store, told again, continued under the agent's own id, and
// open to the user alone.
func TestKept(t *testing.T) {
	t.Parallel()
	p := installed(t)
	const secret = "k7Qz2vX9mB4tLw8R"
	p.env = append(p.env, "ANTHROPIC_AUTH_TOKEN="+secret)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	c.prompt(id, "pieces Hello "+secret+" again")
	if got := c.said("agent_message_chunk"); got != "Hello [REDACTED] again" ||
		len(c.updates("agent_message_chunk")) != 3 {
		t.Error("told in pieces, and again as a whole?", c.updates("agent_message_chunk"))
	}
	c.prompt(id, "tool")
	c.end()
	journal := filepath.Join(p.home, ".yume", "sessions", id+".jsonl")
	data, err := os.ReadFile(journal)
	info, _ := os.Stat(journal)
	if err != nil || strings.Contains(string(data), secret) || info.Mode().Perm()&0o077 != 0 {
		t.Fatalf("%v, %v\n%s", err, info.Mode(), data)
	}

	c = p.launch(t)
	c.greet(1, nil)
	if list := c.call("session/list", object{"cwd": p.work}); dig(list, "sessions", 0, "sessionId") != id ||
		!strings.HasPrefix(fmt.Sprint(dig(list, "sessions", 0, "title")), "pieces Hello") {
		t.Error(list)
	}
	place := object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}}
	c.call("session/load", place)
	c.offered()
	var kinds []string
	for _, u := range c.updates("") {
		kinds = append(kinds, fmt.Sprint(u["sessionUpdate"]))
	}
	want := "user_message_chunk agent_message_chunk user_message_chunk tool_call tool_call_update agent_message_chunk " +
		"available_commands_update"
	if got := strings.Join(kinds, " "); got != want {
		t.Error(got)
	}
	other := p.launch(t)
	other.greet(1, nil)
	if got := other.reply(other.send("session/load", place)); dig(got, "error", "data", "code") != "CONFLICT" {
		t.Error("a session has two writers:", got)
	}
	other.end()
	before := len(c.said("agent_message_chunk"))
	c.prompt(id, "args")
	if got := c.said("agent_message_chunk")[before:]; !strings.Contains(got, "its-own-id") {
		t.Error("it does not go on:", got)
	}

	native := place
	p.args = []string{"acp", "--provider", "anthropic", "--model", "m", "--api-base", p.server.URL()}
	n := p.launch(t)
	n.greet(1, nil)
	if list := n.call("session/list", object{}); len(list["sessions"].([]any)) != 0 {
		t.Error("a session of another agent is listed:", list)
	}
	if code, message := n.fails("session/load", native); code != -32602 ||
		!strings.Contains(message, "one of the agent claude") {
		t.Error(code, message)
	}
	n.end()

	c.call("session/delete", object{"sessionId": id})
	if _, err := os.Stat(journal); !os.IsNotExist(err) {
		t.Error("it is still there:", err)
	}
	c.end()
}

// TestSetBetweenTurns: a mode and a model hold from the next message on, also where the agent has to be started again
// for it.
func TestSetBetweenTurns(t *testing.T) {
	t.Parallel()
	p := installed(t)
	c := p.launch(t)
	c.greet(1, nil)
	begun := c.call("session/new", object{"cwd": p.work, "mcpServers": []any{}})
	id := begun["sessionId"].(string)
	if dig(begun, "modes", "currentModeId") != "prompt" || dig(begun, "configOptions", 1, "currentValue") != "one" {
		t.Error(begun)
	}
	c.prompt(id, "hello")
	c.call("session/set_mode", object{"sessionId": id, "modeId": "auto-edit"})
	changed := c.call("session/set_config_option", object{"sessionId": id, "configId": "model", "value": "two"})
	if dig(changed, "configOptions", 0, "currentValue") != "auto-edit" ||
		dig(changed, "configOptions", 1, "currentValue") != "two" {
		t.Error(changed)
	}
	if code, message := c.fails("session/set_config_option", object{
		"sessionId": id, "configId": "model",
		"value": "refused",
	}); code != -32602 || !strings.Contains(message, "no such model") {
		t.Error(code, message)
	}
	changed = c.call("session/set_config_option", object{"sessionId": id, "configId": "mode", "value": "auto-edit"})
	if dig(changed, "configOptions", 1, "currentValue") != "two" {
		t.Error("what was refused is shown:", changed)
	}
	if got := c.prompt(id, "again"); got["stopReason"] != "end_turn" || !strings.Contains(c.said("agent_message_chunk"),
		"You said again") {
		t.Error(got)
	}
	c.await(0, func(object) bool {
		all := c.updates("current_mode_update")
		return len(all) > 0 && all[len(all)-1]["currentModeId"] == "auto-edit"
	})
	c.end()
}

// TestForkOfAnother: a copy has all that was said, and the agent copies its own session; one that cannot do that
// refuses, by its name.
func TestForkOfAnother(t *testing.T) {
	t.Parallel()
	p := installed(t)
	c := p.launch(t)
	greeting := c.greet(1, nil)
	if dig(greeting, "agentCapabilities", "sessionCapabilities", "fork") == nil {
		t.Error(greeting)
	}
	id := c.call("session/new", object{"cwd": p.work, "mcpServers": []any{}})["sessionId"].(string)
	c.prompt(id, "one")
	forked := c.call("session/fork",
		object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}})["sessionId"].(string)
	before := len(c.said("agent_message_chunk"))
	c.prompt(forked, "args")
	got := c.said("agent_message_chunk")[before:]
	if forked == id || !strings.Contains(got, "--fork-session") || !strings.Contains(got, "its-own-id") ||
		!strings.Contains(got, forked) {
		t.Error(id, forked, got)
	}
	if list := c.call("session/list", object{}); len(list["sessions"].([]any)) != 2 {
		t.Error(list)
	}
	// A copy to which nothing was said before its process ended is still none of the agent's own.
	for _, load := range []struct {
		session string
		copied  bool
	}{{
		c.call("session/fork", object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}})["sessionId"].(string),
		true,
	}, {forked, false}} {
		c.end()
		c = p.launch(t)
		c.greet(1, nil)
		c.call("session/resume", object{"sessionId": load.session, "cwd": p.work, "mcpServers": []any{}})
		c.prompt(load.session, "args")
		if got := c.said("agent_message_chunk"); strings.Contains(got, "--fork-session") != load.copied {
			t.Error(load, got)
		}
	}
	c.end()

	p.args = []string{"acp", "--agent", perTurnName}
	c = p.launch(t)
	id = c.begin(1, p.work, nil)
	if code, message := c.fails("session/fork",
		object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}}); code != -32602 ||
		!strings.Contains(message, "gemini") {
		t.Error(code, message)
	}
	c.end()
}

// TestSetRestarts: an agent that takes a mode only when it is started goes on again with its own session.
func TestSetRestarts(t *testing.T) {
	t.Parallel()
	p := installed(t)
	p.args = []string{"acp", "--agent", perTurnName}
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	c.prompt(id, "one")
	c.call("session/set_mode", object{"sessionId": id, "modeId": "auto-edit"})
	before := len(c.said("agent_message_chunk"))
	c.prompt(id, "two")
	if got := c.said("agent_message_chunk")[before:]; !strings.Contains(got, "You said two") ||
		!strings.Contains(got, "auto_edit") || !strings.Contains(got, "--resume="+id) {
		t.Error(got)
	}
	if got := c.modes(1); strings.Join(got, " ") != "auto-edit" {
		t.Error(got)
	}
	c.end()
}
