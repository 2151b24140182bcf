package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bench is a place where one agent works.
type bench struct {
	t    *testing.T
	work string
	home string
}

// newBench makes it beside the agents: codex refuses to work beneath the system's temporary directory.
func newBench(t *testing.T) *bench {
	t.Helper()
	if bin == "" {
		t.Skip("the agents are not here: OMNIAGENT_TEST_AGENTS=$(scripts/agents) go test ./test/agents")
	}
	base, err := os.MkdirTemp(filepath.Join(bin, "..", ".."), "bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	b := &bench{t: t, work: filepath.Join(base, "work"), home: filepath.Join(base, "home")}
	for _, dir := range []string{b.work, b.home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", b.work).CombinedOutput(); err != nil {
		t.Fatalf("git: %v %s", err, out)
	}
	return b
}

type report struct {
	ExitCode  int    `json:"exit_code"`
	AgentExit *int   `json:"agent_exit_code"`
	Version   string `json:"agent_version"`
	Session   string `json:"session_id"`
	Answered  *bool
	Denials   []struct{ Tool, Reason string }
	Error     *struct {
		Code   string
		Detail map[string]any
	}
}

type outcome struct {
	code           int
	stdout, stderr string
	report         report
	took           time.Duration
}

// run calls an agent with a prompt on a script.
func (b *bench) run(script, agent string, args ...string) outcome {
	b.t.Helper()
	file := filepath.Join(b.home, "script.json")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		b.t.Fatal(err)
	}
	record := filepath.Join(b.home, "report.json")
	_ = os.Remove(record)
	args = append([]string{"--agent", agent, "-p", "hello there", "--rehearse=" + file, "--report", record}, args...)
	cmd := exec.Command(program, args...)
	cmd.Dir = b.work
	cmd.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + b.home, "TERM=xterm-256color", "LANG=C.UTF-8", "IS_SANDBOX=1", "TMPDIR=" + b.t.TempDir(),
	}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	limit := time.AfterFunc(3*time.Minute, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	limit.Stop()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	o := outcome{code: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: errOut.String(), took: time.Since(began)}
	if data, err := os.ReadFile(record); err == nil {
		if err := json.Unmarshal(data, &o.report); err != nil {
			b.t.Fatal(err)
		}
	}
	return o
}

func (b *bench) made(name string) bool {
	path := filepath.Join(b.work, name)
	_, err := os.Stat(path)
	_ = os.Remove(path)
	return err == nil
}

// both is a script in which the model uses the shell, then the tool that writes.
const both = `[{"shell":"touch made"},{"write":{"path":"written.txt","content":"x"}},{"say":"heard ${input}"}]`

// pair is what comes of an approval with a sandbox: the exit code, and which of the two files are there.
type pair struct {
	approval, sandbox string
	code              int
	made, written     bool
}

func pairs(agent string) []pair {
	var list []pair
	add := func(approval string, code int, made, written bool, sandboxes ...string) {
		for _, s := range sandboxes {
			list = append(list, pair{approval, s, code, made, written})
		}
	}
	const unset, held, off = "", "workspace-write", "off"
	switch agent {
	case "claude":
		add("prompt", 3, false, false, unset, off)
		add("auto-edit", 0, true, true, unset, off)
		add("yolo", 0, true, true, unset, off)
	case "codex":
		add("prompt", 3, false, false, unset)
		add("prompt", 0, true, true, off)
		add("auto-edit", 0, true, true, off)
		add("yolo", 0, true, true, unset, off)
	case "gemini": // it withholds the tools, so nothing is denied
		add("prompt", 0, false, false, unset, off)
		add("auto-edit", 0, false, true, unset, off)
		add("yolo", 0, true, true, unset, off)
	case "opencode": // it has no sandbox, and ends the turn with the first denial
		add("prompt", 3, false, false, unset, held, off)
		add("auto-edit", 3, false, false, unset, held, off)
		add("yolo", 0, true, true, unset, held, off)
	}
	return list
}

// TestApprovalAndSandbox runs every pair that needs no helper program of the system.
func TestApprovalAndSandbox(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			b := newBench(t)
			for _, p := range pairs(agent) {
				args := []string{"--approval", p.approval}
				if p.sandbox != "" {
					args = append(args, "--sandbox", p.sandbox)
				}
				o := b.run(both, agent, args...)
				made, written := b.made("made"), b.made("written.txt")
				if o.code != p.code || made != p.made || written != p.written {
					t.Errorf("%s, sandbox %q: exit code %d, shell %v, write %v; want %+v\n%s\n%s", p.approval, p.sandbox, o.code, made, written, p, o.stdout, o.stderr)
				}
				if o.code == 3 && (len(o.report.Denials) == 0 || o.report.Error.Code != "BLOCKED_BY_POLICY") {
					t.Errorf("%s: blocked without evidence: %+v", p.approval, o.report)
				}
				if o.code == 0 && !strings.Contains(o.stdout, "heard hello there") {
					t.Errorf("%s: the prompt did not arrive: %s", p.approval, o.stdout)
				}
			}
		})
	}
}

// TestOutputs: the forms, and what the exit code says in each.
func TestOutputs(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			b := newBench(t)
			for _, form := range []string{"text", "json", "stream-json"} {
				o := b.run(`[{"say":"the answer"}]`, agent, "--output", form)
				if o.code != 0 || !strings.Contains(o.stdout, "the answer") || o.report.Answered == nil || !*o.report.Answered {
					t.Errorf("%s: %+v", form, o)
				}
				for i, line := range strings.Split(strings.TrimSpace(o.stdout), "\n") {
					if form == "stream-json" && !json.Valid([]byte(line)) {
						t.Errorf("%s: line %d is no JSON: %s", form, i, line)
					}
				}
			}
		})
	}
}

// TestErrors: no API error is a success, in no form of output, and the report knows which it was.
func TestErrors(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			b := newBench(t)
			for script, code := range map[string]string{
				`[{"error":401}]`:                 "AUTH_REQUIRED",
				`[{"error":429,"retry_after":1}]`: "RATE_LIMITED",
				`[{"error":400}]`:                 "API_ERROR",
			} {
				for _, form := range []string{"text", "stream-json"} {
					o := b.run(script, agent, "--output", form, "--timeout", "60s")
					if o.code != 1 || o.report.Error == nil || o.report.Error.Code != code {
						t.Errorf("%s, %s: exit code %d, %+v, want %s\n%s\n%s", script, form, o.code, o.report.Error, code, o.stdout, o.stderr)
					}
				}
			}
		})
	}
}

// TestStall: an agent whose model is silent is ended by our clock.
func TestStall(t *testing.T) {
	for _, agent := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			o := newBench(t).run(`[{"stall":"headers"}]`, agent, "--timeout", "8s")
			if o.code != 1 || !strings.Contains(o.stderr, "did not end within 8s") {
				t.Errorf("%+v", o)
			}
		})
	}
}

// TestSchema: the answer fits, natively or after our own check.
func TestSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	for _, agent := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(agent, func(t *testing.T) {
			b := newBench(t)
			script := `[{"json":{"n":7}}]`
			if agent == "gemini" || agent == "opencode" { // no schema of their own
				script = "[{\"say\":\"Here it is:\\n```json\\n{ \\\"n\\\": 7 }\\n```\"}]"
			}
			if o := b.run(script, agent, "--output-schema", schema); o.code != 0 || o.stdout != "{\"n\":7}\n" {
				t.Errorf("%+v", o)
			}
			o := b.run(`[{"say":"no"}]`, agent, "--output-schema", schema, "--output-schema-retries", "1", "--timeout", "60s")
			if o.code != 1 || o.stdout != "" {
				t.Errorf("never conforming: %+v", o)
			}
		})
	}
}
