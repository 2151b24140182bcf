package agents

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
	"testing"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
)

// driven is the built program with an installed agent behind it, as a GUI drives it.
type driven struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan map[string]any
	errors bytes.Buffer
	heard  []map[string]any
}

// wired is the environment in which each agent finds that model by itself, as a person would have set it up.
func (b *bench) wired(url string) []string {
	b.t.Helper()
	more, err := hermetic.Wire(b.agent, b.home, b.work, url)
	if err != nil {
		b.t.Fatal(err)
	}
	return append(append(b.environ(), "OTHER_VENDOR_KEY=secret"), more...)
}

// drives starts the program for a conversation over lines, with a scripted model in the place of the agent's own.
func (b *bench) drives(script string, args ...string) *driven {
	b.t.Helper()
	return b.runs(scripted(b.t, script), append([]string{"start", "--agent", b.agent, "--input-format", "stream-json"},
		args...)...)
}

// runs starts the program in the environment of the agent, whose model that is.
func (b *bench) runs(m *modelserver.Server, args ...string) *driven {
	b.t.Helper()
	d := &driven{t: b.t, lines: make(chan map[string]any, 1000)}
	d.cmd = exec.Command(program, args...)
	d.cmd.Dir = b.work
	d.cmd.Env = b.wired(m.URL())
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		b.t.Fatal(err)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	d.cmd.Stderr = &d.errors
	if err := d.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = d.cmd.Process.Kill() })
	go func() {
		defer close(d.lines)
		read := bufio.NewScanner(out)
		read.Buffer(nil, 16<<20)
		for read.Scan() {
			var line map[string]any
			if json.Unmarshal(read.Bytes(), &line) != nil {
				line = map[string]any{"type": "no JSON: " + read.Text()}
			}
			d.lines <- line
		}
	}()
	return d
}

func (d *driven) say(frame string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, frame+"\n"); err != nil {
		d.t.Fatal(err)
	}
}

// until hears lines up to one of that type.
func (d *driven) until(kind string) map[string]any {
	d.t.Helper()
	return d.untilOne(kind, func(line map[string]any) bool { return line["type"] == kind })
}

// untilOne hears lines up to one of that kind.
func (d *driven) untilOne(kind string, is func(map[string]any) bool) map[string]any {
	d.t.Helper()
	over := time.After(patience)
	for {
		select {
		case line, open := <-d.lines:
			if !open {
				d.t.Fatalf("no %s: %v\n%s", kind, d.heard, d.errors.String())
			}
			d.heard = append(d.heard, line)
			if is(line) {
				return line
			}
		case <-over:
			d.t.Fatalf("no %s within %v: %v\n%s", kind, patience, d.heard, d.errors.String())
		}
	}
}

// ends lets it end by itself and returns the exit code.
func (d *driven) ends() int {
	d.t.Helper()
	_ = d.in.Close()
	for range d.lines { //nolint:revive // what is left
	}
	limit := time.AfterFunc(patience, func() { _ = d.cmd.Process.Kill() })
	defer limit.Stop()
	_ = d.cmd.Wait()
	return d.cmd.ProcessState.ExitCode()
}

// TestDriven: the same conversation with each agent that can be asked, through the built program.
func TestDriven(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for agent, script := range map[string]string{"claude": python, "codex": touch} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			d := b.drives(script, "--permission-mode", "prompt", "--allow-bypass")
			turn := func(approved bool) map[string]any {
				d.heard = nil
				d.say(`{"type":"user","content":"go"}`)
				call := d.until("tool_use")
				d.say(fmt.Sprintf(`{"type":"tool_approval","id":%q,"approved":%v}`, call["id"], approved))
				return d.until("result")
			}
			if r := turn(true); r["is_error"] != false || !b.took("made") {
				t.Errorf("allowed: %v", d.heard)
			}
			if r := turn(false); r["is_error"] != false || b.took("made") {
				t.Errorf("denied: %v", d.heard)
			}
			d.heard = nil
			d.say(`{"type":"user","content":"go"}`)
			d.until("tool_use")
			d.say(`{"type":"interrupt"}`)
			if r := d.until("result"); r["is_error"] != true || b.took("made") {
				t.Errorf("interrupted: %v", d.heard)
			}
			d.say(`{"type":"set_permission_mode","mode":"auto"}`)
			d.say(`{"type":"user","content":"go"}`)
			if r := d.until("result"); r["is_error"] != false || !b.took("made") {
				t.Errorf("auto: %v\n%s", d.heard, d.errors.String())
			}
			if code := d.ends(); code != 0 {
				t.Errorf("exit code %d: %s", code, d.errors.String())
			}
			data, err := os.ReadFile(filepath.Join(b.home, ".local", "share", "omniagent", "audit.jsonl"))
			if err != nil || !strings.Contains(string(data), `"command":"start --agent `+agent+`"`) ||
				!strings.Contains(string(data), "real_path=") {
				t.Errorf("%v: %s", err, data)
			}
		})
	}
}

// TestNoBypass: no host lets an agent do everything later on, unless the conversation was begun so.
func TestNoBypass(t *testing.T) {
	needAgents(t)
	t.Parallel()
	flat := []string{`{"type":"set_permission_mode","mode":"yolo"}`, `{"type":"user","content":"go"}`}
	nested := []string{
		`{"type":"control_request","request_id":"m","request":{"subtype":"set_permission_mode",` +
			`"mode":"bypassPermissions"}}`,
		`{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":""}`,
	}
	for _, tt := range []struct {
		agent, dialect, script string
		frames                 []string
		flags, may             []string
	}{
		{"claude", "yume", python, flat, []string{"--questions", "none"}, []string{"--allow-bypass"}},
		{"codex", "yume", touch, flat, []string{"--questions", "none"}, []string{"--allow-bypass"}},
		{"claude", "claude", python, nested, nil, []string{"--allow-dangerously-skip-permissions"}},
	} {
		t.Run(tt.agent+"/"+tt.dialect, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tt.agent)
			mode := map[string]string{"yume": "prompt", "claude": "default"}[tt.dialect]
			prompt := append(tt.flags, "--permission-mode", mode)
			if h := b.hears(tt.dialect, tt.script, tt.frames, prompt...); b.took("made") {
				t.Errorf("it ran: %v", h)
			}
			if h := b.hears(tt.dialect, tt.script, tt.frames, append(prompt, tt.may...)...); !b.took("made") {
				t.Errorf("it did not run: %v", h)
			}
		})
	}
}

// TestDrivenEnvironment: what is not the agent's stays with us.
func TestDrivenEnvironment(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	d := b.drives(`[{"shell": "env > seen"}, {"say": "done"}]`, "--permission-mode", "auto")
	d.say(`{"type":"user","content":"go"}`)
	d.until("result")
	d.ends()
	seen, err := os.ReadFile(filepath.Join(b.work, "seen"))
	if err != nil || !strings.Contains(string(seen), "HOME=") || strings.Contains(string(seen), "OTHER_VENDOR_KEY") ||
		strings.Contains(string(seen), "CODEX_TEST_KEY") {
		t.Errorf("%v: %s", err, seen)
	}
}
