package agents

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDelegated: the native agent delegates to a real agent. What that may not do by itself is asked in front of the
// native agent, and only what is allowed there happens.
func TestDelegated(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for behaviour, written := range map[string]bool{"allow": true, "deny": false} {
		t.Run("claude/"+behaviour, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "claude")
			allow := exec.Command(program, "agents", "allow", b.agent)
			allow.Dir, allow.Env = b.work, b.wired("")
			if out, err := allow.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			inner := scripted(t, `[{"write":{"path":"new.txt","content":"x\n"}},{"say":"I am done."}]`)
			outer := scripted(t, `[{"call":{"name":"Delegate","input":{"goal":"the task"}}},{"say":"ok"}]`)
			cmd := exec.Command(program, "start", "--dialect", "claude", "--provider", "openai", "--model", "m",
				"--output-format", "stream-json", "--input-format", "stream-json", "--verbose",
				"--permission-prompt-tool", "stdio", "--permission-mode", "default")
			cmd.Dir = b.work
			cmd.Env = append(b.wired(inner.URL()), "OPENAI_BASE_URL="+outer.URL()+"/v1", "OPENAI_API_KEY=k")
			seen := b.hosted(cmd, behaviour)
			_, err := os.Stat(filepath.Join(b.work, "new.txt"))
			if (err == nil) != written || !strings.Contains(seen, `"tool_name":"Write"`) ||
				strings.Contains(seen, `\"status\": \"Done\"`) != written {
				t.Errorf("%v\n%s", err, seen)
			}
		})
	}
}

// hosted sends one message to a host's process, answers each question, and returns all lines.
func (b *bench) hosted(cmd *exec.Cmd, behaviour string) (seen string) {
	b.t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	clock := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer clock.Stop()
	say := func(line string) { _, _ = in.Write([]byte(line + "\n")) }
	say(`{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":""}`)
	lines := bufio.NewScanner(out)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		seen += lines.Text() + "\n"
		var m struct {
			Type string
			ID   string `json:"request_id"`
		}
		_ = json.Unmarshal(lines.Bytes(), &m)
		switch m.Type {
		case "control_request":
			say(`{"type":"control_response","response":{"subtype":"success","request_id":"` + m.ID +
				`","response":{"behavior":"` + behaviour + `","message":"no"}}}`)
		case "result":
			_ = in.Close()
		}
	}
	_ = cmd.Wait()
	return seen
}
