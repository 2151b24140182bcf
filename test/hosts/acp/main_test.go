package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// program is the built program.
var program string

// TestMain lets the test binary be an agent as well.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if isStub() {
		runStub()
		return
	}
	hermetic.AtOnce("4")
	os.Exit(measure.WithProgram("../../..", func(file string) int {
		program = file
		return hermetic.Sample(m, "TestTurn", "TestUndo", "TestPermission", "TestSetBetweenTurns")
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../../.."); err != nil {
		t.Fatal(err)
	}
}

// place is a home and a workspace of one test, and a model.
type place struct {
	home, work string
	env        []string
	args       []string
	server     *modelserver.Server
}

func newPlace(t *testing.T, script string) place {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(s, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	p := place{home: t.TempDir(), work: t.TempDir(), server: server}
	p.env = []string{
		"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "USERPROFILE=" + p.home,
		"ANTHROPIC_API_KEY=secret-of-a-test",
	}
	p.args = []string{"acp", "--provider", "anthropic", "--model", "test-model,other-model", "--api-base", server.URL()}
	return p
}

func (p place) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.work, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p place) read(name string) string {
	data, err := os.ReadFile(filepath.Join(p.work, name))
	if err != nil {
		return "no file"
	}
	return string(data)
}

type object = map[string]any

// client is the program at work, and what it says.
type client struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	number int
	// answer answers the requests of the program; nil: they wait.
	answer func(method string, params object) (result any, err object)

	mu    sync.Mutex
	lines []object
	grew  chan struct{}
	ended chan struct{}
	halt  sync.Mutex // held while nothing is read
}

// pause has the client read nothing until the returned function is called.
func (c *client) pause() (resume func()) {
	c.halt.Lock()
	return c.halt.Unlock
}

func (p place) launch(t *testing.T, more ...string) *client {
	t.Helper()
	c := &client{t: t, grew: make(chan struct{}, 1), ended: make(chan struct{})}
	c.cmd = exec.Command(program, append(p.args, more...)...)
	c.cmd.Env, c.cmd.Dir, c.cmd.Stderr = p.env, p.home, &c.stderr
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); <-c.ended })
	go c.listen(out)
	return c
}

func (c *client) listen(out io.Reader) {
	defer close(c.ended)
	in := bufio.NewReaderSize(out, 1<<20)
	for {
		c.halt.Lock()
		//lint:ignore SA2001 the end of a pause is waited for
		c.halt.Unlock()
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var m object
			if json.Unmarshal(line, &m) != nil || m["jsonrpc"] != "2.0" {
				c.t.Errorf("no message: %q", line)
			}
			c.mu.Lock()
			c.lines = append(c.lines, m)
			c.mu.Unlock()
			if method, ok := m["method"].(string); ok && m["id"] != nil && c.answer != nil {
				params, _ := m["params"].(object)
				result, wrong := c.answer(method, params)
				if wrong != nil {
					c.say(object{"jsonrpc": "2.0", "id": m["id"], "error": wrong})
				} else if result != nil {
					c.say(object{"jsonrpc": "2.0", "id": m["id"], "result": result})
				}
			}
			select {
			case c.grew <- struct{}{}:
			default:
			}
		}
		if err != nil {
			_ = c.cmd.Wait()
			return
		}
	}
}

func (c *client) say(m any) {
	data, err := json.Marshal(m)
	if err != nil {
		c.t.Error(err)
	}
	c.raw(string(data) + "\n")
}

func (c *client) raw(line string) { _, _ = io.WriteString(c.stdin, line) }

func (c *client) all() []object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]object(nil), c.lines...)
}

// await returns the first message from that place on which matches, and the place behind it.
func (c *client) await(from int, match func(object) bool) (object, int) {
	c.t.Helper()
	over := time.After(hermetic.Patience)
	for ended := false; ; {
		all := c.all()
		for i := from; i < len(all); i++ {
			if match(all[i]) {
				return all[i], i + 1
			}
		}
		if ended {
			c.t.Fatalf("it ended without what was awaited:\n%s\n%s", c.shown(), c.stderr.String())
		}
		select {
		case <-c.grew:
		case <-c.ended:
			ended = true
		case <-over:
			c.t.Fatalf("what was awaited does not come:\n%s", c.shown())
		}
	}
}

func (c *client) shown() string {
	var b strings.Builder
	for _, m := range c.all() {
		data, _ := json.Marshal(m)
		fmt.Fprintf(&b, "%s\n", data)
	}
	return b.String()
}

// send sends a request and returns its id.
func (c *client) send(method string, params any) int {
	c.number++
	c.say(object{"jsonrpc": "2.0", "id": c.number, "method": method, "params": params})
	return c.number
}

func (c *client) notify(method string, params any) {
	c.say(object{"jsonrpc": "2.0", "method": method, "params": params})
}

// reply is the answer to the request with that id.
func (c *client) reply(id any) object {
	c.t.Helper()
	m, _ := c.await(0, func(m object) bool { return m["method"] == nil && fmt.Sprint(m["id"]) == fmt.Sprint(id) })
	return m
}

// call sends a request and returns its result.
func (c *client) call(method string, params any) object {
	c.t.Helper()
	m := c.reply(c.send(method, params))
	result, ok := m["result"].(object)
	if !ok {
		c.t.Fatalf("%s: %v\n%s", method, m, c.stderr.String())
	}
	return result
}

// fails sends a request and returns the number and the text of its error.
func (c *client) fails(method string, params any) (int, string) {
	c.t.Helper()
	m := c.reply(c.send(method, params))
	e, ok := m["error"].(object)
	if !ok {
		c.t.Fatalf("%s did not fail: %v", method, m)
	}
	return int(e["code"].(float64)), fmt.Sprint(e["message"])
}

// begin agrees on a version and begins a session.
func (c *client) begin(version int, work string, capabilities object) string {
	c.t.Helper()
	c.greet(version, capabilities)
	return c.call("session/new", object{"cwd": work, "mcpServers": []any{}})["sessionId"].(string)
}

func (c *client) greet(version int, capabilities object) object {
	c.t.Helper()
	params := object{"protocolVersion": version, "clientCapabilities": capabilities}
	if version > 1 {
		params = object{
			"protocolVersion": version, "capabilities": capabilities,
			"info": object{"name": "test", "version": "1"},
		}
	}
	return c.call("initialize", params)
}

func text(s string) []object { return []object{{"type": "text", "text": s}} }

func (c *client) prompt(session, said string) object {
	c.t.Helper()
	return c.call("session/prompt", object{"sessionId": session, "prompt": text(said)})
}

// updates are those of a session, of one kind or, with none, all.
func (c *client) updates(kind string) []object {
	var found []object
	for _, m := range c.all() {
		if m["method"] != "session/update" {
			continue
		}
		u := m["params"].(object)["update"].(object)
		if kind == "" || u["sessionUpdate"] == kind {
			found = append(found, u)
		}
	}
	return found
}

// said is the text of all updates of a kind.
func (c *client) said(kind string) string {
	var b strings.Builder
	for _, u := range c.updates(kind) {
		content, _ := u["content"].(object)
		fmt.Fprint(&b, content["text"])
	}
	return b.String()
}

// end closes standard input, and returns the exit code.
func (c *client) end() int {
	c.t.Helper()
	_ = c.stdin.Close()
	return c.wait()
}

func (c *client) wait() int {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(hermetic.Patience):
		c.t.Fatalf("it does not end:\n%s\n%s", c.shown(), c.stderr.String())
	}
	return c.cmd.ProcessState.ExitCode()
}

// choosing answers every permission request with that option, and keeps the requests.
func (c *client) choosing(option string, asked *[]object) {
	c.answer = func(method string, params object) (any, object) {
		if method != "session/request_permission" {
			return nil, object{"code": -32601, "message": "not here"}
		}
		if asked != nil {
			c.mu.Lock()
			*asked = append(*asked, params)
			c.mu.Unlock()
		}
		return object{"outcome": object{"outcome": "selected", "optionId": option}}, nil
	}
}

// dig goes into objects and lists by names and numbers.
func dig(v any, way ...any) any {
	for _, step := range way {
		switch s := step.(type) {
		case string:
			m, _ := v.(object)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}
