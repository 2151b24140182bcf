package acp

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTurn: what a turn looks like in version 1: thoughts, text, calls with their results, diffs, a plan, usage.
func TestTurn(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"think":"Let me see."},{"call":{"name":"TodoWrite","input":{"todos":[{"content":"look","status":"completed","activeForm":"looking"},{"content":"go","status":"in_progress","activeForm":"going"}]}}},
		{"calls":[{"read":"a.txt"},{"write":{"path":"b.txt","content":"one\n"}},{"call":{"name":"Edit","input":{"file_path":"a.txt","old_string":"old","new_string":"new old"}}},{"shell":"echo out; exit 3"}]},{"say":"Done."}]`)
	p.write(t, "a.txt", "an old line\n")
	c := p.launch(t)
	var asked []object
	c.choosing("allow", &asked)
	id := c.begin(1, p.work, object{})
	result := c.prompt(id, "go")
	if result["stopReason"] != "end_turn" || dig(result, "usage", "totalTokens") == nil {
		t.Error(result)
	}
	if c.said("agent_message_chunk") != "Done." || c.said("agent_thought_chunk") != "Let me see." {
		t.Errorf("%q, %q", c.said("agent_message_chunk"), c.said("agent_thought_chunk"))
	}
	plan := c.updates("plan")
	if len(plan) != 1 || dig(plan[0], "entries", 1, "content") != "go" ||
		dig(plan[0], "entries", 1, "status") != "in_progress" {
		t.Error(plan)
	}
	var calls, ends []string
	for _, u := range c.updates("tool_call") {
		calls = append(calls, fmt.Sprint(u["kind"], " ", u["title"], " ", u["status"]))
	}
	want := "other TodoWrite pending|read Read a.txt pending|edit Write b.txt pending|edit Edit a.txt " +
		"pending|execute echo out; exit 3 pending"
	if strings.Join(calls, "|") != want {
		t.Error(calls)
	}
	for _, u := range c.updates("tool_call_update") {
		if u["status"] == "completed" || u["status"] == "failed" {
			ends = append(ends, fmt.Sprint(u["status"], " ", dig(u, "content", 0, "type"), " ",
				dig(u, "content", 0, "oldText"), " ", dig(u, "content", 0, "newText")))
		}
	}
	if got := strings.Join(ends[2:4],
		"|"); got != "completed diff <nil> one\n|completed diff an old line\n an new old line\n" ||
		!strings.HasPrefix(ends[4], "failed content") {
		t.Errorf("%q", ends)
	}
	if len(asked) != 3 || dig(asked[1], "toolCall", "content", 0, "oldText") != "an old line\n" ||
		dig(asked[1], "toolCall", "locations", 0, "path") != filepath.Join(p.work, "a.txt") {
		t.Error(asked)
	}
	if len(c.updates("usage_update")) == 0 || len(c.updates("session_info_update")) != 1 {
		t.Error(c.shown())
	}
	if p.read("b.txt") != "one\n" || p.read("a.txt") != "an new old line\n" {
		t.Errorf("%q, %q", p.read("b.txt"), p.read("a.txt"))
	}
	if code := c.end(); code != 0 {
		t.Errorf("exit %d: %s", code, c.stderr.String())
	}
}

// TestPermission: only a clear yes is one.
func TestPermission(t *testing.T) {
	t.Parallel()
	script := `[{"write":{"path":"w.txt","content":"x"}},{"write":{"path":"v.txt","content":"x"}},{"say":"ok"}]`
	yes := func(option string) any { return object{"outcome": object{"outcome": "selected", "optionId": option}} }
	for name, c := range map[string]struct {
		result any
		wrong  object
		runs   string
		asked  int
	}{
		"allow":          {yes("allow"), nil, "x x", 2},
		"always":         {yes("always"), nil, "x x", 2},
		"deny":           {yes("deny"), nil, "no file no file", 2},
		"unknown option": {yes("Allow"), nil, "no file no file", 2},
		"cancelled":      {object{"outcome": object{"outcome": "cancelled"}}, nil, "no file no file", 2},
		"an error":       {nil, object{"code": -32603, "message": "broken"}, "no file no file", 2},
		"nonsense":       {object{"outcome": "allow"}, nil, "no file no file", 2},
		"no object":      {[]any{"allow"}, nil, "no file no file", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, script)
			a := p.launch(t)
			asked := 0
			a.answer = func(string, object) (any, object) { asked++; return c.result, c.wrong }
			result := a.prompt(a.begin(1, p.work, nil), "go")
			if got := p.read("w.txt") + " " + p.read("v.txt"); got != c.runs || result["stopReason"] != "end_turn" ||
				asked != c.asked {
				t.Errorf("%s, %v, asked %d times", got, result, asked)
			}
			a.end()
		})
	}
}

// TestVersion2: the answer to a message is its id, and the turn ends with a state.
func TestVersion2(t *testing.T) {
	t.Parallel()
	p := newPlace(t,
		`[{"calls":[{"write":{"path":"b.txt","content":"one\n"}},{"shell":"echo out; exit 3"}]},{"call":{"name":"TodoWrite","input":{"todos":[{"content":"a","status":"pending","activeForm":"a"}]}}},{"say":"Done."}]`)
	c := p.launch(t)
	var asked []object
	c.choosing("allow", &asked)
	id := c.begin(2, p.work, nil)
	message := c.prompt(id, "go")["messageId"]
	idle, _ := c.await(0, func(m object) bool { return dig(m, "params", "update", "state") == "idle" })
	if dig(idle, "params", "update", "stopReason") != "end_turn" || message != "u1" {
		t.Error(idle, message)
	}
	if said := c.updates("user_message"); len(said) != 1 || said[0]["messageId"] != message ||
		dig(said[0], "content", 0, "text") != "go" {
		t.Error(said)
	}
	var states []string
	for _, u := range c.updates("state_update") {
		states = append(states, fmt.Sprint(u["state"]))
	}
	if got := strings.Join(states, " "); got != "running requires_action running requires_action running idle" {
		t.Error(got)
	}
	if len(asked) != 2 || dig(asked[0], "subject", "type") != "tool_call" || dig(asked[0], "title") != "Write b.txt" {
		t.Error(asked)
	}
	var patch, output string
	for _, u := range c.updates("tool_call_update") {
		if u["status"] == "completed" && dig(u, "content", 0, "patch", "text") != nil {
			patch = dig(u, "content", 0, "patch", "text").(string)
		}
	}
	for _, u := range c.updates("terminal_update") {
		if data, ok := dig(u, "output", "data").(string); ok {
			raw, _ := base64.StdEncoding.DecodeString(data)
			output = string(raw) + fmt.Sprint(dig(u, "exitStatus", "exitCode"))
		}
	}
	if !strings.Contains(patch, "new file mode") || !strings.Contains(patch, "+one\n") ||
		!strings.Contains(output, "out") || !strings.HasSuffix(output, "3") {
		t.Errorf("%q, %q", patch, output)
	}
	if plan := c.updates("plan_update"); len(plan) != 1 || dig(plan[0], "plan", "entries", 0, "content") != "a" {
		t.Error(plan)
	}
	for _, u := range c.updates("agent_message_chunk") {
		if u["messageId"] == nil {
			t.Error(u)
		}
	}
	if code, _ := c.fails("session/set_mode", object{"sessionId": id, "modeId": "plan"}); code != -32601 {
		t.Error(code)
	}
	c.call("session/close", object{"sessionId": id})
	if code := c.end(); code != 0 {
		t.Error(code)
	}
}

// TestModes: a mode holds from then on, and every client hears of it.
func TestModes(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"write":{"path":"f.txt","content":"x"}},{"say":"ok"}]`)
	c := p.launch(t)
	var asked []object
	c.choosing("deny", &asked)
	c.greet(1, nil)
	begun := c.call("session/new", object{"cwd": p.work, "mcpServers": []any{}})
	id := begun["sessionId"].(string)
	if dig(begun, "modes", "currentModeId") != "prompt" || len(dig(begun, "modes", "availableModes").([]any)) != 7 ||
		dig(begun, "configOptions", 1, "currentValue") != "test-model" {
		t.Error(begun)
	}
	for i, mode := range []string{"plan", "auto-edit", "prompt", "yolo", "deny"} {
		c.call("session/set_mode", object{"sessionId": id, "modeId": mode})
		c.prompt(id, "go")
		ran := p.read("f.txt") == "x"
		_ = os.Remove(filepath.Join(p.work, "f.txt"))
		if ran != (mode == "auto-edit" || mode == "yolo") || len(asked) != map[bool]int{true: 1, false: 0}[i >= 2] {
			t.Errorf("%s: it ran: %v; asked: %d", mode, ran, len(asked))
		}
	}
	if got := c.updates("current_mode_update"); len(got) != 5 || got[4]["currentModeId"] != "deny" ||
		len(c.updates("config_option_update")) != 5 {
		t.Error(got)
	}
	changed := c.call("session/set_config_option", object{"sessionId": id, "configId": "mode", "value": "ask"})
	if dig(changed, "configOptions", 0, "currentValue") != "ask" {
		t.Error(changed)
	}
	for _, wrong := range []object{
		{"configId": "mode", "value": "loose"},
		{"configId": "speed", "value": "x"},
		{"configId": "mode", "value": true},
		{"configId": "model", "value": "another"},
	} {
		wrong["sessionId"] = id
		if code, _ := c.fails("session/set_config_option", wrong); code != -32602 {
			t.Error(wrong, code)
		}
	}
	begun = c.call("session/set_config_option", object{"sessionId": id, "configId": "model", "value": "other-model"})
	if dig(begun, "configOptions", 1, "currentValue") != "other-model" ||
		len(dig(begun, "configOptions", 1, "options").([]any)) != 2 {
		t.Error(begun)
	}
	c.prompt(id, "with another")
	requests := p.server.Requests()
	if raw := string(requests[len(requests)-1].Raw); !strings.Contains(raw, `"other-model"`) ||
		!strings.Contains(raw, "with another") || strings.Count(raw, "go") < 3 {
		t.Error("the other model does not know what was said:", raw)
	}
	c.end()
}

// TestBlocks: images, resources and links reach the model.
func TestBlocks(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	c := p.launch(t)
	png := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	c.call("session/prompt", object{"sessionId": c.begin(1, p.work, nil), "prompt": []object{
		{"type": "text", "text": "Look at "},
		{"type": "resource_link", "name": "main.go", "uri": "file:///w/main.go"},
		{"type": "resource", "resource": object{"uri": "file:///w/b.go", "text": "package b"}},
		{"type": "image", "mimeType": "image/png", "data": png},
	}})
	raw := string(p.server.Requests()[0].Raw)
	for _, part := range []string{"[main.go](file:///w/main.go)", "package b", "file:///w/b.go", png} {
		if !strings.Contains(raw, part) {
			t.Errorf("%s is missing: %s", part, raw)
		}
	}
	c.end()
}

// TestTerminalsInMeta: a client that makes terminals of its own is told what commands print.
func TestTerminalsInMeta(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"echo out"},{"say":"ok"}]`)
	c := p.launch(t, "--permission-mode", "yolo")
	c.prompt(c.begin(1, p.work, object{"terminal": true, "_meta": object{"terminal_output": true}}), "go")
	calls, updates := c.updates("tool_call"), c.updates("tool_call_update")
	last := updates[len(updates)-1]
	if dig(calls[0], "_meta", "terminal_info", "cwd") != p.work || dig(calls[0], "content", 0, "type") != "terminal" ||
		dig(last, "_meta", "terminal_output", "data") == nil {
		t.Error(calls, last)
	}
	for _, m := range c.all() {
		if method, _ := m["method"].(string); strings.HasPrefix(method, "terminal/") ||
			strings.HasPrefix(method, "fs/") {
			t.Error("the client was to do something itself:", m)
		}
	}
	c.end()
}
