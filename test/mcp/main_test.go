//go:build unix

package mcp

import (
	"bufio"
	"encoding/json"
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

func TestMain(m *testing.M) {
	hermetic.Signals()
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		return hermetic.Sample(m, "TestNested", "TestUndo", "TestVersions", "TestQuestions", "TestOneSession")
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}

const patience = 30 * time.Second

// place is a home, a workspace and a model.
type place struct {
	home, work string
	env        []string
	model      *modelserver.Server
}

func newPlace(t *testing.T, script string) place {
	t.Helper()
	p := place{home: t.TempDir(), work: t.TempDir()}
	p.env = []string{"HOME=" + p.home, "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + t.TempDir()}
	if script != "" {
		backend, err := modelserver.ParseScript([]byte(script))
		if err != nil {
			t.Fatal(err)
		}
		if p.model, err = modelserver.Start(backend, modelserver.Options{Key: "sk-test"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.model.Close() })
		p.env = append(p.env, "OPENAI_BASE_URL="+p.model.URL()+"/v1", "OPENAI_API_KEY=sk-test")
	}
	return p
}

func (p place) write(t *testing.T, name, content string) {
	t.Helper()
	if err := hermetic.WriteProgram(filepath.Join(p.work, name), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
}

// client is a client made by hand.
type client struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.Closer
	ended chan struct{}

	mu    sync.Mutex
	lines []map[string]any
	grew  chan struct{}
	said  strings.Builder // on standard error
}

func (p place) start(t *testing.T, args ...string) *client {
	t.Helper()
	c := &client{
		t: t, cmd: exec.Command(program, append([]string{"mcp"}, args...)...), ended: make(chan struct{}),
		grew: make(chan struct{}, 1),
	}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stderr = p.work, p.env, &c.said
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, out
	go func() {
		defer close(c.ended)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var m map[string]any
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m["jsonrpc"] != "2.0" {
				t.Errorf("no message: %q", lines.Text())
			}
			c.mu.Lock()
			c.lines = append(c.lines, m)
			c.mu.Unlock()
			select {
			case c.grew <- struct{}{}:
			default:
			}
		}
		_ = c.cmd.Wait()
	}()
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); <-c.ended })
	return c
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// await waits for a message.
func (c *client) await(match func(map[string]any) bool) map[string]any {
	c.t.Helper()
	over := time.After(patience)
	for {
		c.mu.Lock()
		for _, m := range c.lines {
			if match(m) {
				c.mu.Unlock()
				return m
			}
		}
		all, _ := json.Marshal(c.lines)
		c.mu.Unlock()
		select {
		case <-c.grew:
		case <-over:
			c.t.Fatalf("the message that is awaited does not come: %s\n%s", all, c.said.String())
		}
	}
}

// answer waits for the answer to a request.
func (c *client) answer(id any) map[string]any {
	c.t.Helper()
	return c.await(func(m map[string]any) bool { v, ok := m["id"]; return ok && v == id && m["method"] == nil })
}

// refused waits for an error without an id.
func (c *client) refused(code float64) {
	c.t.Helper()
	c.await(func(m map[string]any) bool {
		e, ok := m["error"].(map[string]any)
		return ok && m["id"] == nil && e["code"] == code
	})
}

func (c *client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = nil
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

func (c *client) hello() {
	c.t.Helper()
	c.send(hello)
	c.answer("hello")
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// ends waits for the end and returns the exit code.
func (c *client) ends() int {
	c.t.Helper()
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.t.Fatal("it does not end")
	}
	return c.cmd.ProcessState.ExitCode()
}

// call is a line that asks an agent.
func call(id string, arguments map[string]any) string {
	raw, _ := json.Marshal(arguments)
	return `{"jsonrpc":"2.0","id":"` + id + `","method":"tools/call","params":{"name":"ask_agent","arguments":` +
		string(raw) + `,"_meta":{"progressToken":"p-` + id + `"}}}`
}

// ask calls ask_agent and waits.
func (c *client) ask(id string, arguments map[string]any) (structured map[string]any, text string, failed bool) {
	c.t.Helper()
	c.send(call(id, arguments))
	m := c.answer(id)
	result, ok := m["result"].(map[string]any)
	if !ok {
		c.t.Fatalf("%v", m)
	}
	structured, _ = result["structuredContent"].(map[string]any)
	failed, _ = result["isError"].(bool)
	return structured, result["content"].([]any)[0].(map[string]any)["text"].(string), failed
}

// alive are the processes that have this home, beside the program itself.
func (p place) alive(t *testing.T, but int) []string {
	t.Helper()
	var found []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && len(line) > 0 && strings.Contains(string(env), p.home) {
			found = append(found, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	_ = but
	return found
}
