package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/agents/codex"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

const touch = `[{"shell": "touch made"}, {"say": "told: ${result}"}]`

func TestCodexConversation(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "codex")
	c := b.talk(codex.New(), touch, nil)
	end := c.answered("allow", event.Reply{Option: "allow"})
	if !end.End.OK || !b.took("made") || !c.has(event.Question, "touch made") || !c.has(event.ToolResult, "") ||
		c.AgentSessionID() == "" {
		t.Errorf("allowed, %s: %s", c.AgentSessionID(), story(c.heard))
	}
	end = c.answered("deny", event.Reply{Option: "deny"})
	if !end.End.OK || b.took("made") || !c.has(event.Denied, `"by_user":true`) {
		t.Errorf("denied: %s", story(c.heard))
	}
	end = c.answered("edited", event.Reply{Option: "allow", Input: json.RawMessage(`{"command":"touch other"}`)})
	if !end.End.OK || b.took("made") || b.took("other") {
		t.Errorf("edited, which codex cannot heed: %s", story(c.heard))
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
	for _, m := range []setting.Approval{setting.AutoEdit, setting.Yolo} {
		if err := c.Set(t.Context(), agent.Change{Mode: m, Model: "gpt-5-other"}); err != nil {
			t.Fatal(err)
		}
		if end = c.answered("runs", event.Reply{Option: "deny"}); !end.End.OK || !b.took("made") ||
			c.has(event.Question, "") {
			t.Errorf("%s: %s", m, story(c.heard))
		}
	}
	if err := c.Set(t.Context(), agent.Change{Mode: setting.Plan}); err != nil {
		t.Fatal(err)
	}
	if end = c.answered("plans", event.Reply{Option: "allow"}); !end.End.OK || b.took("made") ||
		c.has(event.Question, "") || !c.has(event.Denied, "Read-only file system") {
		t.Errorf("plan: %s", story(c.heard))
	}
	if err := c.Set(t.Context(), agent.Change{Mode: setting.AskAll}); fault.Of(err).Code != fault.Unsupported {
		t.Error(err)
	}
	requests := c.model.Requests()
	if last := string(requests[len(requests)-1].Raw); !strings.Contains(last, `"model":"gpt-5-other"`) {
		t.Error("the model is not the new one")
	}
	// A thread that is started with a sandbox that may write leaves the directory trusted.
	if data, _ := os.ReadFile(filepath.Join(b.home, ".codex", "config.toml")); strings.Contains(string(data), "trust") {
		t.Errorf("codex trusts the directory now: %s", data)
	}
}

func TestCodexTerms(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "codex")
	c := b.talk(codex.New(), `[{"json":{}}]`, func(s *agent.Spec, _ *agent.Services) {
		s.Schema = []byte(
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)
		s.Terms.Append = "REMEMBER-ZEBRA"
		s.Terms.Servers = []byte(`{"mcpServers":{"srv":{"command":"false"}}}`)
	})
	const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\xdac\x64\xf8\xcf\x50\x0f\x00\x03\x86\x01\x80\x5a\x34\x7d\x6b\x00\x00\x00\x00IEND\xaeB`\x82"
	if _, err := c.Send(t.Context(),
		[]event.Block{{Text: "look"}, {Media: "image/png", Data: []byte(pixel)}}); err != nil {
		t.Fatal(err)
	}
	if end := c.until(event.Ended); !end.End.OK || len(end.End.Structured) == 0 {
		t.Errorf("%s", story(c.heard))
	}
	requests := c.model.Requests()
	last := string(requests[len(requests)-1].Raw)
	for _, part := range []string{"REMEMBER-ZEBRA", "json_schema", "data:image/png;base64"} {
		if !strings.Contains(last, part) {
			t.Errorf("%s is not in the request", part)
		}
	}
	for name, change := range map[string]func(*agent.Spec){
		"forbidden tools":   func(s *agent.Spec) { s.Terms.Deny = []string{"Bash"} },
		"limit the turns":   func(s *agent.Spec) { s.Terms.MaxTurns = 3 },
		"no mode deny":      func(s *agent.Spec) { s.Terms.Mode = setting.DenyAll },
		"no mode auto-edit": func(s *agent.Spec) { s.Terms.Mode, s.Shared.Sandbox = setting.AutoEdit, off() },
		"live in the host":  func(s *agent.Spec) { s.Terms.Servers = []byte(`{"a":{"type":"sdk"}}`) },
		"off the network":   func(s *agent.Spec) { s.Terms.Mode, s.Terms.Network = setting.Yolo, "off" },
		"list of hosts":     func(s *agent.Spec) { s.Terms.Network = "a.example" },
	} {
		s := b.wanted(codex.New(), c.model)
		change(&s)
		if _, err := codex.New().Mind(t.Context(), s, agent.Services{}); fault.Of(err).Code != fault.Unsupported ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCodexSteers: what is said while a tool runs, or while the last answer is made, is part of the turn.
func TestCodexSteers(t *testing.T) {
	needAgents(t)
	b := newBench(t, "codex")
	for _, script := range []string{
		`[{"shell":"sleep 1.5"}, {"say":"told"}]`,
		`[{"say":"one two three four five six seven eight nine ten","slow":"150ms"}]`,
	} {
		c := b.talk(codex.New(), script, func(s *agent.Spec, _ *agent.Services) { s.Terms.Mode = setting.Yolo })
		c.steers("REMEMBER-ZEBRA")
		if end := c.answered("after", event.Reply{}); !end.End.OK {
			t.Errorf("the turn after: %s", story(c.heard))
		}
		if _, err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCodexGoesOn: after a death in the middle of a turn, from another session, in a copy of it, and with the newest.
func TestCodexGoesOn(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "codex")
	c := b.talk(codex.New(), `[{"shell":"kill -9 $PPID; sleep 1"}, {"say":"alive"}]`,
		func(s *agent.Spec, _ *agent.Services) { s.Terms.Mode = setting.Yolo })
	end := c.answered("first", event.Reply{})
	t.Logf("the parent of its shell killed: %s", tale(end))
	id := c.AgentSessionID()
	if _, err := c.Close(t.Context()); err != nil { // a thread has one writer
		t.Fatal(err)
	}
	d := b.talk(codex.New(), `[{"say":"I go on"}]`, func(s *agent.Spec, _ *agent.Services) { s.Resume = id })
	if end := d.answered("go on", event.Reply{}); !end.End.OK || d.AgentSessionID() != id || id == "" {
		t.Errorf("%q, %q: %s", id, d.AgentSessionID(), story(d.heard))
	}
	requests := d.model.Requests()
	if last := string(requests[len(requests)-1].Raw); !strings.Contains(last, "first") {
		t.Error("it does not know what was said before")
	}
	f := b.talk(codex.New(), `[{"say":"a copy"}]`, func(s *agent.Spec, _ *agent.Services) {
		s.Resume, s.Terms.Fork = id,
			true
	})
	if end := f.answered("go on", event.Reply{}); !end.End.OK || f.AgentSessionID() == id || f.AgentSessionID() == "" {
		t.Errorf("%q: %s", f.AgentSessionID(), story(f.heard))
	}
	if _, err := f.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := b.talk(codex.New(), `[{"say":"the newest"}]`,
		func(s *agent.Spec, _ *agent.Services) { s.Terms.Continue = true })
	if end := n.answered("go on", event.Reply{}); !end.End.OK || n.AgentSessionID() != f.AgentSessionID() {
		t.Errorf("%q: %s", n.AgentSessionID(), story(n.heard))
	}
	u := b.talk(codex.New(), `[]`,
		func(s *agent.Spec, _ *agent.Services) { s.Resume = "01a1fd29-4b02-79d2-bba6-41e8857da86f" })
	if end := u.answered("go on", event.Reply{}); end.End.OK || !u.has(event.Failed, "no rollout") {
		t.Errorf("%s", story(u.heard))
	}
}

func off() setting.Chosen[setting.Sandbox] {
	return setting.Chosen[setting.Sandbox]{Value: setting.Off, Origin: setting.Typed}
}
