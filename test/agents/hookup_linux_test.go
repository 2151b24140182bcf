package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPInstall: what mcp install writes is what the agent itself lists, and what it has made of its own file stays.
// Removed, the file is as it was, and the agent lists it no longer.
func TestMCPInstall(t *testing.T) {
	needAgents(t)
	t.Parallel()
	for agent, row := range map[string]struct{ file, before string }{
		"claude":  {".claude.json", "{\n  \"numStartups\": 3,\n  \"mcpServers\": {}\n}\n"},
		"codex":   {".codex/config.toml", "# mine\nmodel = 'x'\n"},
		"copilot": {".copilot/mcp-config.json", "{\n  \"mcpServers\": {\n  }\n}\n"},
		"gemini": {
			".gemini/settings.json",
			"{\n  // mine\n  \"ui\": {\"hideBanner\": true},\n  \"mcpServers\": {}\n}\n",
		},
		"opencode": {
			".config/opencode/opencode.jsonc",
			"{\n  \"$schema\": \"https://opencode.ai/config.json\", // mine\n  \"autoupdate\": false,\n  \"mcp\": " +
				"{},\n}\n",
		},
	} {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, agent)
			b.env = append(b.env, "GEMINI_CLI_TRUST_WORKSPACE=true", "OPENCODE_DISABLE_AUTOUPDATE=1",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
			file := b.put(filepath.Join(b.home, row.file), row.before)
			call := func(name string, args ...string) string {
				cmd := exec.CommandContext(t.Context(), name, args...)
				cmd.Dir, cmd.Env = b.work, b.environ()
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			lists := func() bool {
				return strings.Contains(call(filepath.Join(bin, agent), "mcp", "list"), "omniagent")
			}
			if lists() {
				t.Error("it is there before")
			}
			call(program, "mcp", "install", agent, "--dry-run")
			if text, err := os.ReadFile(file); err != nil || agent != "claude" && string(text) != row.before {
				t.Errorf("a dry run left %s (%v)", text, err)
			}
			before, err := os.ReadFile(file) // Claude Code keeps its own state in it
			if err != nil {
				t.Fatal(err)
			}
			call(program, "mcp", "install", agent, "--allow-mode", "edit")
			if !lists() {
				text, _ := os.ReadFile(file)
				t.Errorf("%s does not list it:\n%s", agent, text)
			}
			call(program, "mcp", "install", agent, "--remove")
			after, err := os.ReadFile(file)
			if agent == "opencode" || agent == "copilot" { // an empty object is written as {}
				after = []byte(strings.Join(strings.Fields(string(after)), ""))
				before = []byte(strings.Join(strings.Fields(string(before)), ""))
			}
			if err != nil || agent != "claude" && string(after) != string(before) {
				t.Errorf("it left %s (%v), not %s", after, err, before)
			}
			if lists() {
				t.Error("it is there still")
			}
		})
	}
}
