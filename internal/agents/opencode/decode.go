package opencode

import (
	"cmp"
	"encoding/json"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// reader reads the output of a run. The CLI prints no result at the end, so reader collects one.
type reader struct {
	lines   cli.JSONLines
	session string
	text    string // of the last answer
	finish  string // of the last step
	failed  bool   // no step ended after the last error
	usage   *event.Usage
	turns   int
	ended   bool
}

// line is one line.
type line struct {
	Type      string   `json:"type"`
	SessionID string   `json:"sessionID"`
	Part      part     `json:"part"`
	Error     *problem `json:"error"`
}

// part is a piece of a message, on the wire and in the database.
type part struct {
	Type      string  `json:"type"`
	Text      string  `json:"text"`
	Synthetic bool    `json:"synthetic"`
	Tool      string  `json:"tool"`
	CallID    string  `json:"callID"`
	State     state   `json:"state"`
	Reason    string  `json:"reason"`
	Tokens    *tokens `json:"tokens"`
	Cost      float64 `json:"cost"`
}

type state struct {
	Status   string          `json:"status"`
	Input    json.RawMessage `json:"input"`
	Output   string          `json:"output"`
	Error    string          `json:"error"`
	Metadata struct {
		Exit *int `json:"exit"`
	} `json:"metadata"`
	Time struct { // in milliseconds
		Start, End int64
	} `json:"time"`
}

type tokens struct {
	Input     int64 `json:"input"`
	Output    int64 `json:"output"`
	Reasoning int64 `json:"reasoning"`
	Cache     struct {
		Read  int64 `json:"read"`
		Write int64 `json:"write"`
	} `json:"cache"`
}

// add adds the tokens and the cost to u, which may be nil, and returns it. The CLI does not include cached tokens in
// its input, nor reasoning in its output. It reports a cost of zero if it does not know the price of the model.
func (t tokens) add(u *event.Usage, cost float64) *event.Usage {
	u = cmp.Or(u, &event.Usage{})
	more := event.Usage{
		Input: t.Input + t.Cache.Read + t.Cache.Write, Output: t.Output + t.Reasoning, Cached: t.Cache.Read,
		Reasoning: t.Reasoning,
	}
	if cost > 0 {
		more.CostUSD = &cost
	}
	u.Add(more)
	return u
}

// Feed takes the next bytes.
func (r *reader) Feed(data []byte) []event.Event { return r.lines.Feed(data) }

// End reads the rest of the output, and adds the end of the run.
func (r *reader) End(x agent.Exit) []event.Event {
	out := r.lines.Flush()
	if r.ended {
		return out
	}
	r.ended = true
	end := &event.End{Text: r.text, Reason: event.FailedTurn, AgentReason: r.finish, Usage: r.usage}
	if r.turns > 0 {
		end.Turns = &r.turns
	}
	end.OK = r.finish == "stop" && !r.failed && x.Code == 0 && x.Signal == "" && x.EndedBy == "" && x.Failed == nil
	if end.OK {
		end.Reason = event.Success
	}
	return append(out, event.Event{Kind: event.Ended, Session: r.session, Synthetic: true, End: end})
}

func (r *reader) parse(raw []byte) []event.Event {
	var l line
	if !text.Lenient(raw, &l) || l.Type == "" {
		return cli.Unreadable(raw)
	}
	var out []event.Event
	if r.session == "" && l.SessionID != "" {
		r.session = l.SessionID
		out = append(out, event.Event{Kind: event.Started, Session: l.SessionID},
			event.Event{Kind: event.TurnBegan, Session: l.SessionID})
	}
	return append(out, r.event(l)...)
}

func (r *reader) event(l line) []event.Event {
	e := event.Event{Kind: event.Notice, Session: l.SessionID, Text: l.Type}
	switch l.Type {
	case "text":
		e.Text = l.Part.Text
		if !l.Part.Synthetic { // written by the CLI in the user's name
			e.Kind, r.text = event.Text, l.Part.Text
		}
	case "reasoning":
		e.Kind, e.Text = event.Thinking, l.Part.Text
	case "tool_use":
		return l.Part.tool(l.SessionID)
	case "step_finish":
		r.finish, r.failed = l.Part.Reason, false
		r.turns++
		if l.Part.Tokens != nil {
			r.usage = l.Part.Tokens.add(r.usage, l.Part.Cost)
		}
		e.Text = strings.TrimSpace(l.Type + " " + l.Part.Reason)
	case "error":
		r.failed = true
		l.Error = cmp.Or(l.Error, &problem{})
		e.Kind, e.Text, e.Fault, e.Terminal = event.Failed, l.Error.message(), l.Error.fault(), true
	}
	return []event.Event{e}
}

func (p part) call() *event.Call {
	return event.NewCall(p.CallID, p.Tool, kindOf(p.Tool), p.State.Input, "filePath")
}

// tool returns the events of a finished call. The CLI does not print other calls.
func (p part) tool(session string) []event.Event {
	call := p.call()
	out := []event.Event{{Kind: event.ToolCall, Session: session, Call: call}}
	if d := p.denial(); d != nil {
		out = append(out, event.Event{Kind: event.Denied, Session: session, Denial: d})
	}
	result := &event.Result{
		ID: p.CallID, Name: p.Tool, Output: p.State.Output, ExitCode: p.State.Metadata.Exit,
		Failed: p.State.Status == "error",
	}
	if result.Failed {
		result.Output = p.State.Error
	}
	return append(out, event.Event{Kind: event.ToolResult, Session: session, Result: result})
}

// denial returns the denial of a tool that policy refused, or nil. It recognises the CLI's messages, because there is
// no code.
func (p part) denial() *event.Denial {
	if p.State.Status != "error" {
		return nil
	}
	for _, words := range []string{
		"The user rejected permission to use this specific tool call",
		"The user has specified a rule which prevents you from using this specific tool call",
	} {
		if strings.HasPrefix(p.State.Error, words) {
			return &event.Denial{CallID: p.CallID, Tool: p.Tool, Reason: words}
		}
	}
	return nil
}

// kindOf returns the kind of a tool. MCP tools are named server_tool.
func kindOf(tool string) event.ToolKind {
	kind := cli.Kinds{
		event.Shell:  "bash",
		event.Read:   "read",
		event.Write:  "write edit patch apply_patch multiedit",
		event.Web:    "webfetch websearch",
		event.Search: "glob grep list codesearch",
		event.Agent:  "task",
		event.Other:  "plan_enter plan_exit",
	}.Of(tool, "")
	if kind == event.MCP && !strings.Contains(tool, "_") {
		return event.Other
	}
	return kind
}
