package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

// archive returns the archive of the transcripts of all projects: projects/DIRECTORY/ID.jsonl. Transcripts of
// sub-agents do not match.
func archive(env []string) agent.Archive {
	return cli.Transcripts{
		Dir: configHome(env), Pattern: "projects/*/*.jsonl",
		Open: func(path string, p *agent.ArchivedConversation) func([]byte) (agent.ArchivedMessage, bool) {
			if id := strings.TrimSuffix(filepath.Base(path), ".jsonl"); cli.IsUUID(id) {
				p.ID = id
			}
			return func(line []byte) (agent.ArchivedMessage, bool) { return said(line, p) }
		},
	}
}

// said returns the message in a line of a transcript.
func said(line []byte, p *agent.ArchivedConversation) (agent.ArchivedMessage, bool) {
	if !bytes.Contains(line, []byte(`"type":"user"`)) && !bytes.Contains(line, []byte(`"type":"assistant"`)) {
		return agent.ArchivedMessage{}, false
	}
	var r struct {
		Type      string
		Side      bool   `json:"isSidechain"`
		Meta      bool   `json:"isMeta"`
		Dir       string `json:"cwd"`
		Timestamp string
		Message   struct{ Content json.RawMessage }
	}
	if json.Unmarshal(line, &r) != nil || r.Side || r.Meta || r.Type != "user" && r.Type != "assistant" {
		return agent.ArchivedMessage{}, false
	}
	p.Dir = cmp.Or(p.Dir, r.Dir)
	if p.Created.IsZero() {
		p.Created = cli.Time(r.Timestamp)
	}
	return agent.ArchivedMessage{User: r.Type == "user", Text: cli.TextOf(r.Message.Content, "text")}, true
}
