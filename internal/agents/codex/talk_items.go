package codex

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/wire/jsonrpc"
)

// counted is a usage in app-server's spelling.
type counted struct {
	Input     int64 `json:"inputTokens"`
	Cached    int64 `json:"cachedInputTokens"`
	Output    int64 `json:"outputTokens"`
	Reasoning int64 `json:"reasoningOutputTokens"`
}

// notice has the fields of all notifications.
type notice struct {
	Thread  string          `json:"threadId"`
	Turn    turn            `json:"turn"`
	TurnID  string          `json:"turnId"`
	Delta   string          `json:"delta"`
	Message string          `json:"message"`
	Summary string          `json:"summary"`
	Item    json.RawMessage `json:"item"`
	Usage   struct {
		Total  counted `json:"total"`
		Last   counted `json:"last"` // of the last request
		Window int64   `json:"modelContextWindow"`
	} `json:"tokenUsage"`
	Error     json.RawMessage `json:"error"` // a turnError, or a text
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
	Details string          `json:"additionalDetails"` // the reason, if the message has only the attempt
}

func (t *talk) item(moment, thread string, raw json.RawMessage) []event.Event {
	it, ok := readItem(raw)
	if !ok {
		return []event.Event{{Kind: event.Notice, Text: moment}}
	}
	if delete(t.running, it.ID); it.Process != "" && moment == "item/started" {
		t.running[it.ID] = map[string]any{"threadId": thread, "processId": it.Process}
	}
	for _, other := range it.Threads {
		t.threads[other] = it.ID
	}
	return t.items.read(it, moment == "item/completed")
}

// approvalRequest has the fields of all requests by Codex.
type approvalRequest struct {
	Item      string          `json:"itemId"`
	Reason    string          `json:"reason"`
	Command   string          `json:"command"`
	Message   string          `json:"message"`
	Server    string          `json:"serverName"`
	URL       string          `json:"url"`
	Decisions []any           `json:"availableDecisions"`
	Wanted    json.RawMessage `json:"permissions"`
	Root      string          `json:"grantRoot"`
	Questions []struct {
		ID string `json:"id"`
		event.FormQuestion
	} `json:"questions"`
}

// requested handles a request by Codex.
func (t *talk) requested(m jsonrpc.Message) []event.Event {
	var p approvalRequest
	if json.Unmarshal(m.Params, &p) != nil {
		t.reject(m, "invalid parameters")
		return nil
	}
	q := question{id: slices.Clone(m.ID), method: m.Method}
	ask := &event.Ask{ID: "q" + string(m.ID), Options: []string{event.Allow, event.Deny}}
	switch m.Method {
	case "item/commandExecution/requestApproval":
		q.call = t.items.open[p.Item]
		if q.call == nil || p.Command != "" && q.call.Command != p.Command {
			q.call = item{ID: p.Item, Type: commandItem, Command: p.Command, raw: m.Params}.call()
		}
		q.session = len(p.Decisions) == 0 || slices.Contains(p.Decisions, any("acceptForSession"))
		ask.Text = cmp.Or(p.Reason, p.Command)
	case "item/fileChange/requestApproval":
		q.call = t.items.open[p.Item]
		if q.call == nil {
			q.call = &event.Call{ID: p.Item, Name: "file_change", Kind: event.Write}
		}
		q.session = true
		ask.Text = cmp.Or(p.Reason, "Codex wants to change files "+p.Root)
	case "item/permissions/requestApproval":
		q.call = &event.Call{ID: p.Item, Name: "permissions", Kind: event.Other, Input: p.Wanted}
		q.session = true
		ask.Text = cmp.Or(p.Reason, "Codex wants to be allowed more")
	case "mcpServer/elicitation/request":
		ask.Text = strings.TrimSpace(cmp.Or(p.Message, p.Server) + " " + p.URL)
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
	t.Questions.Ask(ask.ID, q)
	return []event.Event{{Kind: event.Question, Session: t.thread, Ask: ask}}
}

func (t *talk) reject(m jsonrpc.Message, why string) {
	t.AddLine(jsonrpc.Failure(m.ID, jsonrpc.Errorf(jsonrpc.MethodNotFound, "%s: %s", m.Method, why)))
}

// form asks the questions of a form.
func (t *talk) form(id string, q question, p approvalRequest) []event.Event {
	if len(p.Questions) == 0 {
		t.respond(q.id, map[string]any{"answers": map[string]any{}})
		return nil
	}
	var form []event.FormQuestion
	for _, one := range p.Questions {
		q.keys, form = append(q.keys, one.ID), append(form, one.FormQuestion)
	}
	return t.Questions.AskForm(id, t.thread, form, q)
}
