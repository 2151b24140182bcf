package codex

import (
	"bytes"
	"encoding/json"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

// archive returns the archive of the rollouts: sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl.
func archive(env []string) agent.Archive {
	return cli.Transcripts{
		Dir: codexHome(env), Pattern: sessionsDir + "/*/*/*/rollout-*.jsonl",
		Open: func(path string, p *agent.ArchivedConversation) func([]byte) (agent.ArchivedMessage, bool) {
			p.ID = idOf(path)
			return func(line []byte) (agent.ArchivedMessage, bool) { return said(line, p) }
		},
	}
}

// said returns the message in a line of a rollout. It reads only events, because the requests to the model, which are
// recorded too, contain much more than the messages.
func said(line []byte, p *agent.ArchivedConversation) (agent.ArchivedMessage, bool) {
	head := line[:min(len(line), 256)]
	if !bytes.Contains(head, []byte(`"event_msg"`)) && !bytes.Contains(head, []byte(`"session_meta"`)) {
		return agent.ArchivedMessage{}, false
	}
	var r struct {
		Timestamp string
		Type      string
		Payload   struct {
			Type    string
			Dir     string          `json:"cwd"`
			Source  json.RawMessage // an object for the thread of a sub-agent
			Message string          // in earlier versions
			Item    struct {
				Type    string
				Content json.RawMessage
			}
		}
	}
	if json.Unmarshal(line, &r) != nil {
		return agent.ArchivedMessage{}, false
	}
	if r.Type == "session_meta" {
		if p.Created, p.Dir = cli.Time(r.Timestamp), r.Payload.Dir; bytes.HasPrefix(r.Payload.Source, []byte("{")) {
			p.ID = ""
		}
		return agent.ArchivedMessage{}, false
	}
	switch r.Payload.Type + r.Payload.Item.Type {
	case "item_completedUserMessage":
		return agent.ArchivedMessage{User: true, Text: cli.TextOf(r.Payload.Item.Content, "text")}, true
	case "item_completedAgentMessage":
		return agent.ArchivedMessage{Text: cli.TextOf(r.Payload.Item.Content, "text", "Text")}, true
	case "user_message":
		return agent.ArchivedMessage{User: true, Text: r.Payload.Message}, true
	case "agent_message":
		return agent.ArchivedMessage{Text: r.Payload.Message}, true
	}
	return agent.ArchivedMessage{}, false
}
