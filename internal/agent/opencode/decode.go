package opencode

import (
	"encoding/json"
	"errors"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/setting"
)

// Decode reads the lines of --format json, which both forms become.
func (d driver) Decode(format setting.Output) agent.Decoder {
	if format == setting.Text {
		return nil
	}
	w := &wire{}
	w.lines.Parse = w.parse
	return w
}

// wire reads one run. The CLI prints no last line for the result, so what is known of the end is collected on the way.
type wire struct {
	lines   cli.JSONLines
	session string
	text    string // of the last answer
	finish  string // of the last step
	failed  bool   // an error came after which no step ended
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

// part is a piece of a message, on the wire as in the database.
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

// add returns the sum. The CLI does not include cached tokens in its input, nor reasoning in its output. A cost of zero
// means that it is unknown: the CLI does not know the price of every model.
func (t tokens) add(u *event.Usage, cost float64) *event.Usage {
	if u == nil {
		u = &event.Usage{}
	}
	u.Input += t.Input + t.Cache.Read + t.Cache.Write
	u.Output += t.Output + t.Reasoning
	u.Cached += t.Cache.Read
	u.Reasoning += t.Reasoning
	if cost > 0 {
		sum := cost
		if u.CostUSD != nil {
			sum += *u.CostUSD
		}
		u.CostUSD = &sum
	}
	return u
}

// Feed takes the next bytes.
func (w *wire) Feed(data []byte) []event.Event { return w.lines.Feed(data) }

// End reads what is left and adds how the run ended.
func (w *wire) End(x agent.Exit) []event.Event {
	out := w.lines.End(x)
	if n := len(out); n > 0 && out[n-1].Kind == event.Ended {
		out = out[:n-1] // the one that knows nothing
	}
	if w.ended {
		return out
	}
	w.ended = true
	end := &event.End{Text: w.text, Reason: event.FailedTurn, Said: w.finish, Usage: w.usage}
	if w.turns > 0 {
		end.Turns = &w.turns
	}
	end.OK = w.finish == "stop" && !w.failed && x.Code == 0 && x.Signal == "" && x.ByUs == "" && x.Failed == nil
	if end.OK {
		end.Reason = event.Success
	}
	return append(out, event.Event{Kind: event.Ended, Session: w.session, Synthetic: true, End: end})
}

func (w *wire) parse(raw []byte) []event.Event {
	var l line
	if !read(raw, &l) || l.Type == "" {
		return cli.Unreadable(raw)
	}
	var out []event.Event
	if w.session == "" && l.SessionID != "" {
		w.session = l.SessionID
		out = append(out, event.Event{Kind: event.Started, Session: l.SessionID},
			event.Event{Kind: event.TurnBegan, Session: l.SessionID})
	}
	return append(out, w.event(l)...)
}

// read decodes what it can: a member of another type than we know leaves the others readable.
func read(raw []byte, v any) bool {
	err := json.Unmarshal(raw, v)
	var odd *json.UnmarshalTypeError
	return err == nil || errors.As(err, &odd)
}

func (w *wire) event(l line) []event.Event {
	e := event.Event{Kind: event.Notice, Session: l.SessionID, Text: l.Type}
	switch l.Type {
	case "text":
		e.Text = l.Part.Text
		if !l.Part.Synthetic { // what the CLI says to the model in the user's place
			e.Kind, w.text = event.Text, l.Part.Text
		}
	case "reasoning":
		e.Kind, e.Text = event.Thinking, l.Part.Text
	case "tool_use":
		return l.Part.tool(l.SessionID)
	case "step_finish":
		w.finish, w.failed = l.Part.Reason, false
		w.turns++
		if l.Part.Tokens != nil {
			w.usage = l.Part.Tokens.add(w.usage, l.Part.Cost)
		}
		e.Text = strings.TrimSpace(l.Type + " " + l.Part.Reason)
	case "error":
		w.failed = true
		if l.Error == nil {
			l.Error = &problem{}
		}
		e.Kind, e.Text, e.Fault, e.Terminal = event.Failed, l.Error.message(), l.Error.fault(), true
	}
	return []event.Event{e}
}

// tool is a call that has ended: the CLI prints none before.
func (p part) tool(session string) []event.Event {
	call := event.NewCall(p.CallID, p.Tool, kindOf(p.Tool), p.State.Input, "filePath")
	out := []event.Event{{Kind: event.ToolCall, Session: session, Call: call}}
	if d := p.denial(); d != nil {
		out = append(out, event.Event{Kind: event.Denied, Session: session, Denial: d})
	}
	r := &event.Result{
		ID: p.CallID, Name: p.Tool, Output: p.State.Output, ExitCode: p.State.Metadata.Exit,
		Failed: p.State.Status == "error",
	}
	if r.Failed {
		r.Output = p.State.Error
	}
	return append(out, event.Event{Kind: event.ToolResult, Session: session, Result: r})
}

// denial is set where policy refused the tool. The CLI has no code for it; these are the words of its own errors, where
// they begin.
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

func kindOf(tool string) event.ToolKind {
	switch tool {
	case "bash":
		return event.Shell
	case "read":
		return event.Read
	case "write", "edit", "patch", "apply_patch", "multiedit":
		return event.Write
	case "webfetch", "websearch":
		return event.Web
	case "glob", "grep", "list", "codesearch":
		return event.Search
	case "task":
		return event.Agent
	case "plan_enter", "plan_exit":
		return event.Other
	}
	if strings.Contains(tool, "_") { // server_tool
		return event.MCP
	}
	return event.Other
}
