package start

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// listing is what session list and session search answer.
type listing struct {
	Data struct {
		Sessions []struct {
			Agent, Title, Cwd, Keeper, Resume, ID, Snippet, Role string
			Messages                                             *int
			Found, Record                                        int
		}
	}
	Warnings []string
}

func (p place) sessions(t *testing.T, args ...string) listing {
	t.Helper()
	out, log, exit := p.call(t, nil, append([]string{"session"}, args...)...)
	var l listing
	if err := json.Unmarshal([]byte(out), &l); err != nil || exit != 0 {
		t.Fatalf("%v: exit %d, %v\n%s\n%s", args, exit, err, out, log)
	}
	return l
}

// TestConversationsOfAgents lists and searches what the agents themselves wrote, on a scripted model, and what is
// damaged.
func TestConversationsOfAgents(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if err := os.CopyFS(p.home, os.DirFS(filepath.Join("testdata", "archives"))); err != nil {
		t.Fatal(err)
	}
	if l := p.sessions(t, "list"); len(l.Data.Sessions) != 0 {
		t.Errorf("without --all: %+v", l)
	}
	ids := map[string]string{
		"claude":   "e0888b34-f00e-4d6a-bb80-3a287c2e2097",
		"codex":    "01a2051e-f802-7d60-a52a-6e07966cca34",
		"gemini":   "7e155f7b-5ece-490b-93e7-40758d6d5781",
		"copilot":  "4d4d20c5-9e4e-4be6-a7b3-14c2660d4e25",
		"opencode": "ses_dfad9befcffe8Z14v6IZhCJyz7",
	}
	check := func(l listing) {
		t.Helper()
		if len(l.Data.Sessions) != len(ids) {
			t.Errorf("there are %d: %+v", len(l.Data.Sessions), l)
		}
		for _, s := range l.Data.Sessions {
			if s.ID != ids[s.Agent] || s.Cwd != "/home/ann/app" || s.Keeper != s.Agent ||
				s.Title != "First prompt of "+s.Agent+" number 1, please look for the haystack" ||
				s.Messages == nil || *s.Messages < 4 || *s.Messages > 10 ||
				s.Resume != fmt.Sprintf("omniagent start --agent %s --resume %s --cwd /home/ann/app", s.Agent, s.ID) {
				t.Errorf("got %+v, %d messages", s, s.Messages)
			}
		}
	}
	check(p.sessions(t, "list", "--all"))
	if l := p.sessions(t, "list", "--all", "--agent", "codex"); len(l.Data.Sessions) != 1 ||
		l.Data.Sessions[0].Agent != "codex" {
		t.Errorf("of one agent: %+v", l)
	}
	if l := p.sessions(t, "list", "--all", "--here"); len(l.Data.Sessions) != 0 {
		t.Errorf("of another directory: %+v", l)
	}
	l := p.sessions(t, "search", "--all", "NEEDLE is in the haystack: second")
	check(l)
	for _, s := range l.Data.Sessions {
		if s.Found != 1 || s.Role != "assistant" || !strings.Contains(s.Snippet, "needle is in") || s.Record < 4 {
			t.Errorf("got %+v", s)
		}
	}
	if l := p.sessions(t, "search", "--all", "environment_context"); len(l.Data.Sessions) != 0 {
		t.Errorf("what nobody said is found: %+v", l)
	}

	// What is damaged is ignored, and does not hide the rest.
	for name, content := range map[string]string{
		".claude/projects/-x/00000000-0000-4000-8000-000000000000.jsonl": "{\"type\":\"user\",\"message\":{\"content\":\n\x00\n",
		".claude/projects/-x/11111111-0000-4000-8000-000000000000.jsonl": "",
		".claude/projects/-x/agent-1.jsonl":                              `{"type":"user","message":{"content":"sub"}}`,
		".codex/sessions/2026/11/22/rollout-x.jsonl":                     `{"type":"event_msg","payload":7}`,
		".gemini/tmp/x/chats/session-y.jsonl":                            `[1,2`,
		".copilot/session-state/z/events.jsonl":                          strings.Repeat("x", 5<<20),
	} {
		p.atHome(t, name, content)
	}
	torn := filepath.Join(p.home, ".claude/projects/-home-ann-app", ids["claude"]+".jsonl")
	data, err := os.ReadFile(torn)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(torn, append(data, `{"type":"user","mess`...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(torn,
		filepath.Join(filepath.Dir(torn), "22222222-0000-4000-8000-000000000000.jsonl")); err != nil {
		t.Log(err)
	}
	check(p.sessions(t, "list", "--all"))
	p.atHome(t, ".local/share/opencode/opencode.db", "no database")
	if l := p.sessions(t, "list", "--all"); len(l.Data.Sessions) != len(ids)-1 || len(l.Warnings) != 1 {
		t.Errorf("without a database: %+v", l)
	}
}
