package agent_test

import (
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
)

func TestFind(t *testing.T) {
	t.Parallel()
	all := []agent.Driver{claude.New(), codex.New(), copilot.New(), gemini.New(), opencode.New()}
	for _, want := range all {
		for _, name := range append(want.Describe().Aliases, want.Name()) {
			for _, word := range []string{name, strings.ToUpper(name)} {
				if got, ok := agent.Find(all, word); !ok || got.Name() != want.Name() {
					t.Errorf("%s selects %v", word, got)
				}
			}
		}
	}
	if got, ok := agent.Find(all, "cla"); ok {
		t.Errorf("cla selects %s", got.Name())
	}
}
