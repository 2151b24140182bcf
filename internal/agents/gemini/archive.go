package gemini

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/sys/workspace"
)

// archive returns the archive of the chats: tmp/PROJECT/chats/session-TIME-ID.jsonl. A resumed chat continues in its
// first file, and leaves another file with only a first line.
func archive(env []string) agent.Archive {
	return cli.Transcripts{
		Dir: configPath(env), Pattern: "tmp/*/chats/session-*.jsonl",
		Open: func(path string, p *agent.ArchivedConversation) func([]byte) (agent.ArchivedMessage, bool) {
			root := filepath.Join(filepath.Dir(filepath.Dir(path)), ".project_root")
			if data, err := workspace.ReadFile(root, 4<<10); err == nil {
				p.Dir = strings.TrimSpace(string(data))
			}
			last := "" // a message is written again with each of its calls
			return func(line []byte) (agent.ArchivedMessage, bool) { return said(line, p, &last) }
		},
	}
}

// said returns the message in a line of a chat.
func said(line []byte, p *agent.ArchivedConversation, last *string) (agent.ArchivedMessage, bool) {
	var r struct {
		SessionID string
		Kind      string
		StartTime string
		ID        string
		Type      string
		Content   json.RawMessage
	}
	if json.Unmarshal(line, &r) != nil {
		return agent.ArchivedMessage{}, false
	}
	if r.SessionID != "" && r.StartTime != "" {
		if p.ID, p.Created = r.SessionID, cli.Time(r.StartTime); r.Kind != "" && r.Kind != "main" {
			p.ID = ""
		}
		return agent.ArchivedMessage{}, false
	}
	if r.Type != "user" && r.Type != "gemini" || r.ID == *last {
		return agent.ArchivedMessage{}, false
	}
	*last = r.ID
	return agent.ArchivedMessage{User: r.Type == "user", Text: cli.TextOf(r.Content)}, true
}
