package acp

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
	wire "omniagent/internal/wire/acp"
)

// TestPast: a session is listed, found, replayed and removed by the host of its own agent alone.
func TestPast(t *testing.T) {
	t.Parallel()
	p := ResumableSessions{Store: session.Open(filepath.Join(t.TempDir(), "sessions")), Agent: "claude"}
	journal, err := p.Store.Create(t.Context(), session.Begin{ID: "one", Agent: "claude", Cwd: "/project"})
	if err == nil {
		err = journal.Adopt(session.Adopted{}, []model.Message{
			{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: "first"}}},
			{Role: model.Assistant, Blocks: []model.Block{
				{Kind: model.Call, ID: "c", Name: "Bash", Input: []byte(`{"command":"echo out"}`)},
			}},
			{Role: model.User, Blocks: []model.Block{{Kind: model.Result, ID: "c", Name: "Bash", Text: "out"}}},
			{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Text, Text: "done"}}},
		})
		err = errors.Join(err, journal.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	codex := p
	codex.Agent = "codex"
	for dir, want := range map[string]int{"": 1, "/project": 1, "/elsewhere": 0} {
		mine, err := p.list(t.Context(), dir)
		theirs, failed := codex.list(t.Context(), dir)
		if err := errors.Join(err, failed); err != nil || len(mine) != want || len(theirs) != 0 {
			t.Error(dir, mine, theirs, err)
		}
	}
	err = codex.remove(t.Context(), "one")
	if !errors.Is(err, fault.ArgError) || !strings.Contains(err.Error(), "claude") {
		t.Error(err)
	}
	var told []string
	if err := p.replay(t.Context(), "one", func(u wire.Update) {
		word := string(u.Kind) + " " + u.Text
		for _, b := range u.Blocks {
			word += b.Text
		}
		if u.Tool != nil {
			word += u.Tool.Title + " " + u.Tool.Status
		}
		told = append(told, word)
	}); err != nil {
		t.Error(err)
	}
	if got := strings.Join(told, "|"); got != "user first|tool echo out pending|tool  completed|agent done" {
		t.Error(got)
	}
	if err := p.remove(t.Context(), "one"); err != nil {
		t.Error(err)
	}
	if err := p.find("one"); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
}
