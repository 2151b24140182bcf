//go:build unix

package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	client2 "omniagent/internal/wire/mcp"
)

// TestOwnClient: the client that the native agent uses itself understands all of it.
func TestOwnClient(t *testing.T) {
	p := newPlace(t, `[{"read":"note.txt"},{"say":"it says ${result}"}]`)
	p.write(t, "note.txt", "hello\n")
	conn, err := client2.Open(t.Context(), client2.Server{
		Name: "omniagent", Command: []string{program, "mcp"}, Dir: p.work,
	}, client2.Options{Programs: process.Programs{Env: p.env}, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var names []string
	for _, tool := range conn.Tools() {
		names = append(names, tool.Name)
	}
	if !slices.Equal(names, []string{"list_agents", "ask_agent"}) {
		t.Fatalf("%q", names)
	}
	list, err := conn.Call(t.Context(), "list_agents", json.RawMessage(`{}`), nil)
	if err != nil || list.Failed || !strings.Contains(list.Text, "native: Native agent") ||
		!strings.Contains(list.Text, "codex: Codex CLI, not installed (npm") {
		t.Errorf("%+v %v", list, err)
	}
	var seen []string
	got, err := conn.Call(t.Context(), "ask_agent",
		json.RawMessage(`{"agent":"native","prompt":"what does the note say?","model":"m"}`),
		func(s string) { seen = append(seen, s) })
	if err != nil || got.Failed || !strings.Contains(got.Text, "hello") {
		t.Errorf("%+v %v", got, err)
	}
	if !slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, "Read") }) {
		t.Errorf("progress: %q", seen)
	}
}

// TestVersions: the client's version where it is known, else ours.
func TestVersions(t *testing.T) {
	for asked, want := range map[string]string{
		"2025-06-18": "2025-06-18", "2024-11-05": "2024-11-05",
		"2025-03-26": "2025-03-26", "2099-01-01": "2025-06-18",
	} {
		c := newPlace(t, "").start(t)
		c.send(strings.Replace(hello, "2025-06-18", asked, 1))
		if got := c.answer("hello")["result"].(map[string]any)["protocolVersion"]; got != want {
			t.Errorf("%s: %v", asked, got)
		}
		_ = c.in.Close()
		if code := c.ends(); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}

// TestModes: what an agent may do follows from what the server was started with.
func TestModes(t *testing.T) {
	const script = `[{"call":{"name":"Write","input":{"file_path":"new.txt","content":"x"}}},{"shell":"touch made.txt"},{"say":"${result}"}]`
	for _, row := range []struct {
		flag, mode     string
		refused        bool
		status         string
		wrote, touched bool
		changed        any
		denials        int
	}{
		{"read", "", false, "blocked", false, false, false, 2},
		{"read", "edit", true, "", false, false, nil, 0},
		{"read", "yolo", true, "", false, false, nil, 0},
		{"edit", "", false, "blocked", false, false, false, 2},
		// whether the command runs is a matter of the walls that there are
		{"edit", "edit", false, "", true, false, true, -1},
		{"yolo", "yolo", false, "done", true, true, true, 0},
		{"yolo", "", false, "blocked", false, false, false, 2},
	} {
		t.Run(row.flag+"_"+row.mode, func(t *testing.T) {
			p := newPlace(t, script)
			c := p.start(t, "--allow-mode", row.flag)
			c.hello()
			arguments := map[string]any{"agent": "native", "prompt": "write", "model": "m"}
			if row.mode != "" {
				arguments["mode"] = row.mode
			}
			got, text, failed := c.ask("1", arguments)
			if row.refused {
				if !failed || !strings.Contains(text, "--allow-mode "+row.flag) {
					t.Errorf("%q", text)
				}
			} else if failed || row.status != "" && got["status"] != row.status || got["changed"] != row.changed ||
				row.denials >= 0 && len(got["denials"].([]any)) != row.denials {
				t.Errorf("%v %q", got, text)
			}
			for name, want := range map[string]bool{"new.txt": row.wrote, "made.txt": row.touched} {
				if _, err := os.Stat(filepath.Join(p.work, name)); (err == nil) != want && row.denials >= 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestGoesOn: an earlier session is continued, in its directory, and no session that was not begun here.
func TestGoesOn(t *testing.T) {
	p := newPlace(t, `[{"say":"heard: ${input}"}]`)
	c := p.start(t)
	c.hello()
	first, _, _ := c.ask("1", map[string]any{"agent": "native", "prompt": "one", "model": "m"})
	id, _ := first["session"].(string)
	if id == "" || first["text"] != "heard: one" || first["changed"] != false {
		t.Fatalf("%v", first)
	}
	usage := first["usage"].(map[string]any)
	if usage["input_tokens"].(float64) <= 0 {
		t.Errorf("%v", usage)
	}
	second, _, failed := c.ask("2", map[string]any{"agent": "native", "prompt": "two", "model": "m", "session": id})
	if failed || second["session"] != id || second["text"] != "heard: two" {
		t.Errorf("%v", second)
	}
	all := p.model.Requests()
	if last := string(all[len(all)-1].Raw); !strings.Contains(last, "heard: one") {
		t.Errorf("the model was not told of the first message: %s", last)
	}
	if _, text, failed := c.ask("3", map[string]any{"agent": "native", "prompt": "x", "session": "other"}); !failed ||
		!strings.Contains(text, "not begun here") {
		t.Errorf("%q", text)
	}
}

// TestOneSession: what an answer calls its session is a session like any other, and each call has its own mode in it.
func TestOneSession(t *testing.T) {
	p := newPlace(t, `[{"call":{"name":"Write","input":{"file_path":"new.txt","content":"x"}}},{"say":"ok"}]`)
	c := p.start(t, "--auto-edit")
	c.hello()
	wrote := func() bool { return os.Remove(filepath.Join(p.work, "new.txt")) == nil }
	first, _, _ := c.ask("1", map[string]any{"agent": "native", "prompt": "one", "model": "m"})
	id, _ := first["session"].(string)
	if first["status"] != "blocked" || wrote() {
		t.Errorf("read: %v", first)
	}
	for i, row := range []struct {
		mode  string
		wrote bool
	}{{"edit", true}, {"read", false}, {"edit", true}} {
		next, text, _ := c.ask(fmt.Sprint(i+2), map[string]any{
			"agent": "native", "prompt": "again", "model": "m",
			"session": id, "mode": row.mode,
		})
		if next["session"] != id || wrote() != row.wrote {
			t.Errorf("%s: %v %s", row.mode, next, text)
		}
	}
	show := exec.Command(program, "session", "show", id, "--output", "json")
	show.Dir, show.Env = p.work, p.env
	if out, err := show.Output(); err != nil || !strings.Contains(string(out), `"again"`) {
		t.Errorf("%v %s", err, out)
	}
}

// TestUndo: what an agent did that was asked here can be taken back, and nothing else.
func TestUndo(t *testing.T) {
	p := newPlace(t, `[{"call":{"name":"Write","input":{"file_path":"new.txt","content":"x"}}},{"say":"ok"}]`)
	c := p.start(t, "--allow-mode", "edit")
	c.hello()
	call := func(id string, arguments map[string]any) (text string, failed bool) {
		t.Helper()
		raw, err := json.Marshal(map[string]any{
			"jsonrpc": "2.0", "id": id, "method": "tools/call",
			"params": map[string]any{"name": "undo", "arguments": arguments},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.send(string(raw))
		result, _ := c.answer(id)["result"].(map[string]any)
		content, _ := result["content"].([]any)
		first, _ := content[0].(map[string]any)
		text, _ = first["text"].(string)
		failed, _ = result["isError"].(bool)
		return text, failed
	}
	there := func() bool { _, err := os.Stat(filepath.Join(p.work, "new.txt")); return err == nil }
	first, _, _ := c.ask("1", map[string]any{"agent": "native", "prompt": "one", "model": "m", "mode": "edit"})
	id, _ := first["session"].(string)
	if !there() {
		t.Fatalf("%v", first)
	}
	if text, failed := call("2", map[string]any{"session": "other"}); !failed || !there() {
		t.Errorf("another session: %s", text)
	}
	if text, failed := call("3", map[string]any{"session": id}); failed || there() ||
		!strings.Contains(text, "Restored 1") {
		t.Errorf("undo: %s", text)
	}
	if text, failed := call("4", map[string]any{"session": id, "redo": true}); failed || !there() {
		t.Errorf("redo: %s", text)
	}
	if text, failed := call("5", map[string]any{"session": id, "path": "x"}); !failed || !there() {
		t.Errorf("an unknown argument: %s", text)
	}
	read := p.start(t)
	read.hello()
	read.send(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	if list, _ := json.Marshal(read.answer("l")); strings.Contains(string(list), `"undo"`) {
		t.Errorf("a server whose agents only read offers it: %s", list)
	}
}

// TestQuestions: a question to a person is the answer of the call, and the next call can answer it.
func TestQuestions(t *testing.T) {
	p := newPlace(t, `[{"ask":"Which one?"},{"say":"heard ${input}"}]`)
	c := p.start(t)
	c.hello()
	got, text, failed := c.ask("1", map[string]any{"agent": "native", "prompt": "go", "model": "m"})
	if failed || got["status"] != "needs_input" || !strings.Contains(text, "Which one?") {
		t.Fatalf("%v %s", got, text)
	}
}

// TestCeiling: the words of all hosts say what an agent gets at most, and two that differ are refused by name.
func TestCeiling(t *testing.T) {
	const script = `[{"call":{"name":"Write","input":{"file_path":"new.txt","content":"x"}}},{"say":"ok"}]`
	for flags, mode := range map[string]string{
		"--yolo": "yolo", "--approval auto-edit": "edit", "--read-only": "read",
		"--approval deny": "read",
	} {
		p := newPlace(t, script)
		c := p.start(t, strings.Fields(flags)...)
		c.hello()
		got, _, _ := c.ask("1", map[string]any{"agent": "native", "prompt": "go", "model": "m", "mode": mode})
		if _, err := os.Stat(filepath.Join(p.work, "new.txt")); (err == nil) != (mode != "read") {
			t.Errorf("%s: %v", flags, got)
		}
		if mode == "yolo" {
			continue
		}
		if _, text, failed := c.ask("2", map[string]any{"agent": "native", "prompt": "go", "mode": "yolo"}); !failed ||
			!strings.Contains(text, "only a person can change that") {
			t.Errorf("%s: %s", flags, text)
		}
	}
	c := newPlace(t, "").start(t, "--allow-mode", "edit", "--read-only")
	if code := c.ends(); code != 2 || !strings.Contains(c.said.String(), "--allow-mode edit and --read-only") {
		t.Errorf("exit %d: %s", code, c.said.String())
	}
}

// TestWrongCalls are told in words that a model can use, and nothing is started.
func TestWrongCalls(t *testing.T) {
	p := newPlace(t, `[{"say":"no"}]`)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(p.work, "link")); err != nil {
		t.Fatal(err)
	}
	p.write(t, "file", "")
	c := p.start(t)
	c.hello()
	for i, row := range []struct {
		arguments map[string]any
		want      string
	}{
		{map[string]any{}, "there is no agent"},
		{map[string]any{"agent": "nobody", "prompt": "x"}, "there are claude, codex"},
		{map[string]any{"agent": "codex", "prompt": "x"}, "not installed"},
		{map[string]any{"agent": "native", "prompt": " \n"}, "the prompt is empty"},
		{map[string]any{"agent": "native", "prompt": "x", "promt": "y"}, `unknown field "promt"`},
		{map[string]any{"agent": "native", "prompt": 7}, "prompt cannot be a number"},
		{map[string]any{"agent": "native", "prompt": "x", "mode": "god"}, "there is no mode"},
		{map[string]any{"agent": "native", "prompt": "x", "dir": "/"}, "not in a directory"},
		{map[string]any{"agent": "native", "prompt": "x", "dir": ".."}, "not in a directory"},
		{map[string]any{"agent": "native", "prompt": "x", "dir": "link"}, "not in a directory"},
		{map[string]any{"agent": "native", "prompt": "x", "dir": "file"}, "is not a directory"},
		{map[string]any{"agent": "native", "prompt": "x", "dir": "gone"}, "there is no directory"},
		{map[string]any{"agent": "native", "prompt": "x", "timeout_seconds": 0}, "timeout_seconds"},
		{map[string]any{"agent": "native", "prompt": "x", "timeout_seconds": 1e9}, "timeout_seconds"},
		{map[string]any{"agent": "native", "prompt": strings.Repeat("x", 2<<20)}, "at most"},
	} {
		if _, text, failed := c.ask(fmt.Sprint(i), row.arguments); !failed || !strings.Contains(text, row.want) {
			t.Errorf("%v: %q", row.want, text)
		}
	}
	if n := len(p.model.Requests()); n > 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestGarbage: whatever comes, the next good request is answered.
func TestGarbage(t *testing.T) {
	c := newPlace(t, "").start(t)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if e := c.answer(1.0)["error"]; e == nil {
		t.Error("it works without an introduction")
	}
	c.hello()
	for line, code := range map[string]float64{
		"nonsense": -32700, `{"a":`: -32700, "\x00\x01\xff": -32700, `[]`: -32600,
		`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`: -32600, `7`: -32600, `"x"`: -32600,
		`{}`: -32600, `{"jsonrpc":"1.0","method":"ping"}`: -32600, `{"jsonrpc":"2.0","id":{},"method":"ping"}`: -32600,
		`{"jsonrpc":"2.0","id":null,"method":"ping"}`: -32600,
		`{"jsonrpc":"2.0","id":true,"method":"ping"}`: -32600, strings.Repeat("[", 100_000): -32700, strings.Repeat("x",
			9<<20): -32600,
	} {
		c.forget()
		c.send(line)
		c.refused(code)
	}
	c.send(strings.Repeat("z", 100<<20))
	for _, line := range []string{
		"", "   ", `{"jsonrpc":"2.0","id":9,"result":{}}`, `{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","method":"notifications/none"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}`,
	} {
		c.send(line)
	}
	for id, row := range map[string]struct {
		method, params string
		code           float64
	}{
		"m": {"resources/list", `{}`, -32601}, "n": {"tools/call", `7`, -32602}, "o": {
			"tools/call", `{"name":"rm"}`,
			-32602,
		}, "p": {"initialize", `[]`, -32602},
	} {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":%s}`, id, row.method, row.params))
		if e, _ := c.answer(id)["error"].(map[string]any); e["code"] != row.code {
			t.Errorf("%s: %v", row.method, e)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":"end","method":"ping"}`)
	if c.answer("end")["result"] == nil {
		t.Error("it is not there any more")
	}
	_, err := c.in.Write([]byte(`{"jsonrpc":"2.0","id":"half`))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.in.Close()
	if code := c.ends(); code != 0 {
		t.Errorf("exit %d %s", code, c.said.String())
	}
}

// busy is a script whose command tells when it runs, and never ends.
const busy = `[{"shell":"echo x > began; sleep 1000"},{"say":"no"}]`

// began waits until the command of busy runs.
func (p place) began(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.work, "began")); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the command does not begin")
		}
	}
}

// gone waits until nothing runs that has this home.
func (p place) gone(t *testing.T, and string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	var found []string
	for end := time.Now().Add(hermetic.Patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		found = slices.DeleteFunc(p.alive(t, 0), func(line string) bool {
			return and != "" &&
				strings.HasSuffix(strings.TrimSpace(line), and)
		})
		if len(found) == 0 {
			return
		}
	}
	t.Errorf("these are alive: %q", found)
}

// TestEnds: a call ends by its clock, by a cancellation, by a signal and with its client; nothing is alive then.
func TestEnds(t *testing.T) {
	arguments := map[string]any{"agent": "native", "prompt": "x", "model": "m", "mode": "yolo"}
	t.Run("clock", func(t *testing.T) {
		p := newPlace(t, busy)
		c := p.start(t, "--allow-mode", "yolo")
		c.hello()
		got, text, failed := c.ask("1", map[string]any{
			"agent": "native", "prompt": "x", "model": "m", "mode": "yolo",
			"timeout_seconds": 1,
		})
		if !failed || got["status"] != "timed_out" || got["changed"] != nil ||
			!strings.Contains(text, "did not end within 1s") {
			t.Errorf("%v %q", got, text)
		}
		p.gone(t, "mcp --allow-mode yolo")
	})
	t.Run("cancelled", func(t *testing.T) {
		p := newPlace(t, busy)
		c := p.start(t, "--allow-mode", "yolo")
		c.hello()
		c.send(call("1", arguments))
		p.began(t)
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`)
		p.gone(t, "mcp --allow-mode yolo")
		c.send(`{"jsonrpc":"2.0","id":"after","method":"ping"}`)
		c.answer("after")
		for _, m := range c.lines {
			if m["id"] == "1" {
				t.Errorf("a cancelled call was answered: %v", m)
			}
		}
	})
	t.Run("input", func(t *testing.T) {
		p := newPlace(t, busy)
		c := p.start(t, "--allow-mode", "yolo")
		c.hello()
		c.send(call("1", arguments))
		p.began(t)
		_ = c.in.Close()
		if code := c.ends(); code != 0 {
			t.Errorf("exit %d", code)
		}
		p.gone(t, "")
	})
	t.Run("client", func(t *testing.T) {
		p := newPlace(t, busy)
		c := p.start(t, "--allow-mode", "yolo")
		c.hello()
		c.send(call("1", arguments))
		p.began(t)
		_ = c.out.Close()
		_ = c.in.Close()
		c.ends()
		p.gone(t, "")
	})
	t.Run("signal", func(t *testing.T) {
		p := newPlace(t, busy)
		c := p.start(t, "--allow-mode", "yolo")
		c.hello()
		c.send(call("1", arguments))
		p.began(t)
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		if code := c.ends(); code != 143 {
			t.Errorf("exit %d", code)
		}
		p.gone(t, "")
	})
	t.Run("killed", func(t *testing.T) {
		p := newPlace(t, busy)
		c := p.start(t, "--allow-mode", "yolo")
		c.hello()
		c.send(call("1", arguments))
		p.began(t)
		_ = c.cmd.Process.Kill()
		c.ends()
		p.gone(t, "")
	})
}

// TestAtOnce: a fifth agent is refused while four work.
func TestAtOnce(t *testing.T) {
	p := newPlace(t, `[{"shell":"echo x > began-${input}; sleep 1000"}]`)
	c := p.start(t, "--allow-mode", "yolo")
	c.hello()
	for i := range 5 {
		c.send(call(fmt.Sprint(i), map[string]any{
			"agent": "native", "prompt": fmt.Sprint(i), "model": "m",
			"mode": "yolo",
		}))
	}
	m := c.await(func(m map[string]any) bool { return m["result"] != nil && m["id"] != "hello" })
	if raw, _ := json.Marshal(m); !strings.Contains(string(raw), "4 agents work already") {
		t.Errorf("%s", raw)
	}
	_ = c.in.Close()
	c.ends()
	p.gone(t, "")
}

// TestDepth: who is asked may ask one more, and no further, whatever becomes of the variable.
func TestDepth(t *testing.T) {
	for value, refused := range map[string]bool{
		"": false, "0": false, "1": false, "2": true, "99": true, "-1": true,
		"x": true,
	} {
		p := newPlace(t, `[{"say":"here"}]`)
		p.env = append(p.env, "OMNIAGENT_DEPTH="+value)
		c := p.start(t)
		c.hello()
		if _, text, failed := c.ask("1", map[string]any{
			"agent": "native", "prompt": "x",
			"model": "m",
		}); failed != refused || refused != strings.Contains(text, "that is the limit") {
			t.Errorf("%q: %q", value, text)
		}
		_ = c.in.Close()
		c.ends()
	}
}

// TestNested: the native agent has this very server among its own, and asks itself until the limit.
func TestNested(t *testing.T) {
	t.Run("counted", func(t *testing.T) { nested(t, nil) })
	t.Run("seen", func(t *testing.T) { // the agent in between does not hand the variable on
		if runtime.GOOS != "linux" {
			t.Skip("the processes above are looked at on Linux alone")
		}
		nested(t, map[string]string{"OMNIAGENT_DEPTH": ""})
	})
}

func nested(t *testing.T, set map[string]string) {
	t.Helper()
	p := newPlace(t,
		`[{"call":{"name":"mcp__omniagent__ask_agent","input":{"agent":"native","prompt":"again","model":"m"}}},{"say":"below: ${result}"}]`)
	config := filepath.Join(p.home, ".config", "omniagent")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	maps.Copy(env, set)
	for _, entry := range p.env {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "OPENAI_") {
			env[name] = value
		}
	}
	raw, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"omniagent": map[string]any{
		"command": program,
		"args":    []string{"mcp", "--allow-mode", "yolo"}, "env": env,
	}}})
	if err := os.WriteFile(filepath.Join(config, "mcp.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(config, "config.toml"),
		[]byte("native.allow = [\"mcp__omniagent__ask_agent\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := p.start(t)
	c.hello()
	got, text, _ := c.ask("1", map[string]any{"agent": "native", "prompt": "go", "model": "m"})
	if n := strings.Count(text, "below:"); n != 2 || !strings.Contains(text, "that is the limit") {
		t.Errorf("%d times: %v\n%s", n, got, text)
	}
}
