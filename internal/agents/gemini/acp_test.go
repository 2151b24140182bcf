package gemini

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/wire/jsonrpc"
)

// TestRecent: a transcript of this minute gets a copy that seems to be older; others need none.
func TestRecent(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	chats := filepath.Join(home, ".gemini", "tmp", "work", "chats")
	if err := os.MkdirAll(chats, 0o700); err != nil {
		t.Fatal(err)
	}
	const id = "b92c9497-7604-487a-b1a9-7cf6ed86e4e4"
	for _, name := range []string{
		"session-2026-11-22T19-00-b92c9497.jsonl", "session-2026-11-22T19-00-a79c64c4.jsonl",
		"session-2026-11-22T18-58-b92c9497.jsonl",
	} {
		if err := os.WriteFile(filepath.Join(chats, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(2026, 11, 22, 19, 0, 59, 0, time.UTC)
	s := agent.Spec{Env: []string{"HOME=" + home, "USERPROFILE=" + home}, Resume: id}
	copies := recentCopies(s, at)
	if len(copies) != 1 || filepath.Base(copies[0].Path) != "session-2026-11-22T18-59-b92c9497.jsonl" || !copies[0].Keep ||
		string(copies[0].Data) != "session-2026-11-22T19-00-b92c9497.jsonl" {
		t.Errorf("%+v", copies)
	}
	for _, other := range []agent.Spec{{Env: s.Env}, {Env: s.Env, Resume: "*"}, {Env: s.Env, Resume: "********"}} {
		if copies := recentCopies(other, at); copies != nil {
			t.Errorf("%q: %+v", other.Resume, copies)
		}
	}
	if copies := recentCopies(s, at.Add(time.Minute)); copies != nil {
		t.Errorf("a minute later: %+v", copies)
	}
	if err := os.Truncate(filepath.Join(chats, "session-2026-11-22T19-00-b92c9497.jsonl"), longestChat+1); err != nil {
		t.Fatal(err)
	}
	if copies := recentCopies(s, at); copies != nil {
		t.Error("a conversation of any length is held in memory")
	}
}

// TestACPFault: the code of an error is the status of the model's API.
func TestACPFault(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{401: "AUTH_REQUIRED", 429: "RATE_LIMITED", 500: "API_ERROR", -32603: ""} {
		f := acpFault(&jsonrpc.Error{Code: code, Message: `{"error":{"message":"no"}}`})
		got := ""
		if f != nil {
			got = string(f.Code)
		}
		if got != want {
			t.Errorf("%d: %s", code, got)
		}
	}
}

// TestLongSettings: of a settings file only the beginning is read.
func TestLongSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.json")
	if err := os.WriteFile(path, make([]byte, maxHead+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := len(head(path)); n != maxHead {
		t.Errorf("%d bytes", n)
	}
}
