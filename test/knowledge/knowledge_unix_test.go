//go:build unix

package knowledge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// place is a home, a workspace and the programs on PATH of one test.
type place struct {
	t                *testing.T
	home, work, bins string
	env              []string
}

func newPlace(t *testing.T, env ...string) place {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := place{t: t, home: t.TempDir(), work: t.TempDir(), bins: t.TempDir()}
	for _, name := range []string{"omniagent", "sixth"} {
		if err := os.Symlink(self, filepath.Join(p.bins, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append([]string{
		"HOME=" + p.home, "PATH=" + p.bins + ":/usr/bin:/bin", "TMPDIR=" + t.TempDir(), "GORACE=atexit_sleep_ms=0",
	}, env...)
	return p
}

func (p place) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(p.bins, "omniagent"), args...)
	c.Dir, c.Env = p.work, p.env
	return c
}

// run is a call to its end, with nothing on standard input.
func (p place) run(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	c := p.command(ctx, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run()
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func (p place) file(name string) string {
	data, err := os.ReadFile(filepath.Join(p.work, name))
	if err != nil {
		return ""
	}
	return string(data)
}

func withFifth(t *testing.T, steps ...fifthAnswer) place {
	return newPlace(t, "FIFTH_API_KEY=key-of-a-test", "FIFTH_BASE_URL="+fifthServer(t, steps...))
}

// TestAgent: the sixth agent answers start, is listed and described, and doctor finds it.
func TestAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	out, errs, code := p.run("start", "--agent", "sixth", "-p", "hello")
	if code != 0 || !strings.Contains(out, "sixth heard: hello") {
		t.Errorf("start: %d %s\n%s", code, out, errs)
	}
	out, errs, code = p.run("agents", "show", "sixth", "--output", "json")
	if code != 0 || !strings.Contains(out, "npm install -g sixth-agent") {
		t.Errorf("agents show: %d %s\n%s", code, out, errs)
	}
	out, errs, _ = p.run("doctor", "--output", "json")
	var told struct {
		Data struct {
			Checks []struct {
				Name    string
				OK      bool
				Version *string
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &told); err != nil {
		t.Fatalf("doctor: %v %s\n%s", err, out, errs)
	}
	found := false
	for _, c := range told.Data.Checks {
		found = found || strings.Contains(c.Name, "sixth") && c.OK && c.Version != nil && *c.Version == "1.2.3"
	}
	if !found {
		t.Errorf("doctor: %s", out)
	}
}

// TestAPI: the fifth API is chosen by its key, by its name, and is told of where somebody errs.
func TestAPI(t *testing.T) {
	t.Parallel()
	p := withFifth(t, fifthAnswer{Say: "from the fifth"})
	for _, args := range [][]string{{}, {"--provider", "fifth"}} {
		out, errs, code := p.run(append([]string{"start", "-p", "hello"}, args...)...)
		if code != 0 || !strings.Contains(out, "from the fifth") || !strings.Contains(out, "fifth-large") {
			t.Errorf("%v: %d %s\n%s", args, code, out, errs)
		}
	}
	out, errs, code := p.run("start", "--provider", "fith", "-p", "hello")
	if code != 2 || !strings.Contains(out+errs, "omniagent start --provider fifth -p hello") {
		t.Errorf("%d %s\n%s", code, out, errs)
	}
	p.env = append(p.env, "OMNIAGENT_OUTPUT=plain")
	if out, _, _ := p.run("start", "--help"); !strings.Contains(out, "fifth") {
		t.Errorf("its name is not in the help: %s", out)
	}
}

// TestTool: rules are about the new tool by its name, by the form of its brackets and by what it does.
func TestTool(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		stamp string
	}{
		{"nobody is asked", []string{"--approval", "prompt"}, ""},
		{"allowed for a file", []string{"--approval", "prompt", "--allowed-tools", "Stamp(a*)"}, "stamped\n"},
		{"allowed for another", []string{"--approval", "prompt", "--allowed-tools", "Stamp(b*)"}, ""},
		{"edits are allowed", []string{"--approval", "prompt", "--allowed-tools", "Edit(a*)"}, "stamped\n"},
		{"edits are automatic", []string{"--approval", "auto-edit"}, "stamped\n"},
		{"edits are denied", []string{"--approval", "yolo", "--disallowed-tools", "Write(a*)"}, ""},
		{"reading only", []string{"--approval", "plan"}, ""},
		{"there is no such tool", []string{"--approval", "yolo", "--tools", "Read"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := withFifth(t, calls("Stamp", `{"path":"a.txt"}`))
			out, errs, code := p.run(append([]string{"start", "-p", "stamp it"}, c.args...)...)
			if got := p.file("a.txt"); got != c.stamp || c.stamp != "" && code != 0 {
				t.Errorf("%q, %d %s\n%s", got, code, out, errs)
			}
		})
	}
	out, errs, code := withFifth(t).run("start", "-p", "x", "--allowed-tools", "Stamp([a])")
	if code != 2 || !strings.Contains(out+errs, "brackets") {
		t.Errorf("a rule that does not parse: %d %s\n%s", code, out, errs)
	}
}

// TestProtected: nothing touches what belongs to the sixth agent, and nothing starts it unasked.
func TestProtected(t *testing.T) {
	t.Parallel()
	p := withFifth(t, calls("Write", `{"file_path":".sixth/settings","content":"x"}`))
	out, errs, _ := p.run("start", "--approval", "yolo", "-p", "go")
	if !strings.Contains(out, ".sixth is protected") || p.file(".sixth/settings") != "" {
		t.Errorf("settings: %s\n%s", out, errs)
	}
	if err := os.Mkdir(filepath.Join(p.work, ".sixth"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.work, ".sixth", "start"), []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := p.run("trust", ".sixth/start", "--dry-run"); code != 0 ||
		!strings.Contains(out, "what the sixth does at its start") {
		t.Errorf("trust: %d %s\n%s", code, out, errs)
	}
	for _, c := range []struct{ subject, says string }{
		{".sixth/settings", ".sixth is protected"},
		{p.home + "/.config/sixth/login", "credentials are kept there"},
		{"sixth run", "it starts the agent sixth"},
		{"npx sixth-agent@2 run", "it starts the agent sixth"},
	} {
		out, errs, code := p.run("sandbox", "explain", "--output", "json", "--", c.subject)
		if code != 0 || !strings.Contains(out, c.says) {
			t.Errorf("%s: %d %s\n%s", c.subject, code, out, errs)
		}
	}
}

// editor is a client of the Agent Client Protocol.
type editor struct {
	t     *testing.T
	in    io.Writer
	lines *bufio.Scanner
	ids   int
	seen  strings.Builder
	asked int
}

func (p place) edit(args ...string) *editor {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	c := p.command(ctx, append([]string{"acp"}, args...)...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = c.Wait()
		cancel()
	})
	e := &editor{t: p.t, in: in, lines: bufio.NewScanner(out)}
	e.lines.Buffer(nil, 1<<20)
	return e
}

// call sends a request and reads until it is answered. What is asked meanwhile is allowed.
func (e *editor) call(method string, params map[string]any) (result map[string]any) {
	e.t.Helper()
	e.ids++
	e.send(map[string]any{"jsonrpc": "2.0", "id": e.ids, "method": method, "params": params})
	for e.lines.Scan() {
		e.seen.Write(append(e.lines.Bytes(), '\n'))
		var m struct {
			ID     any
			Method string
			Result map[string]any
			Error  any
		}
		if err := json.Unmarshal(e.lines.Bytes(), &m); err != nil {
			e.t.Fatal(err)
		}
		switch {
		case m.Method == "session/request_permission":
			e.asked++
			outcome := map[string]any{"outcome": "selected", "optionId": "allow"}
			e.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"outcome": outcome}})
		case m.Method == "" && m.ID == float64(e.ids):
			if m.Error != nil {
				e.t.Fatalf("%s: %v", method, m.Error)
			}
			return m.Result
		}
	}
	e.t.Fatalf("%s: no answer: %s", method, e.seen.String())
	return nil
}

func (e *editor) send(message map[string]any) {
	data, err := json.Marshal(message)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.in.Write(append(data, '\n')); err != nil {
		e.t.Fatal(err)
	}
}

// say opens a session, says one thing and returns how the turn ended.
func (e *editor) say(dir, text string) any {
	e.t.Helper()
	e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	session := e.call("session/new", map[string]any{"cwd": dir, "mcpServers": []any{}})
	return e.call("session/prompt", map[string]any{
		"sessionId": session["sessionId"], "prompt": []any{map[string]any{"type": "text", "text": text}},
	})["stopReason"]
}

// TestEditor: an editor has the sixth agent, and through the fifth API the new tool, which it is shown as an edit. A
// plan in the input of a call is shown as one, whatever the tool is called.
func TestEditor(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.edit("--agent", "sixth")
	if end := e.say(p.work, "hello"); end != "end_turn" || !strings.Contains(e.seen.String(), "sixth heard: hello") {
		t.Errorf("%v: %s", end, e.seen.String())
	}
	p = withFifth(t, calls("Stamp", `{"path":"a.txt","plan":[{"step":"stamp it","status":"completed"}]}`))
	e = p.edit("--provider", "fifth")
	end, seen := e.say(p.work, "stamp it"), e.seen.String()
	if end != "end_turn" || e.asked != 1 || p.file("a.txt") != "stamped\n" ||
		!strings.Contains(seen, `"kind":"edit"`) ||
		!strings.Contains(seen, "it is stamped") || !strings.Contains(seen, `"content":"stamp it"`) ||
		!strings.Contains(seen, `"sessionUpdate":"plan"`) {
		t.Errorf("%v, asked %d times: %s", end, e.asked, seen)
	}
}
