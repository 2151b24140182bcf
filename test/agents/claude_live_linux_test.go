package agents

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

const python = `[{"shell": "python3 -c 'open(\"made\",\"w\")'"}, {"say": "told: ${result}"}]`

func TestClaudeConversation(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	c := b.talk(claude.New(), python,
		func(s *agent.Spec, _ *agent.Services) { s.Fresh = "7a0e4b1c-2f51-4a39-9a31-0f6f5a9d1c01" })
	end := c.answered("allow", event.Reply{Option: "allow"})
	if !end.End.OK || !b.took("made") || !c.has(event.ToolResult, "") ||
		c.AgentSessionID() != "7a0e4b1c-2f51-4a39-9a31-0f6f5a9d1c01" {
		t.Errorf("allowed, %s: %s", c.AgentSessionID(), story(c.heard))
	}
	end = c.answered("deny", event.Reply{Option: "deny", Text: "not today"})
	if !end.End.OK || b.took("made") || !c.has(event.Denied, `"by_user":true`) ||
		!strings.Contains(end.End.Text, "not today") {
		t.Errorf("denied: %s", story(c.heard))
	}
	end = c.answered("edited", event.Reply{Option: "allow", Input: json.RawMessage(`{"command":"touch other"}`)})
	if !end.End.OK || b.took("made") || !b.took("other") {
		t.Errorf("edited: %s", story(c.heard))
	}
	end = c.answered("stop", event.Reply{Option: "deny", Stop: true})
	if end.End.OK || b.took("made") {
		t.Errorf("stopped: %s", story(c.heard))
	}
	c.heard = nil
	c.say("interrupt")
	c.until(event.Question)
	c.Interrupt(true)
	if end = c.until(event.Ended); end.End.OK || b.took("made") || !c.has(event.Withdrawn, "") {
		t.Errorf("interrupted: %s", story(c.heard))
	}
	end = c.answered("always", event.Reply{Option: "always"})
	if !end.End.OK || !b.took("made") {
		t.Errorf("always: %s", story(c.heard))
	}
	end = c.answered("again", event.Reply{Option: "deny"})
	if !end.End.OK || !b.took("made") || c.has(event.Question, "") {
		t.Errorf("remembered: %s", story(c.heard))
	}
	if f := c.Facts(); f.Agent != "claude" || f.Version == "" || len(f.Tools) == 0 || f.Mode != setting.Prompt {
		t.Errorf("%+v", f)
	}
}

func TestClaudeModes(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	c := b.talk(claude.New(), python, nil)
	set := func(m setting.Approval) {
		t.Helper()
		if err := c.Set(t.Context(), agent.Change{Mode: m}); err != nil {
			t.Fatal(m, err)
		}
	}
	set(setting.Yolo) // before it runs
	set(setting.Prompt)
	if end := c.answered("asks", event.Reply{Option: "deny"}); !end.End.OK || b.took("made") ||
		!c.has(event.Question, "") {
		t.Errorf("prompt: %s", story(c.heard))
	}
	set(setting.Yolo)
	if end := c.answered("runs", event.Reply{Option: "deny"}); !end.End.OK || !b.took("made") ||
		c.has(event.Question, "") {
		t.Errorf("yolo: %s", story(c.heard))
	}
	set(setting.DenyAll)
	if end := c.answered("denied", event.Reply{Option: "allow"}); !end.End.OK || b.took("made") ||
		c.has(event.Question, "") || !c.refused() {
		t.Errorf("deny: %s", story(c.heard))
	}
	set(setting.AskAll)
	if end := c.answered("asks", event.Reply{Option: "allow"}); !end.End.OK || !b.took("made") ||
		!c.has(event.Question, "") {
		t.Errorf("ask: %s", story(c.heard))
	}
	if err := c.Set(t.Context(), agent.Change{Mode: "odd"}); fault.Of(err).Code != fault.ArgError {
		t.Error(err)
	}
	if err := c.Set(t.Context(), agent.Change{Model: "claude-sonnet-4-5"}); err != nil {
		t.Error(err)
	}
	if end := c.answered("model", event.Reply{Option: "allow"}); !end.End.OK || c.Facts().Model != "claude-sonnet-4-5" {
		t.Errorf("%+v: %s", c.Facts(), story(c.heard))
	}
}

// TestClaudeWritesWhatWasSeen: a yes counts for the file as it was when the question was shown.
func TestClaudeWritesWhatWasSeen(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	path := b.put("notes", "old\n")
	c := b.talk(claude.New(), `[{"write":{"path":"notes","content":"its"}},{"say":"end ${result}"}]`, nil)
	c.say("go")
	asked := c.until(event.Question)
	if err := os.WriteFile(path, []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.answer(asked, event.Reply{Option: "allow"})
	end := c.until(event.Ended)
	if got, _ := os.ReadFile(path); string(got) != "mine\n" ||
		!strings.Contains(end.End.Text, "has changed since the person was asked") {
		t.Errorf("%q %s", got, story(c.heard))
	}
	if end = c.answered("again", event.Reply{Option: "allow"}); !end.End.OK {
		t.Error(story(c.heard))
	}
	if got, _ := os.ReadFile(path); string(got) != "its" {
		t.Errorf("%q %s", got, story(c.heard))
	}
}

// TestClaudePlans: the CLI changes its mode when a plan is agreed to. That is told before the first call that it
// affects.
func TestClaudePlans(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	const script = `[{"call":{"name":"ExitPlanMode","input":{"plan":"do it"}}},
		{"shell":"python3 -c 'open(\"made\",\"w\")'"}, {"say":"done"}]`
	c := b.talk(claude.New(), script, func(s *agent.Spec, _ *agent.Services) { s.Terms.Mode = setting.Plan })
	end := c.answered("go", event.Reply{Option: "allow"})
	if !end.End.OK || !b.took("made") || c.Facts().Mode != setting.Prompt {
		t.Errorf("%s: %s", c.Facts().Mode, story(c.heard))
	}
	changed := slices.IndexFunc(c.heard, func(e event.Event) bool {
		return e.Kind == event.Changed && e.Facts.Mode == setting.Prompt
	})
	shell := slices.IndexFunc(c.heard, func(e event.Event) bool {
		return e.Kind == event.ToolCall && e.Call.Kind == event.Shell
	})
	if changed < 0 || changed > shell {
		t.Errorf("the mode is told at %d, the command at %d: %s", changed, shell, story(c.heard))
	}
	if err := c.Set(t.Context(), agent.Change{Mode: setting.Plan}); err != nil {
		t.Fatal(err)
	}
	end = c.answered("again", event.Reply{Option: "deny"})
	if !end.End.OK || b.took("made") || c.Facts().Mode != setting.Plan {
		t.Errorf("%s: %s", c.Facts().Mode, story(c.heard))
	}
}

// TestClaudeSteers: what is said while a tool runs, or while the last answer is made, is part of the turn.
func TestClaudeSteers(t *testing.T) {
	needAgents(t)
	b := newBench(t, "claude")
	yolo := func(s *agent.Spec, _ *agent.Services) { s.Terms.Mode = setting.Yolo }
	for name, script := range map[string]string{
		"a tool":      `[{"shell":"python3 -c 'import time; time.sleep(1.5)'"}, {"say":"told"}]`,
		"last answer": `[{"say":"one two three four five six seven eight nine ten","slow":"150ms"}]`,
	} {
		c := b.talk(claude.New(), script, yolo)
		c.steers("REMEMBER-ZEBRA")
		if own := c.AgentSessionID(); own == "" {
			t.Errorf("%s: no id", name)
		}
		end := c.answered("after", event.Reply{})
		if !end.End.OK {
			t.Errorf("%s: the turn after: %s", name, story(c.heard))
		}
	}
	c := b.talk(claude.New(), `[{"shell":"python3 -c 'import time; time.sleep(20)'"}, {"say":"told: ${input}"}]`, yolo)
	c.say("go")
	c.until(event.ToolCall)
	if _, steered, err := c.Steer(t.Context(), []event.Block{{Text: "REMEMBER-ZEBRA"}}); err != nil || !steered {
		t.Fatal(err)
	}
	c.Interrupt(true)
	if end := c.until(event.Ended); end.End.OK {
		t.Errorf("%s", story(c.heard))
	}
	if requests := c.model.Requests(); strings.Contains(string(requests[len(requests)-1].Raw), "ZEBRA") {
		t.Error("what was said to a turn that was interrupted began another")
	}
}

// TestClaudeHost: hooks, a server that lives in the host, a form, sub-agents, an image, nobody to ask.
func TestClaudeHost(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	var moments []string
	c := b.talk(claude.New(),
		`[{"call":{"name":"mcp__srv__hello","input":{"a":1}}}, {"shell":"python3 -c 'open(\"made\",\"w\")'"}, {"ask":"Which color?"}, {"say":"told: ${result}"}]`,
		func(s *agent.Spec, sv *agent.Services) {
			s.Terms.Servers = []byte(`{"srv":{"type":"sdk","name":"srv"}}`)
			s.Terms.Helpers = []agent.Helper{{Name: "helper", Description: "d", Prompt: "p"}}
			sv.Hook = func(_ context.Context, m agent.Moment) agent.HookAnswer {
				moments = append(moments, string(m.Name))
				if m.Name == agent.BeforeTool && m.Call.Kind == event.Shell {
					return agent.HookAnswer{Decision: "allow", Input: json.RawMessage(`{"command":"touch hooked"}`)}
				}
				return agent.HookAnswer{}
			}
			sv.Serve = func(_ context.Context, server string, message []byte) ([]byte, error) {
				var q struct {
					ID     json.RawMessage `json:"id"`
					Method string          `json:"method"`
				}
				_ = json.Unmarshal(message, &q)
				result := `{}`
				switch q.Method {
				case "initialize":
					result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"srv","version":"1"}}`
				case "tools/list":
					result = `{"tools":[{"name":"hello","description":"d","inputSchema":{"type":"object"}}]}`
				case "tools/call":
					result = `{"content":[{"type":"text","text":"hi from ` + server + `"}]}`
				}
				return []byte(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + result + `}`), nil
			}
		})
	c.say("go")
	if q := c.until(event.Question); q.Ask.Tool == nil || q.Ask.Tool.Kind != event.MCP {
		t.Fatalf("%s", tale(q))
	} else {
		c.answer(q, event.Reply{Option: "allow"})
	}
	q := c.until(event.Question)
	if q.Ask.Tool != nil || q.Ask.Text != "Which color?" || len(q.Ask.Options) == 0 {
		t.Fatalf("%s", tale(q))
	}
	c.answer(q, event.Reply{Text: "mauve"})
	end := c.until(event.Ended)
	if !end.End.OK || !strings.Contains(end.End.Text, "mauve") || !c.has(event.ToolResult, "hi from srv") ||
		b.took("made") || !b.took("hooked") {
		t.Errorf("%s", story(c.heard))
	}
	if got := strings.Join(moments, " "); !strings.Contains(got, "PreToolUse") ||
		!strings.Contains(got, "PostToolUse") || !strings.Contains(got, "Stop") ||
		!strings.Contains(got, "UserPromptSubmit") {
		t.Error(got)
	}
	f := c.Facts()
	if !strings.Contains(strings.Join(f.Helpers, " "), "helper") || len(f.Servers) != 1 ||
		f.Servers[0].Status != "connected" {
		t.Errorf("%+v", f)
	}
	alone := b.talk(claude.New(), python, func(_ *agent.Spec, sv *agent.Services) { sv.CanAsk = false })
	if end := alone.answered("go", event.Reply{}); !end.End.OK || b.took("made") || alone.has(event.Question, "") ||
		!alone.refused() {
		t.Errorf("%s", story(alone.heard))
	}
}

// TestClaudeGoesOn: after a death in the middle of a turn, from another session, and in a copy of it.
func TestClaudeGoesOn(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	c := b.talk(claude.New(), `[{"shell":"kill -9 $PPID"}, {"say":"${input}"}]`,
		func(s *agent.Spec, _ *agent.Services) { s.Terms.Mode = setting.Yolo })
	end := c.answered("dies", event.Reply{})
	if end.End.OK || !end.Synthetic || !c.has(event.Failed, "AGENT_FAILED") {
		t.Errorf("%s", story(c.heard))
	}
	id := c.AgentSessionID()
	d := b.talk(claude.New(), `[{"say":"I go on"}]`, func(s *agent.Spec, _ *agent.Services) { s.Resume = id })
	if end := d.answered("go on", event.Reply{}); !end.End.OK || d.AgentSessionID() != id || id == "" {
		t.Errorf("%q, %q: %s", id, d.AgentSessionID(), story(d.heard))
	}
	requests := d.model.Requests()
	if last := string(requests[len(requests)-1].Raw); !strings.Contains(last, "dies") {
		t.Error("it does not know what was said before")
	}
	const copied = "7a0e4b1c-2f51-4a39-9a31-0f6f5a9d1c02"
	f := b.talk(claude.New(), `[{"say":"a copy"}]`, func(s *agent.Spec, _ *agent.Services) {
		s.Resume, s.Fresh,
			s.Terms.Fork = id, copied, true
	})
	if end := f.answered("go on", event.Reply{}); !end.End.OK || f.AgentSessionID() != copied {
		t.Errorf("%q: %s", f.AgentSessionID(), story(f.heard))
	}
	n := b.talk(claude.New(), `[{"say":"the newest"}]`, func(s *agent.Spec, _ *agent.Services) {
		s.Terms.Continue, s.Fresh = true, "7a0e4b1c-2f51-4a39-9a31-0f6f5a9d1c03"
	})
	if end := n.answered("go on", event.Reply{}); !end.End.OK || n.AgentSessionID() != copied {
		t.Errorf("%q: %s", n.AgentSessionID(), story(n.heard))
	}
}

// TestClaudeWakes: a task in the background ends, and a turn begins that nobody asked for.
func TestClaudeWakes(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	c := b.talk(claude.New(),
		`[{"call":{"name":"Bash","input":{"command":"sleep 0.5","run_in_background":true}}}, {"say":"started"}]`,
		func(s *agent.Spec, sv *agent.Services) { s.Terms.Mode, sv.Grace = setting.Yolo, patience })
	if end := c.answered("go", event.Reply{}); !end.End.OK || end.Unprompted {
		t.Fatalf("%s", story(c.heard))
	}
	c.heard = nil
	if end := c.until(event.Ended); !end.Unprompted {
		t.Errorf("%s", story(c.heard))
	}
	if out, err := c.Close(t.Context()); err != nil || out.Exit.EndedBy != "" {
		t.Errorf("%v, it did not end by itself: %+v", err, out.Exit)
	}
}

// TestClaudeWithheld: what a repository says to the CLI counts only when a person has looked at it. CLAUDE.md is read
// where there is nothing else.
func TestClaudeWithheld(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	b.put("CLAUDE.md", "REMEMBER-ZEBRA")
	b.put("evil.sh", "echo x >> "+b.base+"/evil-env\n")
	b.put("key.sh", "#!/bin/sh\ntouch "+b.base+"/evil-key\necho k\n")
	opens := func(trusted func(string, []byte) bool) string {
		t.Helper()
		c := b.talk(claude.New(), `[{"shell":"echo hi"},{"say":"done"}]`, func(s *agent.Spec, _ *agent.Services) {
			s.Terms.Mode, s.Trusted = setting.Yolo, trusted
		})
		if end := c.answered("go", event.Reply{}); !end.End.OK {
			t.Errorf("%s", story(c.heard))
		}
		requests := c.model.Requests()
		if _, err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		return string(requests[len(requests)-1].Raw)
	}
	if !strings.Contains(opens(nil), "REMEMBER-ZEBRA") {
		t.Error("CLAUDE.md is not read")
	}
	settings := b.put(".claude/settings.json", `{"env":{"BASH_ENV":"`+b.work+`/evil.sh"},"apiKeyHelper":"`+b.work+`/key.sh",
		"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"touch `+b.base+`/evil-hook"}]}]}}`)
	opens(nil)
	opens(func(string, []byte) bool { return false })
	for _, name := range []string{"evil-env", "evil-key", "evil-hook"} {
		if b.took(b.base + "/" + name) {
			t.Errorf("%s was written by what the repository says", name)
		}
	}
	opens(func(path string, _ []byte) bool { return path == settings })
	if !b.took(b.base + "/evil-hook") {
		t.Error("what a person has trusted has no effect")
	}
}
