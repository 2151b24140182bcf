package rehearsal

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/core/agent"
)

// everyAgent are those whose traps a hostile repository has.
func everyAgent() []agent.Driver {
	return []agent.Driver{claude.New(), codex.New(), copilot.New(), gemini.New(), opencode.New()}
}

// TestTraps: a hostile repository has what each agent reads, and its marks lead to one directory.
func TestTraps(t *testing.T) {
	t.Parallel()
	b := bench{
		work: t.TempDir(), marks: filepath.Join(t.TempDir(), `a "marks" directory`), agents: everyAgent(),
	}
	if err := trap(b); err != nil {
		t.Fatal(err)
	}
	marks := 0
	err := filepath.WalkDir(b.work, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		text := string(data)
		marks += strings.Count(text, `a \"marks\" directory`)
		if strings.Contains(text, agent.Marks) || filepath.Ext(path) == ".json" && !json.Valid(data) {
			t.Errorf("%s: %s", path, text)
		}
		return err
	})
	for _, d := range b.agents {
		if len(d.Describe().Traps()) == 0 {
			t.Errorf("%s has no traps", d.Name())
		}
	}
	if err != nil || marks < 10 {
		t.Errorf("%d marks, %v", marks, err)
	}
}
