package codex

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
)

// decoder reads the lines of exec --json.
type decoder struct {
	begun map[string]bool // items whose call was told
	last  string          // the last message, which is the answer
}

func newDecoder() agent.Decoder {
	d := &decoder{begun: map[string]bool{}}
	return &cli.JSONLines{Parse: d.line}
}

// line is one line of the output, as far as it is used.
type line struct {
	Type    string          `json:"type"`
	Thread  string          `json:"thread_id"`
	Message string          `json:"message"`
	Item    json.RawMessage `json:"item"`
	Usage   *usage          `json:"usage"`
	Error   *struct{ Message string }
}

// usage is the form in which both the output and the transcript count. Cached tokens are part of the input.
type usage struct {
	Input     int64 `json:"input_tokens"`
	Cached    int64 `json:"cached_input_tokens"`
	Output    int64 `json:"output_tokens"`
	Reasoning int64 `json:"reasoning_output_tokens"`
}

func (u usage) minus(before usage) *usage {
	return &usage{
		u.Input - before.Input, u.Cached - before.Cached, u.Output - before.Output,
		u.Reasoning - before.Reasoning,
	}
}

func (u *usage) event() *event.Usage {
	if u == nil {
		return nil
	}
	return &event.Usage{Input: u.Input, Output: u.Output, Cached: u.Cached, Reasoning: u.Reasoning}
}

// item is one thing of a turn.
type item struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Message   string          `json:"message"`
	Status    string          `json:"status"`
	Command   string          `json:"command"`
	Output    string          `json:"aggregated_output"`
	ExitCode  *int            `json:"exit_code"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Query     string          `json:"query"`
	Changes   []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`

	raw json.RawMessage // all of it, or what else has its command
}

// input is an object with one member of the item, byte for byte.
func (it item) input(member string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(it.raw, &all) != nil || len(all[member]) == 0 {
		return nil
	}
	return slices.Concat([]byte(`{"`+member+`":`), all[member], []byte("}"))
}

func (d *decoder) line(data []byte) []event.Event {
	var l line
	if json.Unmarshal(data, &l) != nil || l.Type == "" {
		return cli.Unreadable(data)
	}
	switch l.Type {
	case "thread.started":
		return []event.Event{{Kind: event.Started, Session: l.Thread}}
	case "turn.started":
		d.last = ""
		return []event.Event{{Kind: event.TurnBegan}}
	case "turn.completed":
		return []event.Event{{Kind: event.Ended, End: &event.End{OK: true, Text: d.last, Usage: l.Usage.event()}}}
	case "turn.failed":
		message := ""
		if l.Error != nil {
			message = l.Error.Message
		}
		return []event.Event{
			{Kind: event.Failed, Fault: faultOf(message, nil), Terminal: true},
			{Kind: event.Ended, End: &event.End{Text: d.last, Reason: message, Usage: l.Usage.event()}},
		}
	case "error":
		if again := reconnecting(l.Message); again != nil {
			return []event.Event{{Kind: event.Retry, Retry: again}}
		}
		// What ends the turn comes again as turn.failed.
		return []event.Event{{Kind: event.Failed, Fault: faultOf(l.Message, nil)}}
	case "item.started", "item.updated", "item.completed":
		var it item
		if json.Unmarshal(l.Item, &it) != nil {
			return cli.Unreadable(data)
		}
		it.raw = l.Item
		return d.item(l.Type, it)
	}
	return []event.Event{{Kind: event.Notice, Text: l.Type}}
}

// reconnecting reads "Reconnecting... 1/5 (why)", the only form in which a retry is told.
func reconnecting(message string) *event.Again {
	m := regexp.MustCompile(`^Reconnecting\.\.\. (\d+)/(\d+)(?: \((.*)\))?`).FindStringSubmatch(message)
	if m == nil {
		return nil
	}
	again := &event.Again{Reason: m[3]}
	again.Attempt, _ = strconv.Atoi(m[1])
	again.Of, _ = strconv.Atoi(m[2])
	again.Status = statusIn(m[3])
	return again
}

func (d *decoder) item(moment string, it item) []event.Event {
	switch it.Type {
	case "agent_message":
		if moment != "item.completed" {
			return nil
		}
		d.last = it.Text
		return []event.Event{{Kind: event.Text, Text: it.Text}}
	case "reasoning":
		if moment != "item.completed" {
			return nil
		}
		return []event.Event{{Kind: event.Thinking, Text: it.Text}}
	case "error": // a warning, such as of a model that it does not know
		return []event.Event{{Kind: event.Notice, Text: it.Message}}
	}
	call := callOf(it)
	if call == nil {
		return []event.Event{{Kind: event.Notice, Text: it.Type}}
	}
	var out []event.Event
	if !d.begun[it.ID] {
		d.begun[it.ID] = true
		out = append(out, event.Event{Kind: event.ToolCall, Call: call})
	}
	if moment == "item.completed" {
		delete(d.begun, it.ID)
		out = append(out, event.Event{Kind: event.ToolResult, Result: resultOf(it, call.Name)})
		if reason, denied := denial(it.Status, it.Error != nil, it.errorText()); denied {
			denial := &event.Denial{CallID: it.ID, Tool: call.Name, Reason: reason}
			out = append(out, event.Event{Kind: event.Denied, Denial: denial})
		}
	}
	return out
}

func (it item) errorText() string {
	if it.Error == nil {
		return ""
	}
	return it.Error.Message
}

// callOf returns the call of an item, or nil if the item is not a tool call.
func callOf(it item) *event.Call {
	call := &event.Call{ID: it.ID, Name: it.Type}
	switch it.Type {
	case "command_execution":
		call.Kind, call.Command, call.Input = event.Shell, it.Command, it.input("command")
	case "file_change":
		call.Kind = event.Write
		if len(it.Changes) > 0 {
			call.Path = it.Changes[0].Path
			call.Input = it.input("changes")
		}
	case "mcp_tool_call":
		call.Kind, call.Name, call.Input = event.MCP, it.Server+"/"+it.Tool, it.Arguments
	case "web_search":
		call.Kind = event.Web
		if it.Query != "" {
			call.Input = it.input("query")
		}
	case "collab_tool_call":
		call.Kind = event.Agent
		if it.Tool != "" {
			call.Name = it.Tool
		}
	default:
		return nil
	}
	return call
}

func resultOf(it item, name string) *event.Result {
	r := &event.Result{ID: it.ID, Name: name, ExitCode: it.ExitCode, Output: it.Output}
	r.Failed = it.Status == "failed" || it.Status == declined || it.Error != nil
	if r.Output == "" {
		r.Output = it.errorText()
	}
	if r.Output == "" && len(it.Result) > 0 && string(it.Result) != "null" {
		r.Output = contentText(it.Result)
	}
	return r
}

// contentText is the text of a tool's result, or the whole result where it has another form.
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

// mcpDenied is how the error of a tool begins which policy kept from being called. No other member tells it.
const mcpDenied = "MCP tool call requires approval"

// declined is the status of a tool that was not run, because a person or a model in the place of one said no.
const declined = "declined"

// denial says whether an item was refused by policy.
func denial(status string, failed bool, message string) (reason string, denied bool) {
	switch {
	case status == declined:
		return declined, true
	case failed && strings.HasPrefix(message, mcpDenied):
		return message, true
	}
	return "", false
}
