package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
)

// TestLongTranscripts: a title is short, and a line that contains a file is skipped without being held.
func TestLongTranscripts(t *testing.T) {
	dir := t.TempDir()
	title := strings.Repeat("word ", 40)
	data := title + "\n" + strings.Repeat("x", longestSaid+1) + "\nshort\n"
	if err := os.WriteFile(filepath.Join(dir, "one.jsonl"), []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := Transcripts{Dir: dir, Pattern: "*.jsonl"}
	archive.Open = func(_ string, p *agent.ArchivedConversation) func([]byte) (agent.ArchivedMessage, bool) {
		p.ID = "one"
		return func(line []byte) (agent.ArchivedMessage, bool) {
			return agent.ArchivedMessage{User: true, Text: string(line)}, true
		}
	}
	all, err := archive.List(t.Context(), 9)
	if err != nil || len(all) != 1 || all[0].Title != title[:longestTitle]+"…" {
		t.Fatalf("%+v, %v", all, err)
	}
	var said []string
	err = archive.Read(t.Context(), all[0], func(s agent.ArchivedMessage) bool {
		said = append(said, s.Text)
		return true
	})
	if err != nil || len(said) != 2 || said[1] != "short" {
		t.Errorf("%d messages, %v", len(said), err)
	}
}
