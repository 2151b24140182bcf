package agents

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// editor speaks the Agent Client Protocol, version 1.
type editor struct {
	*driven
	asked int
	allow string // the kind of option that is chosen when something is asked
	said  strings.Builder
}

// call asks for something, and hears everything up to the answer.
func (e *editor) call(method string, params any) map[string]any {
	e.t.Helper()
	e.asked++
	text, _ := json.Marshal(params)
	e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, e.asked, method, text))
	for {
		line := e.untilOne("answer to "+method, func(l map[string]any) bool {
			return l["id"] != nil ||
				l["method"] == "session/update"
		})
		params, _ := line["params"].(map[string]any)
		switch line["method"] {
		case "session/update":
			update, _ := params["update"].(map[string]any)
			content, _ := update["content"].(map[string]any)
			if update["sessionUpdate"] == "agent_message_chunk" {
				fmt.Fprint(&e.said, content["text"])
			}
		case "session/request_permission":
			chosen := ""
			for _, o := range params["options"].([]any) {
				if option := o.(map[string]any); option["kind"] == e.allow {
					chosen = option["optionId"].(string)
				}
			}
			id, _ := json.Marshal(line["id"])
			e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, id,
				chosen))
		default:
			result, ok := line["result"].(map[string]any)
			if !ok {
				e.t.Fatalf("%s: %v\n%s", method, line, e.errors.String())
			}
			return result
		}
	}
}

func (e *editor) prompt(session, text string) string {
	e.t.Helper()
	e.said.Reset()
	r := e.call("session/prompt",
		map[string]any{"sessionId": session, "prompt": []any{map[string]string{"type": "text", "text": text}}})
	return fmt.Sprint(r["stopReason"])
}

func (e *editor) greet() {
	e.t.Helper()
	e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
}

// TestEditor: an editor has a conversation with each of the agents, which goes on in the next process, and what they
// ask for is asked in the editor.
func TestEditor(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for _, s := range someSubjects(t) {
		agent := s.driver.Name()
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			spare(t, agent)
			b := newBench(t, agent)
			m := scripted(t, `[{"say":"You said ${input}"}]`)
			e := &editor{driven: b.runs(m, "acp", "--agent", agent)}
			e.greet()
			place := map[string]any{"cwd": b.work, "mcpServers": []any{}}
			session, _ := e.call("session/new", place)["sessionId"].(string)
			if end := e.prompt(session, "remember zebra"); end != "end_turn" ||
				strings.Count(e.said.String(), "You said remember zebra") != 1 {
				t.Errorf("%s: %q\n%v", end, e.said.String(), e.heard)
			}
			if code := e.ends(); code != 0 {
				t.Errorf("exit code %d: %s", code, e.errors.String())
			}
			e = &editor{driven: b.runs(m, "acp", "--agent", agent)}
			e.greet()
			place["sessionId"] = session
			e.call("session/load", place)
			if end := e.prompt(session, "and now"); end != "end_turn" {
				t.Errorf("%s: %v\n%s", end, e.heard, e.errors.String())
			}
			requests := m.Requests()
			if last := string(requests[len(requests)-1].Raw); !strings.Contains(last, "remember zebra") ||
				!strings.Contains(last, "and now") {
				t.Errorf("it does not go on: %.2000s", last)
			}
			e.ends()
		})
	}
}

// TestEditorIsAsked by the agents that can.
func TestEditorIsAsked(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for agent, script := range map[string]string{"claude": python, "codex": touch} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			e := &editor{driven: b.runs(scripted(t, script), "acp", "--agent", agent), allow: "reject_once"}
			e.greet()
			session, _ := e.call("session/new",
				map[string]any{"cwd": b.work, "mcpServers": []any{}})["sessionId"].(string)
			if e.prompt(session, "go"); b.took("made") {
				t.Errorf("it was refused and made all the same: %v", e.heard)
			}
			e.allow = "allow_once"
			if e.prompt(session, "go"); !b.took("made") {
				t.Errorf("it was allowed and not made: %v\n%s", e.heard, e.errors.String())
			}
			e.ends()
		})
	}
}
