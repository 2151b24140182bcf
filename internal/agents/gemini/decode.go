package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

// Decode reads the two forms of output for programs.
func (d driver) Decode(output setting.Output) agent.Decoder {
	switch output {
	case setting.StreamJSON:
		return &cli.JSONLines{Parse: (&stream{names: map[string]string{}}).parse}
	case setting.JSON:
		return &object{}
	}
	return nil
}

// trouble is an error, in both forms of output.
type trouble struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Code    any    `json:"code"` // a number, or the type of a tool error
}

// line is one line of stream-json. Which fields are set depends on the type.
type line struct {
	Type       string          `json:"type"`
	SessionID  string          `json:"session_id"`
	Model      string          `json:"model"`
	Role       string          `json:"role"`
	Content    string          `json:"content"`
	Delta      bool            `json:"delta"`
	ToolName   string          `json:"tool_name"`
	ToolID     string          `json:"tool_id"`
	Parameters json.RawMessage `json:"parameters"`
	Status     string          `json:"status"`
	Output     string          `json:"output"`
	Error      *trouble        `json:"error"`
	Severity   string          `json:"severity"`
	Message    string          `json:"message"`
	Stats      *struct {
		Input  int64 `json:"input_tokens"`
		Output int64 `json:"output_tokens"`
		Cached int64 `json:"cached"`
	} `json:"stats"`
}

// stream remembers the tools of open calls, because results do not name them.
type stream struct{ names map[string]string }

func (s *stream) parse(data []byte) []event.Event {
	var l line
	if json.Unmarshal(data, &l) != nil {
		return cli.Unreadable(data)
	}
	switch l.Type {
	case "init":
		return one(event.Event{Kind: event.Started, Session: l.SessionID, Model: l.Model})
	case "message":
		if l.Role == "user" {
			return one(event.Event{Kind: event.TurnBegan})
		}
		return one(event.Event{Kind: event.Text, Text: l.Content, Delta: l.Delta})
	case "tool_use":
		s.names[l.ToolID] = l.ToolName
		return one(event.Event{Kind: event.ToolCall, Call: call(l.ToolID, l.ToolName, l.Parameters)})
	case "tool_result":
		tool := s.names[l.ToolID]
		delete(s.names, l.ToolID)
		return toolResult(l, tool)
	case "error":
		if l.Severity == "error" {
			return one(event.Event{Kind: event.Failed, Fault: failure(l.Message, 0), Terminal: true})
		}
		return one(event.Event{Kind: event.Notice, Text: l.Message})
	case "result":
		return result(l)
	}
	return one(event.Event{Kind: event.Notice})
}

func one(e event.Event) []event.Event { return []event.Event{e} }

// toolResult returns the result of a tool, and the denial if there is one.
func toolResult(l line, tool string) []event.Event {
	r := &event.Result{ID: l.ToolID, Name: tool, Failed: l.Status == "error", Output: l.Output}
	if kind(tool) == event.Shell {
		r.ExitCode = exitOf(l.Output)
	}
	if l.Error == nil {
		return one(event.Event{Kind: event.ToolResult, Result: r})
	}
	r.Failed = true
	r.Output = cmp.Or(r.Output, l.Error.Message)
	if !denied(tool, l.Error.Type, l.Error.Message) {
		return one(event.Event{Kind: event.ToolResult, Result: r})
	}
	return []event.Event{
		{Kind: event.Denied, Denial: &event.Denial{CallID: l.ToolID, Tool: tool, Reason: l.Error.Message}},
		{Kind: event.ToolResult, Result: r},
	}
}

func result(l line) []event.Event {
	end := &event.End{OK: l.Status == "success", Reason: l.Status}
	if l.Stats != nil && (l.Stats.Input != 0 || l.Stats.Output != 0) {
		end.Usage = &event.Usage{Input: l.Stats.Input, Output: l.Stats.Output, Cached: l.Stats.Cached}
	}
	ended := event.Event{Kind: event.Ended, End: end}
	if l.Error == nil {
		return one(ended)
	}
	end.OK = false
	return []event.Event{{Kind: event.Failed, Fault: failure(l.Error.Message, 0), Terminal: true}, ended}
}

// object reads the one object at the end of the output, or of stderr after an error.
type object struct{ data []byte }

func (o *object) Feed(data []byte) []event.Event {
	o.data = append(o.data, data...)
	return nil
}

// answer is the object that object reads.
type answer struct {
	SessionID string   `json:"session_id"`
	Response  *string  `json:"response"`
	Error     *trouble `json:"error"`
	Warnings  []string `json:"warnings"`
	Stats     *struct {
		Models map[string]struct {
			Tokens struct {
				Prompt, Candidates, Cached, Thoughts int64
			} `json:"tokens"`
			Roles map[string]json.RawMessage `json:"roles"`
		} `json:"models"`
	} `json:"stats"`
}

func (o *object) End(x agent.Exit) []event.Event {
	data := bytes.TrimSpace(o.data)
	o.data = nil
	var a answer
	if json.Unmarshal(data, &a) != nil || a.SessionID == "" && a.Response == nil && a.Error == nil {
		var out []event.Event
		if len(data) > 0 {
			out = cli.Unreadable(data)
		}
		if tail := lastObject(x.Stderr); json.Unmarshal(tail, &a) != nil || a.Error == nil {
			return append(out, cli.Unfinished("", ""))
		}
		return append(out, a.events()...)
	}
	events := a.events()
	for i := range events {
		events[i].Raw = data
	}
	return events
}

func (a answer) events() []event.Event {
	out := []event.Event{{Kind: event.Started, Session: a.SessionID, Model: a.model()}}
	for _, w := range a.Warnings {
		out = append(out, event.Event{Kind: event.Notice, Text: w})
	}
	end := &event.End{OK: a.Error == nil, Reason: "success", Usage: a.usage()}
	if a.Response != nil && *a.Response != "" {
		end.Text = *a.Response
		out = append(out, event.Event{Kind: event.Text, Text: *a.Response})
	}
	if a.Error != nil {
		status := 0
		if code, ok := a.Error.Code.(float64); ok {
			status = int(code)
		}
		end.Reason = "error"
		out = append(out, event.Event{Kind: event.Failed, Fault: failure(a.Error.Message, status), Terminal: true})
	}
	return append(out, event.Event{Kind: event.Ended, End: end})
}

// model returns the model that did the work. Other models only choose it, or answer searches.
func (a answer) model() string {
	if a.Stats == nil {
		return ""
	}
	var names []string
	for name, m := range a.Stats.Models {
		if _, ok := m.Roles["main"]; ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

func (a answer) usage() *event.Usage {
	if a.Stats == nil || len(a.Stats.Models) == 0 {
		return nil
	}
	u := &event.Usage{}
	for _, m := range a.Stats.Models {
		t := m.Tokens
		u.Add(event.Usage{Input: t.Prompt, Output: t.Candidates, Cached: t.Cached, Reasoning: t.Thoughts})
	}
	return u
}

// lastObject returns the indented object at the end of a text, or nothing.
func lastObject(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if i := bytes.LastIndex(text, []byte("\n{\n")); i >= 0 {
		return text[i+1:]
	}
	if bytes.HasPrefix(text, []byte("{")) {
		return text
	}
	return nil
}
