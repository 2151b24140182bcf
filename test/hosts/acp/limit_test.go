package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWaiting: 64 messages wait behind the one that is answered, and no more. Each has one answer, in the order in
// which they came.
func TestWaiting(t *testing.T) {
	t.Parallel()
	p := newPlace(t,
		`[{"shell":"test -e go || { echo begun > begun; until test -e go; do sleep 0.01; done; }"},{"say":"You said ${input}"}]`)
	c := p.launch(t, "--permission-mode", "yolo")
	id := c.begin(1, p.work, nil)
	first := c.send("session/prompt", object{"sessionId": id, "prompt": text("m0")})
	until(t, func() bool { return p.read("begun") != "no file" })
	var waiting []int
	for i := range 64 {
		waiting = append(waiting,
			c.send("session/prompt", object{"sessionId": id, "prompt": text(fmt.Sprintf("m%d", i+1))}))
	}
	if code, message := c.fails("session/prompt",
		object{"sessionId": id, "prompt": text("one too many")}); code != -32600 ||
		!strings.Contains(message, "64 messages wait") {
		t.Error(code, message)
	}
	// One that waits is withdrawn by the id of its request; the others stay.
	c.notify("$/cancel_request", object{"requestId": waiting[30]})
	p.write(t, "go", "")
	for i, request := range append([]int{first}, waiting...) {
		want := "end_turn"
		if i == 31 {
			want = "cancelled"
		}
		if got := c.reply(request); dig(got, "result", "stopReason") != want {
			t.Error(i, got)
		}
	}
	said := c.said("agent_message_chunk")
	at := -1
	for i := range 65 {
		next := strings.Index(said, fmt.Sprintf("You said m%d", i))
		if i != 31 && next <= at {
			t.Errorf("m%d at %d, behind %d", i, next, at)
		}
		at = max(at, next)
	}
	if strings.Contains(said, "m31") {
		t.Error("what was withdrawn was said all the same")
	}
	c.end()
}

// TestMostSessions: 64 sessions are open, and no more; one that is closed makes room.
func TestMostSessions(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"say":"ok"}]`)
	c := p.launch(t, "--sandbox", "off")
	c.greet(1, nil)
	begin := object{"cwd": p.work, "mcpServers": []any{}}
	var first string
	for i := range 64 {
		id := c.call("session/new", begin)["sessionId"].(string)
		if i == 0 {
			first = id
		}
	}
	if code, message := c.fails("session/new", begin); code != -32600 ||
		!strings.Contains(message, "64 sessions are open") {
		t.Error(code, message)
	}
	if got := c.prompt(first, "go"); got["stopReason"] != "end_turn" {
		t.Error(got)
	}
	c.call("session/close", object{"sessionId": first})
	c.call("session/new", begin)
	c.end()
}

// TestSlowClient: a client that stops reading makes no agent wait: its session and another are answered, as their
// journals say, and it hears all of it when it reads again.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 40_000) // 200 kB, more than pipes hold
	p := newPlace(t, `[{"say":"`+long+`"}]`)
	c := p.launch(t)
	c.greet(1, nil)
	ids := []string{}
	for range 2 {
		ids = append(ids, c.call("session/new", object{"cwd": p.work, "mcpServers": []any{}})["sessionId"].(string))
	}
	resume := c.pause()
	var turns []int
	for _, id := range ids {
		for range 5 {
			turns = append(turns, c.send("session/prompt", object{"sessionId": id, "prompt": text("go")}))
		}
	}
	for _, id := range ids {
		journal := filepath.Join(p.home, ".yume", "sessions", id+".jsonl")
		until(t, func() bool {
			data, _ := os.ReadFile(journal)
			return strings.Count(string(data), `"k":"end"`) == 5
		})
	}
	resume()
	for _, turn := range turns {
		if got := c.reply(turn); dig(got, "result", "stopReason") != "end_turn" {
			t.Error(got)
		}
	}
	if got := len(c.said("agent_message_chunk")); got != 10*len(long) {
		t.Errorf("%d bytes instead of %d", got, 10*len(long))
	}
	c.end()
}

// TestInterruptAtOnce: a cancellation is heard while an answer is awaited, a command runs and messages wait, and by the
// agent within 50 ms; every request has its end.
func TestInterruptAtOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"echo begun > begun; sleep 1000"}]`)
	c := p.launch(t, "--permission-mode", "yolo")
	id := c.begin(1, p.work, nil)
	var turns []int
	for range 10 {
		turns = append(turns, c.send("session/prompt", object{"sessionId": id, "prompt": text("go")}))
	}
	until(t, func() bool { return p.read("begun") != "no file" })
	c.notify("session/cancel", object{"sessionId": id})
	for _, turn := range turns {
		if got := c.reply(turn); dig(got, "result", "stopReason") != "cancelled" {
			t.Error(got)
		}
	}
	// a process that was killed may still be ending
	until(t, func() bool { return !strings.Contains(strings.Join(sleepers(t, p.work), " "), "sleep") })
	c.end()
}

// TestCloseAndDelete end a session while a turn runs and messages wait; every request has its end before the answer.
func TestCloseAndDelete(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"session/close", "session/delete"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, `[{"shell":"echo begun > begun; sleep 1000"}]`)
			c := p.launch(t, "--permission-mode", "yolo")
			id := c.begin(1, p.work, nil)
			turns := []int{
				c.send("session/prompt", object{"sessionId": id, "prompt": text("go")}), c.send("session/prompt",
					object{"sessionId": id, "prompt": text("wait")}),
			}
			until(t, func() bool { return p.read("begun") != "no file" })
			closed := c.send(method, object{"sessionId": id})
			_, last := c.await(0, func(m object) bool {
				return m["method"] == nil &&
					fmt.Sprint(m["id"]) == fmt.Sprint(closed)
			})
			for _, turn := range turns {
				_, at := c.await(0, func(m object) bool {
					return m["method"] == nil &&
						fmt.Sprint(m["id"]) == fmt.Sprint(turn)
				})
				if got := c.reply(turn); dig(got, "result", "stopReason") != "cancelled" || at > last {
					t.Error(at, last, got)
				}
			}
			if code, _ := c.fails("session/prompt", object{"sessionId": id, "prompt": text("x")}); code != -32002 {
				t.Error(code)
			}
			_, err := os.Stat(filepath.Join(p.home, ".yume", "sessions", id+".jsonl"))
			if os.IsNotExist(err) != (method == "session/delete") {
				t.Error(err)
			}
			if left := sleepers(t, p.work); len(left) > 0 {
				t.Errorf("still there: %v", left)
			}
			c.end()
		})
	}
}

// TestLateAnswer: an answer to a question that is over is refused, and said so on standard error.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"write":{"path":"w.txt","content":"x"}},{"say":"ok"}]`)
	c := p.launch(t)
	id := c.begin(1, p.work, nil)
	turn := c.send("session/prompt", object{"sessionId": id, "prompt": text("go")})
	question, _ := c.await(0, func(m object) bool { return m["method"] == "session/request_permission" })
	c.notify("session/cancel", object{"sessionId": id})
	c.reply(turn)
	c.say(object{
		"jsonrpc": "2.0", "id": question["id"],
		"result": object{"outcome": object{"outcome": "selected", "optionId": "allow"}},
	})
	c.end()
	if !strings.Contains(c.stderr.String(), "an answer was refused") || p.read("w.txt") != "no file" {
		t.Errorf("%q, %s", c.stderr.String(), p.read("w.txt"))
	}
}

// TestFlood: a client that sends messages without end to one session has them refused; another session is answered
// meanwhile.
func TestFlood(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `[{"shell":"until test -e go; do sleep 0.01; done"},{"say":"You said ${input}"}]`)
	c := p.launch(t, "--permission-mode", "yolo")
	c.greet(1, nil)
	begin := object{"cwd": p.work, "mcpServers": []any{}}
	flooded := c.call("session/new", begin)["sessionId"].(string)
	quick := t.TempDir()
	if err := os.WriteFile(filepath.Join(quick, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := c.call("session/new", object{"cwd": quick, "mcpServers": []any{}})["sessionId"].(string)
	var requests []int
	for range 500 {
		requests = append(requests, c.send("session/prompt", object{"sessionId": flooded, "prompt": text("go")}))
	}
	if got := c.prompt(other, "go"); got["stopReason"] != "end_turn" {
		t.Error(got)
	}
	until(t, func() bool { // the others wait or are answered
		answered := 0
		for _, m := range c.all() {
			if m["error"] != nil {
				answered++
			}
		}
		return answered == 500-65
	})
	c.notify("session/cancel", object{"sessionId": flooded})
	ends := map[any]int{}
	for _, request := range requests {
		ends[dig(c.reply(request), "result", "stopReason")]++
	}
	if ends["cancelled"] != 65 || ends[nil] != 435 {
		t.Error(ends)
	}
	c.end()
}
