package copilot

import (
	"cmp"
	"fmt"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/event"
)

// reader reads the JSON lines, and remembers what later lines refer to.
type reader struct {
	last    failure // the last failed request
	retries int
	model   string
	tools   map[string]string // names of open calls, by id
	aborted bool              // a signal ended the turn, although the exit code is 0
}

func (d *reader) line(line []byte) []event.Event {
	r, ok := parse(line)
	if !ok {
		return cli.Unreadable(line)
	}
	if r.Agent != "" {
		return d.subagent(r)
	}
	switch r.Type {
	case "session.start", "session.resume", "session.tools_updated":
		return d.started(r)
	case "user.message":
		return one(event.Event{Kind: event.TurnBegan})
	case "assistant.message_delta", "assistant.reasoning_delta":
		var v struct {
			Text string `json:"deltaContent"`
		}
		r.into(&v)
		kind := event.Text
		if r.Type == "assistant.reasoning_delta" {
			kind = event.Thinking
		}
		return one(event.Event{Kind: kind, Text: v.Text, Delta: true})
	case "assistant.message":
		return d.message(r)
	case "assistant.reasoning":
		var m message
		r.into(&m)
		return one(event.Event{Kind: event.Thinking, Text: m.Content})
	case "tool.execution_start":
		return d.call(r)
	case "tool.execution_complete":
		return d.result(r)
	case "model.call_failure":
		d.last = failure{}
		r.into(&d.last)
		return notice(r, d.last.Message)
	case "assistant.turn_retry":
		return d.retry(r)
	case "session.error":
		var e sessionError
		r.into(&e)
		return one(event.Event{Kind: event.Failed, Fault: sessionFault(e, d.last), Terminal: true})
	case "user_input.requested", "elicitation.requested":
		return question(r)
	case "result":
		return d.ended(r)
	case "abort":
		d.aborted = true
	}
	var v struct {
		Message string `json:"message"`
	}
	r.into(&v)
	return notice(r, v.Message)
}

func one(e event.Event) []event.Event { return []event.Event{e} }

// notice returns the text of any other record, or its type.
func notice(r logEvent, text string) []event.Event {
	return one(event.Event{Kind: event.Notice, Text: cmp.Or(text, r.Type)})
}

// subagent reads a record of a sub-agent. Its calls count, but its text is not part of the answer.
func (d *reader) subagent(r logEvent) []event.Event {
	switch r.Type {
	case "tool.execution_start":
		return d.call(r)
	case "tool.execution_complete":
		return d.result(r)
	}
	return notice(r, "")
}

func (d *reader) started(r logEvent) []event.Event {
	var v struct {
		Session  string `json:"sessionId"`
		Model    string `json:"model"`
		Selected string `json:"selectedModel"`
	}
	r.into(&v)
	v.Model = cmp.Or(v.Model, v.Selected)
	if r.Type == "session.tools_updated" && (v.Model == "" || v.Model == d.model) {
		return notice(r, "")
	}
	d.model = v.Model
	return one(event.Event{Kind: event.Started, Session: v.Session, Model: v.Model})
}

func (d *reader) message(r logEvent) []event.Event {
	d.retries, d.last = 0, failure{}
	var m message
	r.into(&m)
	if m.Content == "" {
		return notice(r, "") // it has only calls, which have their own events
	}
	return one(event.Event{Kind: event.Text, Text: m.Content, Model: m.Model})
}

func (d *reader) call(r logEvent) []event.Event {
	var t toolStart
	r.into(&t)
	if d.tools == nil {
		d.tools = map[string]string{}
	}
	d.tools[t.ID] = t.Name
	return one(event.Event{Kind: event.ToolCall, Call: t.call()})
}

func (d *reader) result(r logEvent) []event.Event {
	var t toolEnd
	r.into(&t)
	name := d.tools[t.ID]
	delete(d.tools, t.ID)
	res := &event.Result{ID: t.ID, Name: name, Failed: !t.Success, Output: t.Result.Content}
	if t.Shell != nil {
		res.ExitCode = &t.Shell.ExitCode
		// The CLI reports every command that ran as a success, whatever its exit code.
		res.Failed = res.Failed || t.Shell.ExitCode != 0
	}
	if t.Error != nil {
		res.Output = t.Error.Message
	}
	events := one(event.Event{Kind: event.ToolResult, Result: res})
	if t.denied() {
		events = append(events,
			event.Event{Kind: event.Denied, Denial: &event.Denial{CallID: t.ID, Tool: name, Reason: t.Error.Message}})
	}
	return events
}

func (d *reader) retry(r logEvent) []event.Event {
	var v struct {
		Reason string `json:"reason"`
	}
	r.into(&v)
	d.retries++
	return one(event.Event{Kind: event.Retry, Retry: &event.Repetition{
		Attempt: d.retries, Status: d.last.Status, Reason: v.Reason,
	}})
}

func question(r logEvent) []event.Event {
	var v struct {
		ID       string   `json:"requestId"`
		Question string   `json:"question"`
		Message  string   `json:"message"`
		Choices  []string `json:"choices"`
	}
	r.into(&v)
	ask := &event.Ask{ID: v.ID, Text: cmp.Or(v.Question, v.Message), Options: v.Choices}
	return one(event.Event{Kind: event.Question, Ask: ask})
}

func (d *reader) ended(r logEvent) []event.Event {
	e := &event.End{}
	if r.ExitCode != nil {
		e.OK = *r.ExitCode == 0 && !d.aborted
		e.Reason = fmt.Sprintf("exit code %d", *r.ExitCode)
	}
	if d.aborted {
		e.Reason, e.AgentReason = event.Cancelled, e.Reason
	}
	return one(event.Event{Kind: event.Ended, Session: r.Session, End: e})
}
