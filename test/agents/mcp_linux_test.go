package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/sys/process"
	"omniagent/internal/wire/mcp"
)

// TestAsksThroughUs: real agents have our server among theirs, and ask the native one through it. Each has a model of
// its own.
func TestAsksThroughUs(t *testing.T) {
	needAgents(t)
	t.Parallel()
	const secret = "the-word-is-marmalade"
	ask := map[string]any{"agent": "native", "prompt": "What does note.txt say?", "model": "m"}
	for agent, row := range map[string]struct {
		tool string
		args func(b *bench, server map[string]any) []string
	}{
		"claude": {"mcp__omniagent__ask_agent", func(b *bench, server map[string]any) []string {
			raw, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{"omniagent": server}})
			return []string{
				"--", "--mcp-config", b.put(filepath.Join(b.home, "servers.json"), string(raw)),
				"--allowedTools", "mcp__omniagent__ask_agent",
			}
		}},
		"codex": {"ask_agent", func(_ *bench, server map[string]any) []string {
			args := []string{"--yolo", "--"}
			for name, value := range server {
				text, _ := json.Marshal(value)
				if env, ok := value.(map[string]string); ok {
					text = []byte("{OPENAI_BASE_URL=\"" + env["OPENAI_BASE_URL"] + "\",OPENAI_API_KEY=\"" +
						env["OPENAI_API_KEY"] + "\"}")
				}
				args = append(args, "-c", "mcp_servers.omniagent."+name+"="+string(text))
			}
			return args
		}},
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			b.put("note.txt", secret+"\n")
			below := scripted(t, `[{"read":"note.txt"},{"say":"native read: ${result}"}]`)
			server := map[string]any{
				// the client's own key is in the environment too
				"command": program, "args": []string{"mcp", "--provider", "openai"},
				"env": map[string]string{
					"OPENAI_BASE_URL": below.URL() + "/v1",
					"OPENAI_API_KEY":  "sk-of-the-test-0123456789",
				},
			}
			input, _ := json.Marshal(ask)
			script := `[{"call":{"name":"` + row.tool + `","input":` + string(input) +
				`}},{"say":"I was told: ${result}"}]`
			o := b.run(script, row.args(b, server)...)
			if o.code != 0 || !strings.Contains(o.stdout, "I was told:") || !strings.Contains(o.stdout, secret) {
				t.Errorf("%+v", o)
			}
			if n := len(below.Requests()); n != 2 {
				t.Errorf("the native agent's model was asked %d times", n)
			}
		})
	}
}

// TestAsked: a real agent is asked through our server. It may read, and does not write.
func TestAsked(t *testing.T) {
	needAgents(t)
	t.Parallel()
	b := newBench(t, "claude")
	model := scripted(t, `[{"write":{"path":"`+filepath.Join(b.work, "new.txt")+
		`","content":"x"}},{"say":"tried: ${input}"}]`)
	env := append(b.environ(), "ANTHROPIC_BASE_URL="+model.URL(), "ANTHROPIC_API_KEY=sk-of-the-test-0123456789",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	ask := func(flags []string, arguments string) map[string]any {
		conn, err := mcp.Open(t.Context(),
			mcp.Server{Name: "omniagent", Command: append([]string{program, "mcp"}, flags...), Dir: b.work},
			mcp.Options{Programs: process.Programs{Env: env}, Version: "1"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		result, err := conn.Call(t.Context(), "ask_agent", json.RawMessage(arguments), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		if err := json.Unmarshal(result.Structured, &got); err != nil {
			t.Fatalf("%v: %+v", err, result)
		}
		return got
	}
	got := ask(nil, `{"agent":"claude","prompt":"write it"}`)
	if _, err := os.Stat(filepath.Join(b.work, "new.txt")); err == nil || got["status"] != "blocked" ||
		got["changed"] != false || got["session"] == nil || got["text"] != "tried: write it" {
		t.Errorf("%v, %v", got, err)
	}
	got = ask([]string{"--allow-mode", "edit"}, `{"agent":"claude","prompt":"write it","mode":"edit"}`)
	if _, err := os.Stat(filepath.Join(b.work, "new.txt")); err != nil || got["status"] != "done" ||
		got["changed"] != true {
		t.Errorf("%v, %v", got, err)
	}
}
