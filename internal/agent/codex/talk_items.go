package codex

import (
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/proto/jsonrpc"
)

// counted is a usage as app-server tells it.
type counted struct {
	Input     int64 `json:"inputTokens"`
	Cached    int64 `json:"cachedInputTokens"`
	Output    int64 `json:"outputTokens"`
	Reasoning int64 `json:"reasoningOutputTokens"`
}

// notice is what a notification may have.
type notice struct {
	Thread  string          `json:"threadId"`
	Turn    turn            `json:"turn"`
	TurnID  string          `json:"turnId"`
	ItemID  string          `json:"itemId"`
	Delta   string          `json:"delta"`
	Message string          `json:"message"`
	Summary string          `json:"summary"`
	Item    json.RawMessage `json:"item"`
	Usage   struct {
		Total  counted `json:"total"`
		Window int64   `json:"modelContextWindow"`
	} `json:"tokenUsage"`
	Error     json.RawMessage `json:"error"` // of a turn, or a text
	Retries   bool            `json:"willRetry"`
	RequestID json.RawMessage `json:"requestId"`
	Name      string          `json:"name"`
	Status    json.RawMessage `json:"status"`
}

type turn struct {
	ID       string     `json:"id"`
	Status   string     `json:"status"`
	Error    *turnError `json:"error"`
	Duration int64      `json:"durationMs"`
}

type turnError struct {
	Message string          `json:"message"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

// thing is an item as app-server tells it.
type thing struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Content   json.RawMessage `json:"content"`
	Summary   []string        `json:"summary"`
	Status    string          `json:"status"`
	Command   string          `json:"command"`
	Dir       string          `json:"cwd"`
	Output    string          `json:"aggregatedOutput"`
	ExitCode  *int            `json:"exitCode"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Query     string          `json:"query"`
	Changes   []struct {
		Path string          `json:"path"`
		Kind json.RawMessage `json:"kind"`
		Diff string          `json:"diff"`
	} `json:"changes"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Threads []string `json:"receiverThreadIds"`

	raw json.RawMessage // all of it, or what else has its command
}

// plain is the item in the words of exec, for which the tables are made.
func (i thing) plain() item {
	names := map[string]string{
		"commandExecution": "command_execution", "fileChange": "file_change", "mcpToolCall": "mcp_tool_call",
		"webSearch": "web_search", "collabAgentToolCall": "collab_tool_call",
	}
	it := item{
		ID: i.ID, Type: names[i.Type], Status: i.Status, Command: i.Command, Output: i.Output, ExitCode: i.ExitCode,
		Server: i.Server, Tool: i.Tool, Arguments: i.Arguments, Query: i.Query, Result: i.Result, Error: i.Error,
		raw: i.raw,
	}
	return it
}

func (i thing) call() *event.Call {
	it := i.plain()
	call := callOf(it)
	if call == nil {
		return nil
	}
	if i.Type == "fileChange" && len(i.Changes) > 0 {
		call.Path, call.Input = i.Changes[0].Path, it.input("changes")
	}
	return call
}

func (t *talk) item(moment string, raw json.RawMessage) []event.Event {
	completed := moment == "item/completed"
	i := thing{raw: raw}
	if json.Unmarshal(raw, &i) != nil {
		return []event.Event{{Kind: event.Notice, Text: moment}}
	}
	switch i.Type {
	case "userMessage", "hookPrompt":
		return nil
	case "agentMessage":
		if !completed {
			return nil
		}
		t.last = i.Text
		return whole(event.Text, i.Text)
	case "reasoning":
		if !completed {
			return nil
		}
		var parts []string
		if json.Unmarshal(i.Content, &parts) != nil || len(parts) == 0 {
			parts = i.Summary
		}
		return whole(event.Thinking, strings.Join(parts, "\n"))
	case "contextCompaction":
		if !completed {
			return nil
		}
		return []event.Event{{Kind: event.Compacted, Compaction: &event.Compaction{Trigger: "auto"}}}
	}
	call := i.call()
	if call == nil {
		return []event.Event{{Kind: event.Notice, Text: i.Type}}
	}
	for _, thread := range i.Threads {
		t.threads[thread] = i.ID
	}
	var out []event.Event
	if t.items[i.ID] == nil {
		out = append(out, event.Event{Kind: event.ToolCall, Call: call})
	}
	t.items[i.ID] = call
	if !completed {
		return out
	}
	delete(t.items, i.ID)
	it := i.plain()
	out = append(out, event.Event{Kind: event.ToolResult, Result: resultOf(it, call.Name)})
	if reason, denied := denial(it.Status, it.Error != nil, it.errorText()); denied && !t.denied[i.ID] {
		denial := &event.Denial{CallID: i.ID, Tool: call.Name, Reason: reason}
		out = append(out, event.Event{Kind: event.Denied, Denial: denial})
	}
	delete(t.denied, i.ID)
	return out
}

// whole is a text, whose pieces may have been told before.
func whole(k event.Kind, text string) []event.Event {
	if text == "" {
		return nil
	}
	return []event.Event{{Kind: k, Text: text}}
}

// approvalAsked is what a request of Codex may have.
type approvalAsked struct {
	Thread    string          `json:"threadId"`
	Item      string          `json:"itemId"`
	Reason    string          `json:"reason"`
	Command   string          `json:"command"`
	Message   string          `json:"message"`
	Server    string          `json:"serverName"`
	Mode      string          `json:"mode"`
	URL       string          `json:"url"`
	Decisions []any           `json:"availableDecisions"`
	Wanted    json.RawMessage `json:"permissions"`
	Root      string          `json:"grantRoot"`
	Questions []struct {
		ID string `json:"id"`
		event.FormQuestion
	} `json:"questions"`
}

// requested is a request of Codex.
func (t *talk) requested(m jsonrpc.Message) []event.Event {
	var p approvalAsked
	if json.Unmarshal(m.Params, &p) != nil {
		t.reject(m, "it cannot be read")
		return nil
	}
	q := asking{id: slices.Clone(m.ID), method: m.Method}
	ask := &event.Ask{ID: "q" + string(m.ID), Options: []string{event.Allow, event.Deny}}
	switch m.Method {
	case "item/commandExecution/requestApproval":
		q.call = t.items[p.Item]
		if q.call == nil || p.Command != "" && q.call.Command != p.Command {
			q.call = thing{ID: p.Item, Type: "commandExecution", Command: p.Command, raw: m.Params}.call()
		}
		q.session = len(p.Decisions) == 0 || slices.Contains(p.Decisions, any("acceptForSession"))
		ask.Text = first(p.Reason, p.Command)
	case "item/fileChange/requestApproval":
		q.call = t.items[p.Item]
		if q.call == nil {
			q.call = &event.Call{ID: p.Item, Name: "file_change", Kind: event.Write}
		}
		q.session = true
		ask.Text = first(p.Reason, "Codex wants to change files "+p.Root)
	case "item/permissions/requestApproval":
		q.call = &event.Call{ID: p.Item, Name: "permissions", Kind: event.Other, Input: p.Wanted}
		q.session = true
		ask.Text = first(p.Reason, "Codex wants to be allowed more")
	case "mcpServer/elicitation/request":
		ask.Text = strings.TrimSpace(first(p.Message, p.Server) + " " + p.URL)
	case "item/tool/requestUserInput":
		return t.form(ask.ID, q, p)
	default:
		t.reject(m, "not supported")
		return []event.Event{{Kind: event.Notice, Text: m.Method}}
	}
	if q.session {
		ask.Options = []string{event.Allow, event.Always, event.Deny}
	}
	ask.Tool = q.call
	t.questions.Ask(ask.ID, q)
	return []event.Event{{Kind: event.Question, Session: t.thread, Ask: ask}}
}

func (t *talk) reject(m jsonrpc.Message, why string) {
	t.say(jsonrpc.Failure(m.ID, jsonrpc.Errorf(jsonrpc.MethodNotFound, "%s: %s", m.Method, why)))
}

func first(words ...string) string {
	for _, w := range words {
		if strings.TrimSpace(w) != "" {
			return w
		}
	}
	return ""
}

// form is a list of questions to a person. Each is one of ours.
func (t *talk) form(id string, q asking, p approvalAsked) []event.Event {
	if len(p.Questions) == 0 {
		t.respond(q.id, map[string]any{"answers": map[string]any{}})
		return nil
	}
	var form []event.FormQuestion
	for _, one := range p.Questions {
		q.keys, form = append(q.keys, one.ID), append(form, one.FormQuestion)
	}
	return t.questions.AskForm(id, t.thread, form, q)
}
