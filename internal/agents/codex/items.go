package codex

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// item is one item of a turn in the output of exec, in messages of app-server, or in the transcript. They spell types
// differently: file_change, fileChange and FileChange.
type item struct {
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Message     string          `json:"message"`
	Content     json.RawMessage `json:"content"`
	Summary     []string        `json:"summary"`
	Status      string          `json:"status"`
	Command     string          `json:"command"`
	Output      string          `json:"aggregatedOutput"`
	SnakeOutput string          `json:"aggregated_output"`
	ExitCode    *int            `json:"exitCode"`
	SnakeExit   *int            `json:"exit_code"`
	Server      string          `json:"server"`
	Tool        string          `json:"tool"`
	Arguments   json.RawMessage `json:"arguments"`
	Query       string          `json:"query"`
	Result      json.RawMessage `json:"result"`
	Error       *failure        `json:"error"`
	Threads     []string        `json:"receiverThreadIds"` // of sub-agents
	Process     string          `json:"processId"`         // Codex's own name for a running command
	Changes     []struct {
		Path string `json:"path"`
	} `json:"changes"`

	raw json.RawMessage // the item, or another object with its command
}

// Kinds of items that are used more than once.
const (
	commandItem = "commandexecution"
	changeItem  = "filechange"
	mcpItem     = "mcptoolcall"
	messageItem = "agentmessage"
)

// readItem reads an item. It tolerates members of other types, which the transcript has and we do not need.
func readItem(raw json.RawMessage) (it item, ok bool) {
	ok = text.Lenient(raw, &it) && it.Type != ""
	it.Output, it.ExitCode = cmp.Or(it.Output, it.SnakeOutput), cmp.Or(it.ExitCode, it.SnakeExit)
	it.raw = raw
	return it, ok
}

// kind returns the type, spelled the same for all sources.
func (it item) kind() string { return strings.ToLower(strings.ReplaceAll(it.Type, "_", "")) }

// input returns an object with one member of the item, byte for byte.
func (it item) input(member string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(it.raw, &all) != nil || len(all[member]) == 0 {
		return nil
	}
	return slices.Concat([]byte(`{"`+member+`":`), all[member], []byte("}"))
}

// call returns the call of an item, or nil if the item is not a tool call.
func (it item) call() *event.Call {
	call := &event.Call{ID: it.ID}
	switch it.kind() {
	case commandItem:
		call.Name, call.Kind = "command_execution", event.Shell
		call.Command, call.Input = it.Command, it.input("command")
	case changeItem:
		call.Name, call.Kind = "file_change", event.Write
		if len(it.Changes) > 0 {
			call.Path, call.Input = it.Changes[0].Path, it.input("changes")
		}
	case mcpItem:
		call.Name, call.Kind, call.Input = it.Server+"/"+it.Tool, event.MCP, it.Arguments
	case "websearch":
		call.Name, call.Kind = "web_search", event.Web
		if it.Query != "" {
			call.Input = it.input("query")
		}
	case "collabtoolcall", "collabagenttoolcall":
		call.Name, call.Kind = cmp.Or(it.Tool, "collab_tool_call"), event.Agent
	default:
		return nil
	}
	return call
}

func (it item) errorText() string {
	if it.Error == nil {
		return ""
	}
	return it.Error.Message
}

func (it item) result(name string) *event.Result {
	r := &event.Result{ID: it.ID, Name: name, ExitCode: it.ExitCode, Output: cmp.Or(it.Output, it.errorText())}
	r.Failed = it.Status == "failed" || it.Status == declined || it.Error != nil
	if r.Output == "" && len(it.Result) > 0 && string(it.Result) != "null" {
		r.Output = contentText(it.Result)
	}
	return r
}

// contentText returns the text of a tool's result, or the raw result if its form is unknown.
func contentText(result json.RawMessage) string {
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(result, &r) != nil || len(r.Content) == 0 {
		return string(result)
	}
	texts := make([]string, 0, len(r.Content))
	for _, c := range r.Content {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}

// declined is the status of a tool that did not run because a person, or a model in their place, refused it.
const declined = "declined"

// denial returns why policy refused an item. For an MCP tool, the only sign is how its error begins.
func (it item) denial() (reason string, denied bool) {
	switch {
	case it.Status == declined:
		return declined, true
	case strings.HasPrefix(it.errorText(), "MCP tool call requires approval"):
		return it.errorText(), true
	}
	return "", false
}

// items tracks the items of a conversation.
//
//	started ──► ToolCall, once ──► completed ──► ToolResult, and Denied unless that was reported
//	text, reasoning ─────────────► completed ──► Text, Thinking
type items struct {
	open   map[string]*event.Call // reported calls without a result
	denied map[string]bool        // calls whose denial was reported
	last   string                 // the last message, which becomes the answer
}

func newItems() items { return items{open: map[string]*event.Call{}, denied: map[string]bool{}} }

// read returns the events of an item that has begun, changed or completed.
func (s *items) read(it item, completed bool) []event.Event {
	switch kind := it.kind(); kind {
	case messageItem, "reasoning", "contextcompaction", "usermessage", "hookprompt":
		if !completed {
			return nil
		}
		return s.words(kind, it)
	case "error": // a warning, such as about an unknown model
		return []event.Event{{Kind: event.Notice, Text: it.Message}}
	}
	call := it.call()
	if call == nil {
		return []event.Event{{Kind: event.Notice, Text: it.Type}}
	}
	var out []event.Event
	if s.open[it.ID] == nil {
		out = append(out, event.Event{Kind: event.ToolCall, Call: call})
	}
	s.open[it.ID] = call
	if !completed {
		return out
	}
	delete(s.open, it.ID)
	out = append(out, event.Event{Kind: event.ToolResult, Result: it.result(call.Name)})
	if reason, denied := it.denial(); denied && !s.denied[it.ID] {
		s.denied[it.ID] = true
		denial := &event.Denial{CallID: it.ID, Tool: call.Name, Reason: reason}
		out = append(out, event.Event{Kind: event.Denied, Denial: denial})
	}
	return out
}

// words returns the events of a completed item that is not a call.
func (s *items) words(kind string, it item) []event.Event {
	switch kind {
	case messageItem:
		s.last = it.Text
		return textEvent(event.Text, it.Text)
	case "reasoning":
		var parts []string
		if json.Unmarshal(it.Content, &parts) != nil || len(parts) == 0 {
			parts = it.Summary
		}
		return textEvent(event.Thinking, cmp.Or(it.Text, strings.Join(parts, "\n")))
	case "contextcompaction":
		return []event.Event{{Kind: event.Compacted, Compaction: &event.Compaction{Trigger: "auto"}}}
	}
	return nil // the user's message, and text of hooks
}

func textEvent(kind event.Kind, text string) []event.Event {
	if text == "" {
		return nil
	}
	return []event.Event{{Kind: kind, Text: text}}
}
