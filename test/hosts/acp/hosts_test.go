package acp

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// hosts is the directory of the installed clients.
func hosts(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OMNIAGENT_TEST_HOSTS")
	if dir == "" {
		t.Skip("the clients are not here: OMNIAGENT_TEST_HOSTS=$(scripts/hosts) go test ./test/hosts/acp")
	}
	return dir
}

const work = `[
	{"call":{"name":"TodoWrite","input":{"todos":[{"content":"look","status":"completed","activeForm":"looking"},{"content":"go","status":"pending","activeForm":"going"}]}}},
	{"calls":[{"write":{"path":"b.txt","content":"one\n"}},{"shell":"echo out; exit 3"}]},
	{"say":"Done."}]`

// script runs a script on a place, and returns what it reported.
func (p place) script(t *testing.T, dir, name string) map[string]any {
	t.Helper()
	args, err := json.Marshal(p.args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, ".bin", "node"), name)
	cmd.Env = append(p.env, "OMNIAGENT_TEST_HOSTS="+dir, "PROGRAM="+program, "ARGS="+string(args), "WORK="+p.work)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(hermetic.Patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	err = cmd.Wait()
	reported := map[string]any{}
	for line := range strings.Lines(out.String()) {
		if json.Unmarshal([]byte(line), &reported) != nil {
			t.Errorf("%q", line)
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
	}
	if strings.Contains(errs.String(), "Error") || strings.Contains(errs.String(), "nvalid") {
		t.Errorf("the client complains: %s", errs.String())
	}
	return reported
}

func same(t *testing.T, got map[string]any, want string) {
	t.Helper()
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	for name, value := range wanted {
		a, _ := json.Marshal(got[name])
		b, _ := json.Marshal(value)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %s instead of %s", name, a, b)
		}
	}
}

// TestVersion1OfOthers: the client of the protocol's own library, in its stable form.
func TestVersion1OfOthers(t *testing.T) {
	t.Parallel()
	dir, p := hosts(t), newPlace(t, work)
	same(t, p.script(t, dir, "v1.mjs"), `{
		"greeting": [1, true], "modes": ["deny", "ask", "plan", "prompt", "default", "auto-edit", "yolo"], "stop": "end_turn",
		"plan": [["look", "completed"], ["go", "pending"]], "diff": [null, "one\n"], "asked": ["Write b.txt", "echo out; exit 3"], "said": "Done.",
		"mode": "plan", "exit": 0, "listed": [[true, "work"]], "kept": "plan",
		"loaded": ["user_message_chunk", "tool_call", "tool_call_update", "plan", "tool_call", "tool_call", "tool_call_update", "tool_call_update", "agent_message_chunk"],
		"rejected": ["end_turn", 3], "cancelled": "cancelled"}`)
}

// TestVersion2OfOthers: the same of the draft.
func TestVersion2OfOthers(t *testing.T) {
	t.Parallel()
	dir, p := hosts(t), newPlace(t, work)
	same(t, p.script(t, dir, "v2.mjs"), `{
		"greeting": [2, "omniagent"], "options": ["mode", "model"], "stop": "end_turn", "message": [true],
		"plan": [["look", "completed"], ["go", "pending"]], "diff": ["add", "git_patch"], "asked": ["Write b.txt", "echo out; exit 3"], "said": "Done.",
		"terminal": true, "cancelled": "cancelled", "mode": "plan", "exit": 0, "resumed": [2, "idle"], "left": 0}`)
}

// acpx runs the command-line client with our program as its agent.
func (p place) acpx(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	words := append([]string{
		filepath.Join(dir, "acpx", "dist", "cli.js"), "--agent",
		program + " " + strings.Join(p.args, " "), "--ttl", "60",
	}, args...)
	cmd := exec.Command(filepath.Join(dir, ".bin", "node"), words...)
	cmd.Env, cmd.Dir = p.env, p.work
	late := time.AfterFunc(hermetic.Patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

// TestAcpx: a client that keeps sessions of its own over many processes.
func TestAcpx(t *testing.T) {
	t.Parallel()
	dir, p := hosts(t), newPlace(t, work)
	if out, code := p.acpx(t, dir, "--approve-all", "exec", "go"); code != 0 || !strings.Contains(out, "Done.") ||
		!strings.Contains(out, "[done] end_turn") || p.read("b.txt") != "one\n" {
		t.Fatalf("exit %d: %s", code, out)
	}
	if err := os.Remove(filepath.Join(p.work, "b.txt")); err != nil {
		t.Fatal(err)
	}
	if out, code := p.acpx(t, dir, "sessions", "new"); code != 0 || !strings.Contains(out, "sess-") {
		t.Fatalf("exit %d: %s", code, out)
	}
	defer p.acpx(t, dir, "sessions", "close") // its process that keeps ours ends with it
	if out, code := p.acpx(t, dir, "--deny-all", "prompt", "go"); code != 5 || p.read("b.txt") != "no file" {
		t.Errorf("exit %d: %s", code, out)
	}
	if out, code := p.acpx(t, dir, "set-mode", "yolo"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	// it still counts the denial from before
	if out, code := p.acpx(t, dir, "--deny-all", "prompt", "again"); p.read("b.txt") != "one\n" ||
		!strings.Contains(out, "[done] end_turn") {
		t.Errorf("exit %d: %s", code, out)
	}
	requests := p.server.Requests()
	if raw := string(requests[len(requests)-1].Raw); strings.Count(raw, "TodoWrite") < 3 {
		t.Error("the session was not continued:", raw)
	}
	if out, code := p.acpx(t, dir, "sessions", "list"); code != 0 || strings.Count(out, p.work) < 2 {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestAcpxCancel: another process of the client cancels the turn.
func TestAcpxCancel(t *testing.T) {
	t.Parallel()
	dir, p := hosts(t), newPlace(t, `[{"shell":"test -e begun || { echo begun > begun; sleep 1000; }"}]`)
	p.args = append(p.args, "--permission-mode", "yolo")
	if out, code := p.acpx(t, dir, "sessions", "new"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	defer p.acpx(t, dir, "sessions", "close")
	type outcome struct {
		out  string
		code int
	}
	ended := make(chan outcome, 1)
	go func() {
		out, code := p.acpx(t, dir, "prompt", "go")
		ended <- outcome{out, code}
	}()
	until(t, func() bool { return p.read("begun") != "no file" })
	if out, code := p.acpx(t, dir, "cancel"); code != 0 {
		t.Errorf("exit %d: %s", code, out)
	}
	if o := <-ended; !strings.Contains(o.out, "cancelled") {
		t.Errorf("exit %d: %s", o.code, o.out)
	}
	if left := sleepers(t, p.work); strings.Contains(strings.Join(left, " "), "sleep") {
		t.Errorf("still there: %v", left)
	}
}

// TestInstalled: an agent of others through us, from a message to the loaded session.
func TestInstalled(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("OMNIAGENT_TEST_AGENTS")
	if dir == "" {
		t.Skip("the agents are not here: OMNIAGENT_TEST_AGENTS=$(scripts/agents) go test ./test/hosts/acp")
	}
	p := newPlace(t, `[{"write":{"path":"w.txt","content":"one\n"}},{"say":"You said ${input}"}]`)
	p.args = []string{"acp", "--agent", "claude"}
	for i, v := range p.env {
		if strings.HasPrefix(v, "PATH=") {
			p.env[i] = "PATH=" + dir + string(os.PathListSeparator) + v[len("PATH="):]
		}
	}
	p.env = append(p.env, "ANTHROPIC_BASE_URL="+p.server.URL())
	c := p.launch(t)
	c.choosing("deny", nil)
	id := c.begin(1, p.work, nil)
	if got := c.prompt(id, "one"); got["stopReason"] != "end_turn" || p.read("w.txt") != "no file" ||
		!strings.Contains(c.said("agent_message_chunk"), "You said one") {
		t.Fatal(got, c.shown())
	}
	c.call("session/set_mode", object{"sessionId": id, "modeId": "auto-edit"})
	if got := c.prompt(id, "two"); got["stopReason"] != "end_turn" || p.read("w.txt") != "one\n" {
		t.Error(got, c.shown())
	}
	c.end()
	c = p.launch(t)
	c.choosing("deny", nil)
	c.greet(1, nil)
	if list := c.call("session/list", object{"cwd": p.work}); dig(list, "sessions", 0, "sessionId") != id ||
		dig(list, "sessions", 0, "title") != "one" {
		t.Error(list)
	}
	c.call("session/load", object{"sessionId": id, "cwd": p.work, "mcpServers": []any{}})
	if c.said("user_message_chunk") != "onetwo" || !strings.Contains(c.said("agent_message_chunk"), "You said two") ||
		len(c.updates("tool_call")) != 2 {
		t.Error(c.shown())
	}
	c.prompt(id, "three")
	requests := p.server.Requests()
	if raw := string(requests[len(requests)-1].Raw); !strings.Contains(raw, "You said one") ||
		!strings.Contains(raw, "three") {
		t.Error("the agent does not know what was said before:", raw)
	}
	const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	c.call("session/prompt", object{"sessionId": id, "prompt": []object{
		{"type": "text", "text": "what is this?"},
		{"type": "image", "mimeType": "image/png", "data": dot},
	}})
	requests = p.server.Requests()
	if raw := string(requests[len(requests)-1].Raw); !strings.Contains(raw, "image/png") ||
		!strings.Contains(raw, "what is this?") {
		t.Errorf("no picture for the model: %.3000s", raw)
	}
	c.end()
}
