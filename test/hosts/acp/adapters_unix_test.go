//go:build unix

package acp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAdapters: what others publish in front of Claude Code and Codex, each behind one entry in a person's file, in
// version 2 of the protocol.
func TestAdapters(t *testing.T) {
	t.Parallel()
	dir, agents := hosts(t), os.Getenv("OMNIAGENT_TEST_AGENTS")
	if agents == "" {
		t.Skip("the agents are not here: OMNIAGENT_TEST_AGENTS=$(scripts/agents) go test ./test/hosts/acp")
	}
	for _, c := range []struct {
		name, adapter, script string
		flags                 []string
		answers               []string
		reason, file          string
	}{
		{"claude, approved", "claude-agent-acp", writes, nil, []string{"--approve"}, "done", "hello\n"},
		{"claude, rejected", "claude-agent-acp", writes, nil, []string{"--reject"}, "denied", absent},
		{"claude, yolo", "claude-agent-acp", writes, []string{"--yolo"}, nil, "done", "hello\n"},
		{"codex, plan", "codex-acp", writes, []string{"--approval", "plan"}, nil, "done_unchanged", absent},
		{"codex, edits", "codex-acp", writes, []string{"--auto-edit"}, nil, "done", "hello\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, c.script)
			p.adapted(t, dir, agents, c.adapter)
			h := p.hand(t, append([]string{"run", "--agent", "other", "-p", "the task"}, c.flags...)...)
			for _, answer := range c.answers {
				if h.Data.Reason != "question" || p.read("made.txt") != absent {
					t.Fatalf("nothing was asked: %+v %s", h, p.read("made.txt"))
				}
				h = p.hand(t, "answer", h.Data.ID, answer)
			}
			if h.Data.Reason != c.reason || p.read("made.txt") != c.file {
				t.Errorf("%+v %+v %q", h.Data, h.Error, p.read("made.txt"))
			}
			if c.reason == "done" && !strings.Contains(h.Data.Text.Value, "I wrote it.") {
				t.Errorf("it said %q", h.Data.Text.Value)
			}
			raw := p.said(t, h.Data.ID)
			if !strings.Contains(raw, `"protocolVersion":2`) {
				t.Errorf("not version 2: %.500s", raw)
			}
		})
	}
}

const writes = `[{"write":{"path":"made.txt","content":"hello\n"}},{"say":"I wrote it."}]`

// adapted puts an adapter behind the entry, with the program that it drives and the scripted model. The places lie
// outside of the temporary directory, where codex lets commands write whatever its sandbox is.
func (p *place) adapted(t *testing.T, dir, agents, adapter string) {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "omniagent-adapter-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	p.home, p.work = filepath.Join(base, "home"), filepath.Join(base, "work")
	const key = "k0123456789012345678901234567890"
	for path, text := range map[string]string{
		filepath.Join(p.work, "README"): "one\n",
		// or the adapter begins in a mode in which a model decides what needs no question
		filepath.Join(p.home, ".claude", "settings.json"): `{"permissions":{"defaultMode":"default"}}`,
		filepath.Join(p.home, ".codex", "config.toml"): fmt.Sprintf("model = \"gpt-5\"\nmodel_provider = \"test\"\n"+
			"[model_providers.test]\nname = \"test\"\nbase_url = %q\nenv_key = \"CODEX_TEST_KEY\"\n"+
			"wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"+
			"[analytics]\nenabled = false\n[features]\nplugins = false\n", p.server.URL()+"/v1"),
		filepath.Join(p.home, ".config", "omniagent", "config.toml"): "[agents]\nenv = [\"ANTHROPIC_API_KEY\", " +
			"\"ANTHROPIC_BASE_URL\", \"CLAUDE_CODE_EXECUTABLE\", \"CLAUDE_CODE_MAX_RETRIES\", \"IS_SANDBOX\", " +
			"\"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC\", \"CODEX_PATH\", \"CODEX_TEST_KEY\"]\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.env = slices.DeleteFunc(p.env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "HOME" || name == "ANTHROPIC_API_KEY"
	})
	p.env = append(p.env, "HOME="+p.home, "ANTHROPIC_API_KEY="+key, "ANTHROPIC_BASE_URL="+p.server.URL(),
		"CLAUDE_CODE_EXECUTABLE="+filepath.Join(agents, "claude"), "CLAUDE_CODE_MAX_RETRIES=0", "IS_SANDBOX=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CODEX_PATH="+filepath.Join(agents, "codex"), "CODEX_TEST_KEY=k")
	file := filepath.Join(dir, "@agentclientprotocol", adapter, "dist", "index.js")
	if _, err := os.Stat(file); err != nil {
		t.Skipf("%s is not installed: scripts/hosts", adapter)
	}
	p.behind(t, filepath.Join(dir, ".bin", "node"), file)
}
