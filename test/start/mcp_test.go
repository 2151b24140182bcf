package start

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// serveMCP is a small server of tools on standard input and output.
func serveMCP() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Version   string          `json:"protocolVersion"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		var result string
		switch q.Method {
		case "initialize":
			result = fmt.Sprintf(
				`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"weather","version":"1"}}`,
				q.Params.Version)
		case "tools/list":
			result = `{"tools":[{"name":"forecast","description":"the weather of a place","inputSchema":{"type":"object","properties":{"place":{"type":"string"}}}}]}`
		case "tools/call":
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, "rain at "+string(q.Params.Arguments))
		default:
			result = "{}"
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", q.ID, result)
	}
}

// TestServers: tools of the user's MCP servers are offered, need approval, and a server that does not work is told and
// left out.
func TestServers(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(p.home, ".config", "omniagent")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	data, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"weather": map[string]any{"command": self, "args": []string{"serve-mcp"}},
		"broken":  map[string]any{"command": "/no/such/program"},
	}})
	if err := os.WriteFile(filepath.Join(config, "mcp.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	args, env, _ := wires()[2].scripted(t,
		`[{"call":{"name":"mcp__weather__forecast","input":{"place":"Bern"}}},{"say":"${result}"}]`)
	for mode, want := range map[string]string{"auto": `rain at {"place":"Bern"}`, "default": "It did not run"} {
		r := p.launch(t, env, append(args, "-p", "go", "--permission-mode", mode)...)
		messages, _ := r.end()
		if result := fmt.Sprint(messages[len(messages)-2]["result"]); !strings.HasPrefix(result, want) ||
			!strings.Contains(r.stderr.String(), "broken") {
			t.Errorf("%s: %s\n%s", mode, result, r.stderr.String())
		}
	}
}

// TestASilentServer: a person who waits for a server that says nothing reads what the conversation waits for.
func TestASilentServer(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	config := filepath.Join(p.home, ".config", "omniagent")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	const silent = `{"mcpServers":{"silent":{"command":"/bin/sleep","args":["1000"]}}}`
	if err := os.WriteFile(filepath.Join(config, "mcp.json"), []byte(silent), 0o600); err != nil {
		t.Fatal(err)
	}
	args, env, _ := wires()[2].scripted(t, `[{"say":"ok"}]`)
	cmd := exec.Command(program, append([]string{"start", "--cwd", p.work, "-p", "go"}, args...)...)
	cmd.Env, cmd.Dir = append(p.env, env...), p.work
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(stderr)
	for said.Scan() && !strings.Contains(said.Text(), "waiting for the MCP server silent") {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := said.Err(); err != nil || said.Text() == "" {
		t.Errorf("it did not say what it waits for: %v", err)
	}
	_ = cmd.Wait()
}
