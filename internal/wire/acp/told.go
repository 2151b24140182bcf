package acp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"omniagent/internal/kit/text"
	"omniagent/internal/wire/jsonrpc"
)

// updateParams has the members of all updates.
type updateParams struct {
	SessionUpdate string
	MessageID     string
	Content       json.RawMessage
	ToolCallID    string
	TerminalID    string
	Data          string
	Output        *struct{ Data string }
	ExitStatus    *struct{ ExitCode *int }
	Entries       []step
	Plan          struct{ Entries []step }
	Commands      []struct{ Name string } `json:"availableCommands"`
	Title         string
	UpdatedAt     string
	Used, Size    int64
	Cost          *struct {
		Amount   float64
		Currency string
	}
	Severity     string
	Description  string
	CompactionID string
	Status       string
	State        string
	StopReason   string
	Error        *jsonrpc.Error
}

// ReadUpdate reads session/update. Offer.Read reads options from raw. known is false for an unknown kind of update;
// then Update.Kind is the agent's word.
func ReadUpdate(params json.RawMessage) (session string, u Update, raw json.RawMessage, known bool) {
	var p struct {
		SessionID string
		Update    json.RawMessage
	}
	var m updateParams
	if !text.Lenient(params, &p) || !text.Lenient(p.Update, &m) {
		return "", u, nil, false
	}
	u.Message = m.MessageID
	switch kind := m.SessionUpdate; kind {
	case "user_message_chunk", "user_message":
		u.Kind = UserMessage
	case "agent_message_chunk", "agent_message":
		u.Kind, u.Text, u.Whole = Answer, textIn(m.Content), kind == "agent_message"
	case "agent_thought_chunk", "agent_thought":
		u.Kind, u.Text, u.Whole = Thinking, textIn(m.Content), kind == "agent_thought"
	case "tool_call", "tool_call_update":
		var c toolCall
		_ = json.Unmarshal(p.Update, &c)
		u.Kind, u.Tool = ToolCall, c.tool()
		u.Tool.New = kind == "tool_call"
	case "tool_call_content_chunk":
		u.Kind, u.Tool = ToolCall, &Tool{ID: m.ToolCallID, Content: contentsIn(m.Content), More: true}
	case "terminal_update", "terminal_output_chunk":
		u.Kind, u.Tool = TerminalOutput, m.terminal(kind == "terminal_output_chunk")
	case "plan", "plan_update":
		u.Kind = Plan
		for _, s := range append(m.Entries, m.Plan.Entries...) {
			u.Steps = append(u.Steps, Step{s.Content, s.Status})
		}
	case "current_mode_update", "config_option_update":
		u.Kind = OptionsChanged
	case "session_info_update":
		u.Kind, u.Title, u.Time = SessionTitle, m.Title, m.UpdatedAt
	case "available_commands_update":
		u.Kind = Commands
		for _, c := range m.Commands {
			u.Text += c.Name + "\n"
		}
	case "usage_update":
		u.Kind, u.Usage = ContextUsage, &Usage{Used: m.Used, Size: m.Size}
		if m.Cost != nil && m.Cost.Currency == "USD" {
			u.Usage.CostUSD = &m.Cost.Amount
		}
	case "notice":
		u.Kind, u.Severity, u.Text = Notice, m.Severity, strings.TrimSpace(m.Title+" "+m.Description)
	case "compaction_update", "compaction_summary_chunk":
		u.Kind, u.Message, u.State = Compaction, m.CompactionID, m.Status
	case "state_update":
		u.Kind, u.State, u.Stop, u.Error = Conditions, m.State, m.StopReason, m.Error
	default:
		return p.SessionID, Update{Kind: Kind(kind)}, p.Update, false
	}
	return p.SessionID, u, p.Update, true
}

// terminal returns a change of a terminal. If more is true, the output is appended.
func (m updateParams) terminal(more bool) *Tool {
	t := &Terminal{}
	data := m.Data
	if m.Output != nil {
		data = m.Output.Data
	}
	if m.Output != nil || data != "" {
		bytes, _ := base64.StdEncoding.DecodeString(data)
		t.Output = new(string(bytes))
	}
	if m.ExitStatus != nil {
		t.Ended, t.Exit = true, m.ExitStatus.ExitCode
	}
	return &Tool{ID: m.TerminalID, Terminal: t, More: more}
}

type step struct{ Content, Status string }

// toolCall is a tool call, or a change of one, on the wire.
type toolCall struct {
	ToolCallID, Name, Title, Kind, Status string
	Content                               json.RawMessage
	Locations                             []struct{ Path string }
	RawInput, RawOutput                   json.RawMessage
	Meta                                  struct {
		Omniagent struct{ ParentToolCallID string }
		Output    *struct{ Data string } `json:"terminal_output"`
		Exit      *struct {
			Code *int `json:"exit_code"`
		} `json:"terminal_exit"`
		// set by the adapter for Claude Code
		ClaudeCode struct{ ToolResponse json.RawMessage }
	} `json:"_meta"`
}

func (c toolCall) tool() *Tool {
	t := &Tool{
		ID: c.ToolCallID, Name: c.Name, Title: c.Title, Kind: c.Kind, Status: c.Status,
		Content: contentsIn(c.Content), Parent: c.Meta.Omniagent.ParentToolCallID,
	}
	if in := bytes.TrimSpace(c.RawInput); len(in) > 0 && string(in) != "null" && string(in) != "{}" {
		t.Input = in
	}
	for _, l := range c.Locations {
		t.Locations = append(t.Locations, l.Path)
	}
	if c.Meta.Output != nil || c.Meta.Exit != nil {
		t.Terminal = &Terminal{}
		if c.Meta.Output != nil {
			t.Terminal.Output = &c.Meta.Output.Data
		}
		if c.Meta.Exit != nil {
			t.Terminal.Ended, t.Terminal.Exit = true, c.Meta.Exit.Code
		}
	}
	var decided struct{ DecisionReasonType string } // why the call may not run; absent if it ran
	_ = json.Unmarshal(c.Meta.ClaudeCode.ToolResponse, &decided)
	if decided.DecisionReasonType != "" && c.Status == "failed" {
		t.Code = "denied"
	}
	var out struct {
		Output, Content, Message, Code string
		Metadata                       struct{ Exit *int }
	}
	switch {
	case len(c.RawOutput) == 0 || string(c.RawOutput) == "null":
	case json.Unmarshal(c.RawOutput, &t.Output) == nil:
	default:
		_ = json.Unmarshal(c.RawOutput, &out)
		t.Output, t.Code = cmp.Or(out.Output, out.Content, out.Message), cmp.Or(out.Code, t.Code)
		if e := out.Metadata.Exit; e != nil && t.Terminal == nil {
			t.Terminal = &Terminal{Ended: true, Exit: e}
		}
	}
	return t
}

// contentsIn reads the content of a call: a list, or one part of it.
func contentsIn(raw json.RawMessage) []Content {
	type part struct {
		Type             string
		Content          json.RawMessage
		Path             string
		OldText, NewText *string
		TerminalID       string
		Changes          []struct{ Operation, Path string }
		Patch            struct{ Text string }
	}
	parts := partsIn[part](raw)
	if parts == nil {
		return nil
	}
	all := []Content{} // an empty list differs from an absent one
	for _, p := range parts {
		switch {
		case p.Type == "content":
			all = append(all, Content{Text: textIn(p.Content)})
		case p.Type == "terminal":
			all = append(all, Content{Terminal: p.TerminalID})
		case p.Type == "diff" && p.NewText != nil:
			all = append(all, Content{Diff: &Diff{Path: p.Path, Old: p.OldText, New: *p.NewText}})
		case p.Type == "diff":
			for _, c := range p.Changes {
				d := &Diff{Path: c.Path, Part: true}
				if c.Operation == "add" && len(p.Changes) == 1 {
					d.New, d.Part = added(p.Patch.Text)
				}
				all = append(all, Content{Diff: d, Text: p.Patch.Text})
			}
		}
	}
	return all
}

// partsIn reads a list of parts, or one part of it.
func partsIn[T any](raw json.RawMessage) (parts []T) {
	if len(raw) > 0 && raw[0] == '{' {
		parts = make([]T, 1)
		_ = json.Unmarshal(raw, &parts[0])
		return parts
	}
	if !text.Lenient(raw, &parts) {
		return nil
	}
	return parts
}

// added returns the content of the file that a patch creates. part is true if the patch does not create a file.
func added(patch string) (text string, part bool) {
	var b strings.Builder
	begun := false
	for line := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(line, "@@"):
			begun = true
		case begun && line[0] == '+':
			b.WriteString(line[1:])
		}
	}
	if strings.Contains(patch, "\n\\ No newline at end of file") {
		return strings.TrimSuffix(b.String(), "\n"), !begun
	}
	return b.String(), !begun
}

// textIn returns the text of a part of a message, or of a list of them.
func textIn(raw json.RawMessage) string {
	type part struct {
		Type, Text, Name, URI string
		Resource              struct{ URI, Text string }
	}
	var b strings.Builder
	for _, p := range partsIn[part](raw) {
		switch p.Type {
		case "text":
			b.WriteString(p.Text)
		case "resource_link":
			b.WriteString("[" + cmp.Or(p.Name, p.URI) + "](" + p.URI + ")")
		case "resource":
			b.WriteString(cmp.Or(p.Resource.Text, p.Resource.URI))
		default:
			b.WriteString("[" + p.Type + "]")
		}
	}
	return b.String()
}

// Spending is the response to a prompt: why the turn ended, in version 1, and what it cost.
type Spending struct {
	Stop  string
	Spent *Spent
}

// ReadStopped reads the response to session/prompt.
func ReadStopped(result json.RawMessage) Spending {
	var r struct {
		StopReason string
		Usage      *struct {
			InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens, ThoughtTokens int64
		}
		Meta struct {
			Quota struct {
				Count *struct {
					Input  int64 `json:"input_tokens"`
					Output int64 `json:"output_tokens"`
				} `json:"token_count"`
			} `json:"quota"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(result, &r)
	s := Spending{Stop: r.StopReason}
	switch u, q := r.Usage, r.Meta.Quota.Count; {
	case u != nil:
		s.Spent = &Spent{u.InputTokens, u.OutputTokens, u.CachedReadTokens, u.CachedWriteTokens, u.ThoughtTokens}
	case q != nil: // Gemini CLI, and adapters that follow it
		s.Spent = &Spent{Input: q.Input, Output: q.Output}
	}
	return s
}
