package yume

import (
	"bytes"
	"cmp"
	"encoding/json"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
)

// Decoder reads the lines, however the input is split. It joins a small object that is spread over several lines.
type Decoder struct {
	cut     lines.Cutter
	object  []byte // an incomplete object
	session string
	model   string
	over    bool // the last turn has ended
}

const longestLine = 8 << 20

// longestObject limits an object that is spread over several lines.
const longestObject = 100_000

// Feed implements agent.Decoder.
func (d *Decoder) Feed(data []byte) []event.Event {
	var events []event.Event
	d.cut.Most = longestLine
	for {
		line, rest, ok := d.cut.Cut(data)
		if !ok {
			return events
		}
		events = append(events, d.line(line.Text)...) // skip a cut line
		data = rest
	}
}

// End implements agent.Decoder.
func (d *Decoder) End(x agent.Exit) []event.Event {
	line, _ := d.cut.Last()
	events := d.line(line.Text)
	if !d.over {
		events = append(events, event.Event{
			Kind: event.Ended, Session: d.session, Synthetic: true,
			End: &event.End{Reason: "the agent ended without a result"},
		})
	}
	return events
}

// line reads one line. A line that is not JSON begins or continues an object.
func (d *Decoder) line(line []byte) []event.Event {
	line = bytes.TrimSpace(line)
	switch {
	case len(line) == 0, string(line) == "$":
		return nil
	case json.Valid(line):
		d.object = nil
		return d.message(bytes.Clone(line))
	}
	if d.object = append(d.object, line...); len(d.object) > longestObject {
		d.object = nil
		return []event.Event{{
			Kind:      event.Failed,
			Fault:     fault.New(fault.InvalidJSON, "a line of the agent is not JSON, and too long"),
			Synthetic: true,
		}}
	}
	if !json.Valid(d.object) {
		return nil
	}
	whole := d.object
	d.object = nil
	return d.message(whole)
}

// agentLine has the members that we read of all lines.
type agentLine struct {
	Type     string          `json:"type"`
	Subtype  string          `json:"subtype"`
	Session  string          `json:"session_id"`
	Model    string          `json:"model"`
	Parent   string          `json:"parent_tool_use_id"`
	Content  json.RawMessage `json:"content"`
	Thought  string          `json:"thought"`
	ID       string          `json:"id"`
	UseID    string          `json:"tool_use_id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	IsError  bool            `json:"is_error"`
	Message  json.RawMessage `json:"message"`
	Code     string          `json:"code"`
	Result   string          `json:"result"`
	Turns    *int            `json:"num_turns"`
	Cost     *float64        `json:"total_cost_usd"`
	Guessed  bool            `json:"usage_estimated"`
	Usage    *tokens         `json:"usage"`
	Denials  []denial        `json:"permission_denials"`
	Errors   []string        `json:"errors"`
	Answer   json.RawMessage `json:"structured_output"`
	Metadata compaction      `json:"compact_metadata"`
}

func (d *Decoder) message(line []byte) []event.Event {
	var m agentLine
	if json.Unmarshal(line, &m) != nil || m.Type == "" {
		return nil
	}
	d.session = cmp.Or(m.Session, d.session)
	e := event.Event{Session: m.Session, Parent: m.Parent, Raw: line}
	switch m.Type {
	case "system":
		return d.system(m, e)
	case "text":
		e.Kind, e.Text, e.Delta = event.Text, plainText(m.Content), true
	case "thinking":
		if m.Thought == "" {
			return nil
		}
		e.Kind, e.Text, e.Delta = event.Thinking, m.Thought, true
	case "tool_use":
		e.Kind, e.Call = event.ToolCall, &event.Call{ID: m.ID, Name: m.Name, Kind: event.Other, Input: m.Input}
	case "tool_result":
		e.Kind, e.Result = event.ToolResult, &event.Result{ID: m.UseID, Failed: m.IsError, Output: plainText(m.Content)}
	case "error":
		e.Kind, e.Terminal, e.Fault = event.Failed, true, fault.New(cmp.Or(fault.Code(m.Code), fault.AgentFailed), "%s",
			plainText(m.Message))
	case "result":
		return d.result(m, e)
	case "usage", "message_stop", "interrupt":
		return nil
	default:
		e.Kind = event.Notice
	}
	return []event.Event{e}
}

func (d *Decoder) system(m agentLine, e event.Event) []event.Event {
	switch m.Subtype {
	case "init":
		d.model = m.Model
		e.Kind, e.Model = event.Started, m.Model
	case "compact_boundary":
		e.Kind, e.Compaction = event.Compacted, &event.Compaction{
			Trigger: m.Metadata.Trigger,
			Before:  m.Metadata.Before,
		}
	case "error":
		e.Kind, e.Terminal, e.Fault = event.Failed, true, fault.New(fault.AgentFailed, "%s", plainText(m.Message))
	default:
		e.Kind = event.Notice
	}
	return []event.Event{e}
}

func (d *Decoder) result(m agentLine, e event.Event) []event.Event {
	d.over = true
	var events []event.Event
	for _, no := range m.Denials {
		events = append(events, event.Event{Kind: event.Denied, Denial: &event.Denial{CallID: no.ID, Tool: no.Tool}})
	}
	e.Kind, e.Model = event.Ended, d.model
	e.End = &event.End{
		OK: !m.IsError, Text: m.Result, Reason: m.Subtype, Turns: m.Turns, Notes: m.Errors, Structured: m.Answer,
	}
	if u := m.Usage; u != nil {
		e.End.Usage = &event.Usage{
			Input: u.Input + u.Written + u.Cached, Output: u.Output, Cached: u.Cached,
			Written: u.Written, CostUSD: m.Cost, Estimated: m.Guessed,
		}
	}
	return append(events, e)
}

// plainText returns a string, or the member content or output of an object.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct{ Content, Output string }
	_ = json.Unmarshal(raw, &o)
	return o.Content + o.Output
}
