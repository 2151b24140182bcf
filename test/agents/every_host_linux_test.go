package agents

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryHost has one conversation with each agent through each host. What the client gets is the agent's answer,
// and the journal has it.
func TestEveryHost(t *testing.T) {
	needAgents(t)
	t.Parallel()
	const said = "You said remember zebra"
	hosts := map[string]func(b *bench) string{
		"flat lines": func(b *bench) string {
			return b.converses(`{"type":"user","message":{"role":"user","content":"remember zebra"}}`)
		},
		"nested lines": func(b *bench) string {
			return b.converses(
				`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"remember zebra"}]}}`,
				"--dialect", "claude", "--output-format", "stream-json", "--verbose")
		},
		"acp": func(b *bench) string {
			e := &editor{driven: b.runs(scripted(b.t, `[{"say":"You said ${input}"}]`), "acp", "--agent", b.agent)}
			e.greet()
			place := map[string]any{"cwd": b.work, "mcpServers": []any{}}
			session, _ := e.call("session/new", place)["sessionId"].(string)
			if end := e.prompt(session, "remember zebra"); end != "end_turn" {
				b.t.Errorf("the turn ended with %s\n%s", end, e.errors.String())
			}
			e.ends()
			return e.said.String()
		},
		"mcp": func(b *bench) string {
			d := b.runs(scripted(b.t, `[{"say":"You said ${input}"}]`), "mcp")
			d.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
				`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
			d.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			d.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_agent",`+
				`"arguments":{"agent":%q,"prompt":"remember zebra"}}}`, b.agent))
			answer := d.untilOne("answer", func(l map[string]any) bool { return l["id"] == float64(2) })
			d.ends()
			text, _ := json.Marshal(answer)
			return string(text)
		},
	}
	for _, s := range subjects() {
		for host := range inTurn(t, s.driver.Name(), slices.Sorted(maps.Keys(hosts))) {
			t.Run(s.driver.Name()+"/"+host, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, s.driver.Name())
				if got := hosts[host](b); !strings.Contains(got, said) {
					t.Errorf("the client got %.2000s", got)
				}
				b.kept(said)
			})
		}
	}
}

// converses says one message over lines and returns what the result tells.
func (b *bench) converses(frame string, flags ...string) string {
	b.t.Helper()
	d := b.drives(`[{"say":"You said ${input}"}]`, flags...)
	d.say(frame)
	result := d.until("result")
	if code := d.ends(); code != 0 {
		b.t.Errorf("exit code %d: %s", code, d.errors.String())
	}
	return fmt.Sprint(result["result"])
}

// kept looks for what was said in the one journal that there is.
func (b *bench) kept(said string) {
	b.t.Helper()
	d := b.runs(scripted(b.t, `[]`), "session", "list", "--output", "json")
	list := d.untilOne("list", func(map[string]any) bool { return true })
	d.ends()
	text, _ := json.Marshal(list)
	var answer struct {
		Data struct {
			Sessions []struct{ ID, Agent, Cwd string }
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Data.Sessions) != 1 {
		b.t.Fatalf("%v: %s", err, text)
	}
	s := answer.Data.Sessions[0]
	if s.Agent != b.agent || filepath.Clean(s.Cwd) != filepath.Clean(b.work) {
		b.t.Errorf("%+v", s)
	}
	events := b.runs(scripted(b.t, `[]`), "session", "events", s.ID)
	events.untilOne(said, func(l map[string]any) bool {
		line, _ := json.Marshal(l)
		return strings.Contains(string(line), said)
	})
	events.ends()
}
