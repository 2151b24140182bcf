package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/maphash"
	"slices"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	wire "omniagent/internal/wire/claude"
)

// Classify returns why a run failed, or nil. A turn without a result has failed, even with exit code 0, which an
// interrupted CLI returns.
func (d driver) Classify(x agent.Exit, events []event.Event) *fault.Fault {
	f := d.Program.Classify(x, events)
	if f != nil ||
		!slices.ContainsFunc(events, func(e event.Event) bool { return e.Kind == event.Ended && e.Synthetic }) {
		return f
	}
	return fault.New(fault.AgentFailed, "the agent ended without a result")
}

type decoder struct {
	lines   cli.JSONLines
	session string
	model   string
	cost    float64           // of the session so far
	calls   map[string]string // open calls: id to name
	denied  map[string]bool
	texts   map[uint64]bool // hashes of the answer's texts, which the result repeats
	seed    maphash.Seed
	pending *apiFailure // an error in a message; the result has more details
	talk    *talk       // if not nil, it reads the lines
}

func newDecoder() *decoder {
	d := &decoder{
		calls: map[string]string{}, denied: map[string]bool{}, texts: map[uint64]bool{}, seed: maphash.MakeSeed(),
	}
	d.lines.Parse = d.parse
	return d
}

// Feed takes the next bytes.
func (d *decoder) Feed(data []byte) []event.Event { return d.lines.Feed(data) }

// End reads the rest of the output, and reports an error that no result followed.
func (d *decoder) End(x agent.Exit) []event.Event {
	out := d.lines.End(x)
	if d.pending == nil {
		return out
	}
	failed := event.Event{Kind: event.Failed, Session: d.session, Fault: d.pending.fault(), Terminal: true}
	d.pending = nil
	if n := len(out); n > 0 && out[n-1].Kind == event.Ended {
		return append(out[:n-1:n-1], failed, out[n-1])
	}
	return append(out, failed)
}

func (d *decoder) parse(raw []byte) []event.Event {
	if raw[0] == '[' {
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil {
			return cli.Unreadable(raw)
		}
		var out []event.Event
		for _, one := range all {
			if one = bytes.TrimSpace(one); len(one) > 0 && one[0] == '{' {
				for _, e := range d.parse(one) {
					e.Raw = one
					out = append(out, e)
				}
			} else {
				out = append(out, cli.Unreadable(one)...)
			}
		}
		return out
	}
	var l wire.Line
	if raw[0] != '{' || json.Unmarshal(raw, &l) != nil || l.Type == "" {
		return cli.Unreadable(raw)
	}
	read := d.read
	if d.talk != nil {
		read = d.talk.read
	}
	events := read(&l, raw)
	d.session = cmp.Or(l.Session, d.session)
	return events
}

func (d *decoder) read(l *wire.Line, raw []byte) []event.Event {
	switch l.Type {
	case "system":
		return d.system(l)
	case "assistant":
		return d.assistant(l)
	case "user":
		return d.user(l)
	case "stream_event":
		return delta(l)
	case "result":
		return d.result(l, raw)
	case "control_request":
		return ask(l)
	}
	return []event.Event{{Kind: event.Notice, Session: l.Session, Text: l.Type}}
}

func (d *decoder) system(l *wire.Line) []event.Event {
	switch l.Subtype {
	case "init":
		begun := event.Event{Kind: event.TurnBegan, Session: l.Session, Model: l.Model}
		if l.Session == d.session && l.Model == d.model {
			return []event.Event{begun}
		}
		d.model = l.Model
		return []event.Event{{Kind: event.Started, Session: l.Session, Model: l.Model}, begun}
	case "compact_boundary":
		return []event.Event{{Kind: event.Compacted, Session: l.Session, Compaction: &event.Compaction{
			Trigger: l.Compact.Trigger, Before: l.Compact.Before,
		}}}
	case "permission_denied":
		return d.deny(l.Session, event.Denial{
			CallID: l.ToolUse, Tool: l.Tool, Reason: cli.FirstLine(cmp.Or(l.Reason, word(l.Message), l.Why)),
		})
	case "api_retry":
		return []event.Event{{Kind: event.Retry, Session: l.Session, Retry: &event.Repetition{
			Attempt: l.Attempt, Of: l.Of, After: milliseconds(l.Delay), Status: l.Status, Reason: word(l.Error),
		}}}
	}
	return []event.Event{{Kind: event.Notice, Session: l.Session, Text: cmp.Or(l.Summary, l.Subtype)}}
}

// word returns a JSON string, or "" for any other value.
func word(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

func milliseconds(ms float64) time.Duration {
	if ms < 0 || ms > 1e12 {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func (d *decoder) deny(session string, n event.Denial) []event.Event {
	if d.denied[n.CallID] && n.CallID != "" {
		return nil
	}
	d.denied[n.CallID] = true
	return []event.Event{{Kind: event.Denied, Session: session, Denial: &n}}
}

func (d *decoder) assistant(l *wire.Line) []event.Event {
	var m wire.Message
	if json.Unmarshal(l.Message, &m) != nil {
		return []event.Event{{Kind: event.Notice, Session: l.Session, Text: "unreadable message"}}
	}
	if l.APIError {
		failure := apiFailure{
			Word: word(l.Error), Status: l.APIStatus, Type: l.APIType, Text: wire.Plain(m.Content), Stop: m.Stop,
		}
		if l.ParentTool != "" { // a sub-agent's failure does not end the conversation
			return []event.Event{{Kind: event.Failed, Session: l.Session, Fault: failure.fault()}}
		}
		d.pending = &failure
		return nil
	}
	var out []event.Event
	for _, b := range wire.Blocks(m.Content) {
		e := event.Event{Session: l.Session, Model: m.Model}
		switch {
		case b.Type == "text" && b.Text != "" && l.ParentTool == "":
			d.texts[maphash.String(d.seed, b.Text)] = true
			e.Kind, e.Text = event.Text, b.Text
		case b.Type == "thinking" && b.Thinking != "" && l.ParentTool == "":
			e.Kind, e.Text = event.Thinking, b.Thinking
		case b.Type == "tool_use":
			d.calls[b.ID] = b.Name
			e.Kind, e.Call = event.ToolCall, call(b)
		case b.Type == "text" && b.Text != "":
			// The text of a sub-agent does not belong to the answer.
			e.Kind, e.Text, e.Model = event.Notice, b.Text, ""
		default:
			continue
		}
		if l.ParentTool != "" {
			e.Model = ""
		}
		out = append(out, e)
	}
	return out
}

func (d *decoder) user(l *wire.Line) []event.Event {
	var m wire.Message
	if json.Unmarshal(l.Message, &m) != nil {
		return []event.Event{{Kind: event.Notice, Session: l.Session, Text: "unreadable message"}}
	}
	var out []event.Event
	for _, b := range wire.Blocks(m.Content) {
		if b.Type != "tool_result" {
			continue
		}
		r := &event.Result{
			ID: b.ToolUseID, Name: d.calls[b.ToolUseID], Failed: b.IsError, Output: wire.Plain(b.Content),
		}
		delete(d.calls, b.ToolUseID)
		if b.IsError && kind(r.Name) == event.Shell {
			r.ExitCode = cli.ExitCode(r.Output, "Exit code ")
		}
		for _, meta := range l.Meta {
			switch {
			case meta.ID != b.ToolUseID:
			case refused(meta.Kind, meta.Decision):
				out = append(out, d.deny(l.Session, event.Denial{
					CallID: b.ToolUseID, Tool: r.Name, Reason: cli.FirstLine(r.Output),
					ByUser: meta.Decision.Source == "user_reject",
				})...)
			case meta.Kind == "user-rejected": // the turn was interrupted; the result lists the call among the denials
				d.denied[b.ToolUseID] = true
			}
		}
		out = append(out, event.Event{Kind: event.ToolResult, Session: l.Session, Result: r})
	}
	if out == nil {
		out = []event.Event{{Kind: event.Notice, Session: l.Session, Text: wire.Plain(m.Content)}}
	}
	return out
}

func delta(l *wire.Line) []event.Event {
	e := event.Event{Session: l.Session, Delta: true}
	switch x := l.Event.Delta; {
	case l.ParentTool != "" || l.Event.Type != "content_block_delta":
		return nil
	case x.Type == "text_delta" && x.Text != "":
		e.Kind, e.Text = event.Text, x.Text
	case x.Type == "thinking_delta" && x.Thinking != "":
		e.Kind, e.Text = event.Thinking, x.Thinking
	default:
		return nil
	}
	return []event.Event{e}
}

func ask(l *wire.Line) []event.Event {
	q := l.Control()
	if q.Subtype != "can_use_tool" {
		return []event.Event{{Kind: event.Notice, Session: l.Session, Text: cmp.Or(q.Subtype, l.Type)}}
	}
	return []event.Event{{Kind: event.Question, Session: l.Session, Ask: &event.Ask{
		ID: l.RequestID, Text: cmp.Or(q.Reason, q.Description), Tool: call(wire.Block{
			ID: q.Call, Name: q.Tool, Input: q.Input,
		}),
	}}}
}

// result ends a turn. Another turn may follow when a background task wakes the agent.
func (d *decoder) result(l *wire.Line, raw []byte) []event.Event {
	var r wire.Result
	_ = json.Unmarshal(raw, &r) // a member of an unexpected type does not affect the others
	text := ""
	if r.Result != nil {
		text = *r.Result
	}
	var out []event.Event
	if d.session == "" {
		for name := range r.Models {
			if len(r.Models) == 1 {
				d.model = name
			}
		}
		out = append(out, event.Event{Kind: event.Started, Session: l.Session, Model: d.model})
	}
	for _, n := range r.Denials {
		out = append(out, d.deny(l.Session, event.Denial{CallID: n.ID, Tool: n.Tool})...)
	}
	if hash := maphash.String(d.seed, text); !r.IsError && text != "" && !d.texts[hash] {
		d.texts[hash] = true
		out = append(out, event.Event{Kind: event.Text, Session: l.Session, Text: text})
	}
	if r.IsError {
		out = append(out, event.Event{
			Kind: event.Failed, Session: l.Session, Fault: d.failure(l, r, text), Terminal: true,
		})
	}
	d.pending = nil
	return append(out, event.Event{Kind: event.Ended, Session: l.Session, End: d.end(l, r, text)})
}

func (d *decoder) failure(l *wire.Line, r wire.Result, text string) *fault.Fault {
	// With --output json there is no message with a word, so a missing login looks like a failed connection.
	api := apiFailure{Status: l.APIStatus, Type: l.APIType, Ending: r.Ending, Text: text}
	if d.pending != nil {
		api.Word = d.pending.Word
	}
	if r.Stop != nil {
		api.Stop = *r.Stop
	}
	if d.pending != nil || api.Status != 0 || api.full() || r.Ending == "api_error" {
		return api.fault()
	}
	return ended(l.Subtype, r.Ending, r.Errors)
}

// spent returns the cost of a turn: that of the models since the last result, or the increase of the total.
func (d *decoder) spent(r wire.Result) *float64 {
	if r.Cost == nil {
		return nil
	}
	cost := max(0, *r.Cost-d.cost)
	d.cost = *r.Cost
	if len(r.Since) > 0 {
		sum := 0.0
		for _, m := range r.Since {
			if m.Cost == nil {
				return &cost
			}
			sum += *m.Cost
		}
		cost = sum
	}
	return &cost
}

func (d *decoder) end(l *wire.Line, r wire.Result, text string) *event.End {
	e := &event.End{OK: !r.IsError, Structured: r.Structured, Turns: r.Turns, Reason: cmp.Or(r.Ending, l.Subtype)}
	if e.OK {
		e.Text = text
	}
	if e.Reason == "" && r.Stop != nil {
		e.Reason = *r.Stop
	}
	if r.Usage != nil {
		e.Usage = r.Usage.Usage()
		e.Usage.CostUSD = d.spent(r)
	}
	return e
}
