package copilot

import (
	"bytes"
	"encoding/json"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

// archive returns the archive of the logs of sessions: session-state/ID/events.jsonl.
func archive(env []string) agent.Archive {
	return cli.Transcripts{
		Dir: configHome(agent.Launch{Env: env}), Pattern: "session-state/*/events.jsonl",
		Open: func(path string, p *agent.ArchivedConversation) func([]byte) (agent.ArchivedMessage, bool) {
			p.ID = filepath.Base(filepath.Dir(path))
			return func(line []byte) (agent.ArchivedMessage, bool) { return said(line, p) }
		},
	}
}

// said returns the message in a line of a log.
func said(line []byte, p *agent.ArchivedConversation) (agent.ArchivedMessage, bool) {
	head := line[:min(len(line), 64)]
	if !bytes.Contains(head, []byte(`"session.start"`)) && !bytes.Contains(head, []byte(`.message"`)) {
		return agent.ArchivedMessage{}, false
	}
	var r struct {
		Type      string
		Timestamp string
		Data      struct {
			Content string
			Context struct {
				Dir string `json:"cwd"`
			}
		}
	}
	if json.Unmarshal(line, &r) != nil {
		return agent.ArchivedMessage{}, false
	}
	switch r.Type {
	case "session.start":
		p.Dir, p.Created = r.Data.Context.Dir, cli.Time(r.Timestamp)
	case "user.message":
		return agent.ArchivedMessage{User: true, Text: r.Data.Content}, true
	case "assistant.message":
		return agent.ArchivedMessage{Text: r.Data.Content}, true
	}
	return agent.ArchivedMessage{}, false
}
