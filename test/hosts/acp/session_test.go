package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestSessions: a conversation is listed, loaded with all that was said, continued, forked and deleted.
func TestSessions(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"read":"a.txt"},{"say":"You said ${input}"}]`)
	p.write(t, "a.txt", "hi\n")
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	if list := c.call("session/list", object{}); len(list["sessions"].([]any)) != 0 {
		t.Error("nothing was said, and it is listed:", list)
	}
	c.prompt(id, "one\nand more")
	list := c.call("session/list", object{"cwd": p.work})
	if dig(list, "sessions", 0, "sessionId") != id || dig(list, "sessions", 0, "title") != "one" ||
		dig(list, "sessions", 0, "cwd") != p.work {
		t.Error(list)
	}
	if list := c.call("session/list", object{"cwd": filepath.Dir(p.work)}); len(list["sessions"].([]any)) != 0 {
		t.Error(list)
	}
	c.end()

	c = p.launch(t)
	c.greet(1, nil)
	loaded := c.call("session/load", object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}})
	if dig(loaded, "modes", "currentModeId") != "prompt" {
		t.Error(loaded)
	}
	c.offered()
	var kinds []string
	for _, u := range c.updates("") {
		kinds = append(kinds, fmt.Sprint(u["sessionUpdate"]))
	}
	if got := strings.Join(kinds, " "); got != "user_message_chunk tool_call tool_call_update agent_message_chunk "+
		"available_commands_update" {
		t.Error(got)
	}
	if c.said("user_message_chunk") != "one\nand more" || !strings.HasPrefix(c.said("agent_message_chunk"),
		"You said one") {
		t.Error(c.shown())
	}
	c.prompt(id, "two")
	requests := p.server.Requests()
	if raw := string(requests[len(requests)-1].Raw); !strings.Contains(raw, "and more") ||
		!strings.Contains(raw, "two") {
		t.Error("the model does not know what was said before:", raw)
	}
	forked := c.call("session/fork",
		object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}})["sessionId"].(string)
	c.prompt(forked, "three")
	if list := c.call("session/list", object{}); len(list["sessions"].([]any)) != 2 || forked == id {
		t.Error(list)
	}
	before := len(c.updates("user_message_chunk"))
	c.call("session/close", object{"sessionId": id})
	c.call("session/resume", object{"sessionId": id, "cwd": p.work})
	if len(c.updates("user_message_chunk")) != before {
		t.Error("resume tells what was said")
	}
	c.prompt(id, "four")
	c.call("session/delete", object{"sessionId": id})
	c.call("session/delete", object{"sessionId": id})
	if code, _ := c.fails("session/load",
		object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}}); code != -32002 {
		t.Error(code)
	}
	if code, _ := c.fails("session/prompt", object{"sessionId": id, "prompt": text("x")}); code != -32002 {
		t.Error(code)
	}
	c.end()

	c = p.launch(t)
	c.greet(2, nil)
	c.call("session/resume", object{"sessionId": forked, "cwd": p.work, "replayFrom": object{"type": "start"}})
	said := c.updates("user_message")
	if len(said) != 3 || said[2]["messageId"] != "u3" {
		t.Error(said)
	}
	if got := c.call("session/prompt", object{"sessionId": forked, "prompt": text("five")}); got["messageId"] != "u4" {
		t.Error(got)
	}
	c.end()
}

// TestSeveral: sessions work at the same time and know nothing of each other.
func TestSeveral(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"until test -e go; do sleep 0.01; done; echo ${input}"},{"say":"You said ${input}"}]`)
	c := p.launch(t, "--permission-mode", "yolo")
	c.greet(1, nil)
	answers := map[string]int{}
	for i := range 3 {
		id := c.call("session/new", object{"cwd": p.work, "mcpServers": []any{}})["sessionId"].(string)
		answers[id] = c.send("session/prompt", object{"sessionId": id, "prompt": text(fmt.Sprintf("word%d", i))})
	}
	c.await(0, func(object) bool { return len(c.updates("tool_call")) == 3 })
	p.write(t, "go", "")
	for id, answer := range answers {
		if got := c.reply(answer); dig(got, "result", "stopReason") != "end_turn" {
			t.Error(id, got)
		}
	}
	c.end()
}

// TestCancel: the turn ends at once, what it started is gone, what waits is not begun, and the session goes on.
func TestCancel(t *testing.T) {
	t.Parallel()
	for version, cancelled := range map[int]string{1: "cancelled", 2: ""} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t,
				`[{"shell":"test -e begun || { echo begun > begun; sleep 1000; }"},{"say":"You said ${input}"}]`)
			c := p.launch(t, "--permission-mode", "yolo")
			id := c.begin(version, p.work, nil)
			first := c.send("session/prompt", object{"sessionId": id, "prompt": text("go")})
			waiting := c.send("session/prompt", object{"sessionId": id, "prompt": text("wait")})
			until(t, func() bool { return p.read("begun") != "no file" })
			c.notify("session/cancel", object{"sessionId": id})
			if version == 1 {
				if got := c.reply(first); dig(got, "result", "stopReason") != cancelled {
					t.Error(got)
				}
				if got := c.reply(waiting); dig(got, "result", "stopReason") != cancelled {
					t.Error(got)
				}
			} else {
				c.await(0, func(m object) bool { return dig(m, "params", "update", "stopReason") == "cancelled" })
				if got := c.reply(waiting); dig(got, "error", "code") != float64(-32800) {
					t.Error(got)
				}
			}
			ends := c.updates("tool_call_update")
			if ends[len(ends)-1]["status"] != "failed" {
				t.Error(ends)
			}
			c.prompt(id, "again")
			c.await(0, func(object) bool { return strings.Contains(c.said("agent_message_chunk"), "You said again") })
			c.end()
		})
	}
}

// TestCancelQuestion: a turn that waits for an answer is cancelled; a later answer does not count.
func TestCancelQuestion(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"write":{"path":"w.txt","content":"x"}},{"say":"ok"}]`)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	first := c.send("session/prompt", object{"sessionId": id, "prompt": text("go")})
	question, _ := c.await(0, func(m object) bool { return m["method"] == "session/request_permission" })
	c.notify("session/cancel", object{"sessionId": id})
	if got := c.reply(first); dig(got, "result", "stopReason") != "cancelled" {
		t.Error(got)
	}
	c.await(0, func(m object) bool {
		return m["method"] == "$/cancel_request" && dig(m, "params", "requestId") == question["id"]
	})
	c.say(object{
		"jsonrpc": "2.0", "id": question["id"],
		"result": object{"outcome": object{"outcome": "selected", "optionId": "allow"}},
	})
	c.call("session/list", object{})
	if p.read("w.txt") != "no file" {
		t.Error("it ran after all")
	}
	c.end()
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	for over := time.Now().Add(hermetic.Patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(over) {
			t.Fatal("it does not happen")
		}
	}
}

// TestAuth: without a key a session cannot begin, and the error says what to do.
func TestAuth(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[]`)
	p.env, p.args = p.env[:4], []string{"acp"}
	c := p.launch(t)
	greeting := c.greet(1, nil)
	method := dig(greeting, "authMethods", 0, "id")
	for range 2 {
		code, message := c.fails("session/new", object{"cwd": p.work, "mcpServers": []any{}})
		if code != -32000 || !strings.Contains(message, "ANTHROPIC_API_KEY") {
			t.Error(code, message)
		}
		if code, _ := c.fails("authenticate", object{"methodId": method}); code != -32000 {
			t.Error(code)
		}
	}
	c.end()
}

// TestFailures: what ends a turn is an error of its request.
func TestFailures(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]int{"401": -32000, "500": -32603} {
		p := newPlace(t, `[{"error":`+status+`}]`)
		c := p.launch(t)
		if code, message := c.fails("session/prompt",
			object{"sessionId": c.begin(1, p.work, nil), "prompt": text("go")}); code != want ||
			strings.Contains(message, "secret-of-a-test") {
			t.Error(status, code, message)
		}
		c.end()
		c = p.launch(t)
		c.prompt(c.begin(2, p.work, nil), "go")
		idle, _ := c.await(0, func(m object) bool { return dig(m, "params", "update", "state") == "idle" })
		if dig(idle, "params", "update", "stopReason") != "error" ||
			dig(idle, "params", "update", "error", "code") != float64(want) {
			t.Error(idle)
		}
		c.end()
	}
}

// TestGoesAway: a client that goes away in the middle of a turn takes it along, and what was said is kept.
func TestGoesAway(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"input", "both"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, `[{"shell":"echo $$ > pid; sleep 1000"},{"say":"ok"}]`)
			c := p.launch(t, "--permission-mode", "yolo")
			id := c.begin(1, p.work, nil)
			c.send("session/prompt", object{"sessionId": id, "prompt": text("remember me")})
			until(t, func() bool { return len(p.read("pid")) > 1 && p.read("pid") != "no file" })
			if code := c.end(); code != 0 {
				t.Errorf("exit %d: %s", code, c.stderr.String())
			}
			if left := sleepers(t, p.work); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
			again := p.launch(t)
			again.greet(1, nil)
			again.call("session/load", object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}})
			if again.said("user_message_chunk") != "remember me" {
				t.Error(again.shown())
			}
			again.end()
		})
	}
}

// sleepers are the processes that work in a directory, where the system tells.
func sleepers(t *testing.T, dir string) []string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		if at, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil && at == dir {
			line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
			found = append(found, string(line))
		}
	}
	return found
}

// TestBadLines: each wrong line has its error, or none where the protocol has none, and the session lives on.
func TestBadLines(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"You said ${input}"}]`)
	c := p.launch(t)
	code := func(from int) (float64, int) {
		m, at := c.await(from, func(m object) bool { return m["error"] != nil })
		return dig(m, "error", "code").(float64), at
	}
	at := 0
	var n float64
	if got, _ := c.fails("session/new", object{"cwd": p.work}); got != -32600 {
		t.Error("before initialize:", got)
	}
	at = len(c.all())
	for _, bad := range []struct {
		line string
		code float64
	}{
		{"garbage", -32700},
		{"{", -32700},
		{`"x"`, -32600},
		{"[]", -32600},
		{`{"jsonrpc":"2.0"}`, -32600},
		{`{"jsonrpc":"1.0","id":77,"method":"x"}`, -32600},
		{strings.Repeat("[", 100_000), -32700},
		{"\x00\xff\xfe", -32700},
	} {
		c.raw(bad.line + "\n")
		if n, at = code(at); n != bad.code {
			t.Errorf("%.40q: %v", bad.line, n)
		}
	}
	id := c.begin(1, p.work, nil)
	at = len(c.all())
	for _, bad := range []struct {
		line string
		code float64
	}{
		{`{"jsonrpc":"2.0","id":90,"method":"fly"}`, -32601},
		{`{"jsonrpc":"2.0","id":91,"method":"session/prompt"}`, -32602},
		{`{"jsonrpc":"2.0","id":92,"method":"session/prompt","params":[1]}`, -32602},
		{`{"jsonrpc":"2.0","id":93,"method":"session/prompt","params":{"sessionId":"../../etc/passwd","prompt":[{"type":"text","text":"x"}]}}`, -32002},
		{`{"jsonrpc":"2.0","id":94,"method":"session/load","params":{"sessionId":"../../etc/passwd","cwd":"` + p.work +
			`"}}`, -32602},
		{`{"jsonrpc":"2.0","id":95,"method":"session/new","params":{"cwd":"` + p.work + `/not there"}}`, -32602},
		{`{"jsonrpc":"2.0","id":96,"method":"session/new","params":{"cwd":"relative"}}`, -32602},
		{`{"jsonrpc":"2.0","id":97,"method":"initialize","params":{"protocolVersion":2}}`, -32600},
		{`{"jsonrpc":"2.0","id":98,"method":"session/list","params":{"cursor":"x"}}`, -32602},
		{`{"jsonrpc":"2.0","id":99,"method":"session/prompt","params":{"sessionId":"` + id +
			`","prompt":[{"type":"text","text":""}]}}`, -32602},
	} {
		c.raw(bad.line + "\n")
		if n, at = code(at); n != bad.code {
			t.Errorf("%.60q: %v", bad.line, n)
		}
	}
	// To these there is no answer.
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":4711,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"y"}}`,
		`{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"` + id +
			`","prompt":[]}}`, `{"jsonrpc":"2.0","method":"no/such"}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"none"}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":12345}}`, ``, ` `,
	} {
		c.raw(line + "\n")
	}
	if got := c.prompt(id, "still there?"); got["stopReason"] != "end_turn" || len(c.all()) == 0 {
		t.Error(got)
	}
	for _, m := range c.all()[at:] {
		if m["error"] != nil {
			t.Error("an answer to what asks for none:", m)
		}
	}
	c.raw(`{"jsonrpc":"2.0","id":1000,"method":"session/li`)
	if code := c.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestLongLine: 100 MB without an end of line are an error, and no memory.
func TestLongLine(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	part := strings.Repeat("x", 1<<20)
	for range 100 {
		c.raw(part)
	}
	c.raw("\n")
	m, _ := c.await(0, func(m object) bool { return m["error"] != nil })
	if dig(m, "error", "code") != float64(-32700) || !reflect.DeepEqual(m["id"], nil) {
		t.Error(m)
	}
	if got := c.prompt(id, "go"); got["stopReason"] != "end_turn" {
		t.Error(got)
	}
	c.end()
	if most := c.cmd.ProcessState.SysUsage(); most != nil && peak(most) > 400<<20 {
		t.Errorf("%d MB", peak(most)>>20)
	}
}
