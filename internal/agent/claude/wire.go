package claude

import (
	"cmp"
	"encoding/json"
	"strings"

	"omniagent/internal/event"
)

// message is what the API calls one; the CLI prints and records it alike.
type message struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Content    json.RawMessage `json:"content"` // a text or a list of blocks
	StopReason string          `json:"stop_reason"`
}

// block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"` // of a result: a text or a list of blocks
	IsError   bool            `json:"is_error"`
}

// blocks reads the content of a message in either form.
func blocks(raw json.RawMessage) []block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return nil
	}
	list := make([]block, 0, len(parts))
	for _, part := range parts {
		var b block
		if json.Unmarshal(part, &b) == nil { // one that has an odd form does not hide the others
			list = append(list, b)
		}
	}
	return list
}

// plain is the text of a content, its blocks joined by line ends.
func plain(raw json.RawMessage) string {
	var parts []string
	for _, b := range blocks(raw) {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// call is a tool called by the model, in our words.
func call(b block) *event.Call {
	c := &event.Call{ID: b.ID, Name: b.Name, Kind: kind(b.Name), Input: b.Input}
	var in struct {
		Command  string `json:"command"`
		Path     string `json:"file_path"`
		Notebook string `json:"notebook_path"`
	}
	// An odd type of one member leaves the others readable.
	_ = json.Unmarshal(b.Input, &in)
	switch c.Kind {
	case event.Shell:
		c.Command = in.Command
	case event.Read, event.Write:
		c.Path = cmp.Or(in.Path, in.Notebook)
	}
	return c
}

func kind(tool string) event.ToolKind {
	switch tool {
	case "Bash", "PowerShell", "Monitor":
		return event.Shell
	case "Read", "NotebookRead":
		return event.Read
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return event.Write
	case "WebFetch", "WebSearch":
		return event.Web
	case "Grep", "Glob", "LS":
		return event.Search
	case "Agent", "Task":
		return event.Agent
	}
	if strings.HasPrefix(tool, "mcp__") {
		return event.MCP
	}
	return event.Other
}

// decision is what the CLI notes of a tool that was not run. An interruption has a kind, too, but nobody decided it.
type decision struct {
	Decision string `json:"decision"`
	Source   string `json:"source"`
	Type     string `json:"reasonType"`
	Code     string `json:"reasonCode"`
}

// refused says whether policy forbade the tool.
func refused(kind string, d decision) bool {
	switch kind {
	case "user-rejected", "permission-rule":
		return d.Decision == "reject"
	case "automode-blocked", "automode-unavailable", "automode-parsing-error":
		return true
	}
	return false
}
