package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/order"
)

// translated is what a GUI hears of an agent, in its dialect.
type translated struct {
	code   int
	lines  []string
	stderr string
	result map[string]any // the last
	broken error          // a rule of the dialect that was not kept
	asked  string         // the last request of the agent's to its model
}

// hears runs the program to its end. Without frames it answers one message and nobody can be asked.
func (b *bench) hears(dialect, script string, frames []string, args ...string) translated {
	b.t.Helper()
	m := scripted(b.t, script)
	all := []string{"start", "--agent", b.agent}
	if dialect == "claude" {
		all = append(all, "--dialect", "claude", "--output-format", "stream-json", "--verbose")
	}
	if frames == nil {
		all = append(all, "-p", "go")
	} else {
		all = append(all, "--input-format", "stream-json")
	}
	cmd := exec.Command(program, append(all, args...)...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.work, b.wired(m.URL()), &out, &errs
	cmd.Stdin = strings.NewReader(strings.Join(frames, "\n"))
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	limit.Stop()
	h := translated{
		code: cmd.ProcessState.ExitCode(), lines: strings.Split(strings.TrimSpace(out.String()), "\n"),
		stderr: errs.String(),
	}
	for _, line := range h.lines {
		var l map[string]any
		if json.Unmarshal([]byte(line), &l) == nil && l["type"] == "result" {
			h.result = l
		}
	}
	h.broken = order.Flat(h.lines)
	if dialect == "claude" {
		h.broken = order.Nested(h.lines)
		if b.agent == "claude" { // its own lines pass as they are
			h.broken = nil
		}
	}
	if q := m.Requests(); len(q) > 0 {
		h.asked = string(q[len(q)-1].Raw)
	}
	return h
}

func (h translated) count(kind string) (n int) {
	for _, line := range h.lines {
		var l struct{ Type string }
		if json.Unmarshal([]byte(line), &l) == nil && l.Type == kind {
			n++
		}
	}
	return n
}

func (h translated) String() string {
	return fmt.Sprintf("exit code %d, %v\n%s\n%s", h.code, h.broken, strings.Join(h.lines, "\n"), h.stderr)
}

// TestTranslated: whichever agent works, a GUI hears the lines that it knows, and what they say is what happened.
func TestTranslated(t *testing.T) {
	needAgents(t)
	t.Parallel()
	type dialect struct {
		name, ask, all string // and its words for two modes
		denied         int    // the exit code where nobody could be asked
		login          string // how a login that was not accepted is told
		message        func(string) string
	}
	dialects := []dialect{
		{
			"yume", "prompt", "auto", 3, "AUTH_REQUIRED",
			func(s string) string { return fmt.Sprintf(`{"type":"user","content":%q}`, s) },
		},
		{"claude", "default", "bypassPermissions", 0, "authentication_failed", func(s string) string {
			return fmt.Sprintf(
				`{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":""}`, s)
		}},
	}
	for i, s := range someSubjects(t) {
		agent, chosen := s.driver.Name(), dialects
		if !hermetic.Matrices() {
			chosen = dialects[i%2 : i%2+1]
		}
		for _, d := range chosen {
			t.Run(agent+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				spare(t, agent)
				b := newBench(t, agent)
				mode := func(m string) string { return "--permission-mode=" + m }
				h := b.hears(d.name, python, nil, mode(d.all))
				if h.code != 0 || h.broken != nil || !b.took("made") || h.result["is_error"] != false ||
					h.result["subtype"] != "success" || !strings.Contains(fmt.Sprint(h.result["result"]), "told: ") {
					t.Errorf("allowed: %v", h)
				}
				if u, _ := h.result["usage"].(map[string]any); u == nil || u["input_tokens"].(float64)+
					u["output_tokens"].(float64) == 0 {
					t.Errorf("usage: %v", h.result)
				}
				if h.result["session_id"] == "" || !strings.Contains(h.lines[0], fmt.Sprint(h.result["session_id"])) &&
					agent != "opencode" {
					t.Errorf("session: %v", h.result)
				}
				h = b.hears(d.name, python, nil, mode(d.ask))
				code, ends, denials := d.denied, false, 1
				switch {
				case agent == "gemini": // offers the tool to no model, so that there is nothing to deny
					code, denials = 0, 0
				case agent == "opencode": // ends the turn with a denial
					code, ends = max(code, 1), true
				}
				if h.code != code || h.broken != nil || b.took("made") || h.result["is_error"] != ends {
					t.Errorf("denied: %v", h)
				}
				if n, _ := h.result["permission_denials"].([]any); len(n) != denials {
					t.Errorf("what is said of the denial: %v", h)
				}
				h = b.hears(d.name, `[{"error":401}]`, nil)
				if h.code != 1 || h.broken != nil || h.result["is_error"] != true ||
					!strings.Contains(strings.Join(h.lines, ""), d.login) {
					t.Errorf("401: %v", h)
				}
				h = b.hears(d.name, `[{"say":"You said ${input}"}]`,
					[]string{d.message("remember zebra"), d.message("and now")}, mode(d.ask))
				if h.code != 0 || h.broken != nil || h.count("result") != 2 ||
					!strings.Contains(h.asked, "remember zebra") || !strings.Contains(h.asked, "and now") {
					t.Errorf("two messages: %v", h)
				}
			})
		}
	}
}

// TestTranslatedQuestion: an agent that asks, asks the host of Claude Code's in that host's own words.
func TestTranslatedQuestion(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for agent, script := range map[string]string{"claude": python, "codex": touch} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			d := b.drives(script, "--dialect", "claude", "--output-format", "stream-json", "--verbose",
				"--permission-prompt-tool", "stdio")
			for _, allowed := range []bool{true, false} {
				d.say(`{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":""}`)
				q := d.until("control_request")
				request, _ := q["request"].(map[string]any)
				input, _ := json.Marshal(request["input"])
				if request["subtype"] != "can_use_tool" || request["tool_name"] == "" ||
					!strings.Contains(string(input), "made") {
					t.Errorf("%v", q)
				}
				answer := fmt.Sprintf(`{"behavior":"allow","updatedInput":%s}`, input)
				if !allowed {
					answer = `{"behavior":"deny","message":"not today"}`
				}
				d.say(fmt.Sprintf(
					`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`,
					q["request_id"], answer))
				r := d.until("result")
				denials, _ := r["permission_denials"].([]any)
				if b.took("made") != allowed || r["is_error"] != false || (len(denials) == 0) != allowed {
					t.Errorf("allowed %v: %v\n%s", allowed, d.heard, d.errors.String())
				}
			}
			if code := d.ends(); code != 0 {
				t.Errorf("exit code %d: %s", code, d.errors.String())
			}
		})
	}
}

// TestTranslatedCost: Claude Code adds up what a session costs; a turn costs what is new, in a session that goes on in
// another process as well.
func TestTranslatedCost(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	say := func(text string) string { return fmt.Sprintf(`{"type":"user","content":%q}`, text) }
	const script = `[{"say":"You said ${input}"}]`
	first := b.hears("yume", script, []string{say("one"), say("two")})
	again := b.hears("yume", script, nil, "--resume", fmt.Sprint(first.result["session_id"]))
	for _, h := range []translated{first, again} {
		cost, _ := h.result["total_cost_usd"].(float64)
		usage, _ := h.result["usage"].(map[string]any)
		tokens, _ := usage["input_tokens"].(float64)
		if perToken := cost / tokens; perToken < 3e-6 || perToken > 5e-6 {
			t.Errorf("%v of %v tokens: %v", cost, tokens, h)
		}
	}
}

// TestProviderCopilot: for a host that names Copilot as a provider the installed program is driven.
func TestProviderCopilot(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "copilot")
	m := scripted(t, `[{"say":"hello from the script"}]`)
	d := b.runs(m, "start", "--provider", "copilot", "-p", "go")
	if line := d.until("result"); line["is_error"] != false || line["result"] != "hello from the script" {
		t.Errorf("%v: %s", line, d.errors.String())
	}
	if code := d.ends(); code != 0 {
		t.Errorf("exit %d: %s", code, d.errors.String())
	}
}
