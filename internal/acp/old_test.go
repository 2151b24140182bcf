package acp

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
	"omniagent/internal/session"
)

// ledgerID is the session of the ledger in testdata, which version 0.1 wrote with Claude Code on a scripted model.
const ledgerID = "87316fbe-ad21-4f91-8d57-6f875ec31c6e"

// past is a store and a directory of ledgers with one in it, whose last line is torn.
func past(t *testing.T) (p Past, content []byte) {
	t.Helper()
	p = Past{Store: session.Open(filepath.Join(t.TempDir(), "sessions")), Agent: "claude", Old: t.TempDir()}
	content, err := os.ReadFile(filepath.Join("testdata", ledgerID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	content = append(content, `{"update":{"kind":"agent","mess`...)
	if err := os.WriteFile(p.ledgerFile(ledgerID), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return p, content
}

// replayed is what a replay tells, in short.
func replayed(t *testing.T, p Past, id string) string {
	t.Helper()
	var told []string
	err := p.replay(t.Context(), id, func(u wire.Update) {
		word := string(u.Kind) + " " + u.Text
		for _, b := range u.Blocks {
			word += b.Text
		}
		if u.Tool != nil {
			word += u.Tool.Title + u.Tool.Status
			if term := u.Tool.Terminal; term != nil && term.Output != nil {
				word += " " + *term.Output
			}
		}
		told = append(told, word)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(told, "|")
}

// TestLedger: a session of version 0.1 is listed, and becomes a journal with all that was said when it is needed; the
// file stays as it is.
func TestLedger(t *testing.T) {
	t.Parallel()
	p, content := past(t)
	list := func(p Past, dir string) []wire.Session {
		t.Helper()
		all, err := p.list(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got := list(p, ""); len(got) != 1 || got[0].Title != "first message with a second line" ||
		got[0].Dir != "/home/ann/project" || got[0].Updated == "" {
		t.Error(got)
	}
	codex := p
	codex.Agent = "codex"
	if got := append(list(p, "/elsewhere"), list(codex, "")...); len(got) != 0 {
		t.Error(got)
	}
	if err := codex.find(t.Context(), ledgerID); !errors.Is(err, fault.ArgError) ||
		!strings.Contains(err.Error(), "claude") {
		t.Error(err)
	}
	if p.Store.Has(ledgerID) {
		t.Error("a list and another agent's request made a journal")
	}
	for range 2 {
		if err := p.find(t.Context(), ledgerID); err != nil {
			t.Fatal(err)
		}
	}
	const turn = `|tool TodoWritepending|tool failed|tool echo out; exit 3pending|tool failed Exit code 3` + "\nout" +
		`|tool Write w.txtpending|tool completed|agent `
	want := "user first message\nwith a second line" + turn + "You said first message\nwith a second line|user second" +
		turn + "You said second"
	if got := strings.ReplaceAll(replayed(t, p, ledgerID), "/home/ann/project/", ""); got != want {
		t.Errorf("%s\ninstead of\n%s", got, want)
	}
	v, err := p.Store.Show(ledgerID)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if s := v.State; s.Session != ledgerID || s.Begin.Agent != "claude" || s.Begin.Cwd != "/home/ann/project" ||
		s.Messages != 16 {
		t.Errorf("%+v", s)
	}
	if now, _ := os.ReadFile(p.ledgerFile(ledgerID)); !bytes.Equal(now, content) {
		t.Error("the old file was changed")
	}
	if got := list(p, ""); len(got) != 1 || got[0].Title != "first message with a second line" {
		t.Error(got)
	}
	if err := codex.find(t.Context(), ledgerID); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	if err := p.remove(t.Context(), ledgerID); err != nil {
		t.Error(err)
	}
	if got := list(p, ""); len(got) != 0 {
		t.Error(got)
	}
	if err := p.find(t.Context(), ledgerID); !errors.Is(err, fault.NotFoundCode) {
		t.Error(err)
	}
}

// TestHalfAdopted: a process that was killed while it made the journal left one without messages. It is made again.
func TestHalfAdopted(t *testing.T) {
	t.Parallel()
	p, _ := past(t)
	half, err := p.Store.Create(t.Context(), session.Begin{ID: ledgerID, Agent: "claude", Cwd: "/home/ann/project"})
	if err == nil {
		err = half.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.list(t.Context(), ""); err != nil || len(got) != 1 {
		t.Error(got, err)
	}
	if err := p.find(t.Context(), ledgerID); err != nil {
		t.Fatal(err)
	}
	if got := replayed(t, p, ledgerID); !strings.HasPrefix(got, "user first message") ||
		strings.Count(got, "user ") != 2 {
		t.Error(got)
	}
}
