package start

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
)

// wire is a provider with the address that it is given, and the variable of its key.
type wire struct{ provider, base, key string }

func wires() []wire {
	return []wire{
		{"openai", "/v1", "OPENAI_API_KEY"},
		{"codex", "/v1", "OPENAI_API_KEY"},
		{"anthropic", "", "ANTHROPIC_API_KEY"},
		{"gemini", "", "GEMINI_API_KEY"},
	}
}

// scripted is the program on a scripted model, behind that wire.
func (w wire) scripted(t *testing.T, script string) (args, env []string, server *modelserver.Server) {
	t.Helper()
	s, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server, err = modelserver.Start(s, modelserver.Options{Hurry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return []string{"--provider", w.provider, "--model", "test-model", "--api-base", server.URL() + w.base},
		[]string{w.key + "=secret-of-a-test"}, server
}

// TestSameStream: the same turn over all four wires is the same stream, but for ids, times and what the wires count.
func TestSameStream(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{
		"text":    `[{"say":"Hello, world."}]`,
		"think":   `[{"think":"Let me see."},{"say":"Done thinking."}]`,
		"tool":    `[{"say":"I look."},{"read":"a.txt"},{"say":"It says: ${result}"}]`,
		"several": `[{"calls":[{"read":"a.txt"},{"call":{"name":"Glob","input":{"pattern":"*.txt"}}},{"shell":"echo out; echo err >&2; exit 3"}]},{"say":"ok"}]`,
		"write":   `[{"write":{"path":"new/b.txt","content":"one\ntwo\n"}},{"call":{"name":"Edit","input":{"file_path":"new/b.txt","old_string":"two","new_string":"2"}}},{"say":"written"}]`,
		"unknown": `[{"call":{"name":"Fly","input":{"to":"the moon"}}},{"call":{"name":"Read","input":{}}},{"say":"I cannot"}]`,
		"todos":   `[{"call":{"name":"TodoWrite","input":{"todos":[{"content":"a","status":"in_progress","activeForm":"doing a"}]}}},{"say":"noted"}]`,
		"task":    `[{"call":{"name":"Task","input":{"description":"look","prompt":"look into a.txt"}}},{"say":"The sub-agent: ${result}"}]`,
		"retried": `[{"error":429,"times":1},{"say":"at last"}]`,
		"503":     `[{"error":503,"times":2},{"say":"at last"}]`,
		"rtl":     `[{"say":"\u202eab\u0000\u2028é😀"}]`,
	}
	fails := map[string]int{"several": 1, "unknown": 2, "task": 1} // a sub-agent has no sub-agents
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var first, from string
			for _, w := range wires() {
				p := newPlace(t)
				p.write(t, "a.txt", "hi\n")
				args, env, _ := w.scripted(t, script)
				r := p.launch(t, env, append(args, "--permission-mode", "auto", "-p", "go")...)
				messages, exit := r.end()
				got := canonical(messages, p)
				if exit != 0 {
					t.Errorf("%s: exit %d\n%s\n%s", w.provider, exit, got, r.stderr.String())
				}
				if first == "" {
					first, from = got, w.provider
				} else if withoutThinking(got) != withoutThinking(first) {
					t.Errorf("%s:\n%s\n%s:\n%s", from, first, w.provider, got)
				}
			}
			if failed := strings.Count(first, `"is_error":true`); !strings.Contains(first, `"result"`) ||
				failed != fails[name] {
				t.Errorf("%d failures:\n%s", failed, first)
			}
		})
	}
}

// canonical replaces what differs by nature: ids by their order, times and counts by nothing, and pieces of text by the
// whole.
func canonical(messages []map[string]any, p place) string {
	ids := map[string]string{}
	name := func(v any) any {
		id, ok := v.(string)
		if !ok {
			return v
		}
		if ids[id] == "" {
			ids[id] = fmt.Sprintf("id%d", len(ids)+1)
		}
		return ids[id]
	}
	var lines []string
	var open map[string]any
	flush := func() {
		if open != nil {
			data, _ := json.Marshal(open)
			lines = append(lines, string(data))
			open = nil
		}
	}
	for _, m := range messages {
		for _, key := range []string{"session_id", "tool_use_id", "parent_tool_use_id"} {
			if v, ok := m[key]; ok {
				m[key] = name(v)
			}
		}
		kind, _ := m["type"].(string)
		switch kind {
		case "tool_use":
			m["id"] = name(m["id"])
		case "text", "thinking":
			delete(m, "id")
		case "usage":
			m = map[string]any{"type": "usage"}
		case "result":
			for _, key := range []string{
				"usage", "modelUsage", "duration_ms", "duration_api_ms", "total_cost_usd",
				"usage_estimated",
			} {
				delete(m, key)
			}
			if notes, ok := m["errors"].([]any); ok {
				m["errors"] = len(notes)
			}
		}
		if open != nil && kind == "text" && open["type"] == "text" &&
			open["parent_tool_use_id"] == m["parent_tool_use_id"] {
			open["content"] = open["content"].(string) + m["content"].(string)
			continue
		}
		if open != nil && kind == "thinking" && open["type"] == "thinking" && m["is_thinking"] == true &&
			open["is_thinking"] == true {
			open["thought"] = open["thought"].(string) + m["thought"].(string)
			continue
		}
		flush()
		open = m
	}
	flush()
	return strings.ReplaceAll(strings.Join(lines, "\n"), p.work, "$WORK")
}

// withoutThinking leaves thinking out: not every wire tells it in words.
func withoutThinking(stream string) string {
	var kept []string
	for line := range strings.Lines(stream) {
		if !strings.Contains(line, `"type":"thinking"`) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestFailures: each failure of an API is a typed error, a result that is one, and exit code 1, and nothing of the key
// is told.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, w := range wires() {
		for _, status := range []string{"400", "401", "403", "404", "429", "500", "503", "529", `"context_full"`} {
			t.Run(w.provider+"/"+strings.Trim(status, `"`), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t)
				args, env, _ := w.scripted(t, `[{"error":`+status+`}]`)
				r := p.launch(t, env, append(args, "-p", "go")...)
				messages, exit := r.end()
				if exit != 1 || len(messages) < 3 {
					t.Fatalf("exit %d\n%s\n%s", exit, strings.Join(r.lines, "\n"), r.stderr.String())
				}
				failure, result := messages[len(messages)-3], messages[len(messages)-2]
				if failure["type"] != "error" && (failure["type"] != "system" || failure["subtype"] != "error") ||
					result["is_error"] != true {
					t.Errorf("%v\n%v", failure, result)
				}
				if text, _ := result["result"].(string); !strings.HasPrefix(text, "Error: ") {
					t.Errorf("the GUI would not show %q", text)
				}
				if all := strings.Join(r.lines, "") + r.stderr.String(); strings.Contains(all, "secret-of-a-test") {
					t.Errorf("the key is told: %s", all)
				}
			})
		}
	}
}

// TestResume: a second process continues what the first one said, and kept.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, w := range wires() {
		t.Run(w.provider, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "a.txt", "hi\n")
			args, env, server := w.scripted(t, `[{"think":"hm"},{"read":"a.txt"},{"say":"You said ${input}"}]`)
			messages, exit := p.launch(t, env, append(args, "-p", "first words")...).end()
			if exit != 0 {
				t.Fatal(messages)
			}
			id := messages[0]["session_id"].(string)
			before := len(server.Requests())
			messages, exit = p.launch(t, env, append(args, "-p", "second words", "--resume", id)...).end()
			if exit != 0 || messages[0]["session_id"] != id {
				t.Fatalf("exit %d, %v", exit, messages)
			}
			asked := string(server.Requests()[before].Raw)
			for _, said := range []string{"first words", "You said first words", "second words", "a.txt"} {
				if !strings.Contains(asked, said) {
					t.Errorf("%q is not in the request: %s", said, asked)
				}
			}
			data, err := os.ReadFile(filepath.Join(p.home, ".yume", "sessions", id+".json"))
			if err != nil || !strings.Contains(string(data), "second words") {
				t.Errorf("%s, %v", data, err)
			}
		})
	}
	p := newPlace(t)
	args, env, _ := wires()[0].scripted(t, `[]`)
	r := p.launch(t, env, append(args, "-p", "go", "--resume", "nobody")...)
	messages, exit := r.end()
	if exit != 2 || len(messages) != 3 || !strings.Contains(fmt.Sprint(messages[0]["message"]),
		"Session not found: nobody") {
		t.Errorf("exit %d, %v", exit, messages)
	}
}
