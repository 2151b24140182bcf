// Package yume is the flat stream-json dialect of Yume's GUI, without I/O: it encodes events and decodes lines of the
// host.
//
// The GUI relies on this form: one JSON object a line; init first; a call directly followed by its result; no two equal
// lines of text; no usage of zero; an error only if it ends the turn; usage, result and message_stop at every end. The
// package makes no decisions about the conversation.
package yume

import (
	"cmp"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
)

// Encoder writes the stream of one process. It gets a text in pieces and then as a whole, and writes the pieces.
//
//	no call open ── ToolCall ──▶ open: other calls and texts are held back ── its ToolResult ──▶ release
//	      ▲                                                                                        │
//	      └── nothing is held ── the next held call is open again: as above ───────────────────────┘
type Encoder struct {
	Session string // the conversation's id, or before Begin the id that the host chose
	Mode    string // the permission mode in the host's word

	facts         event.Facts
	requestedID   string // the id that the host chose, if the conversation has a different one
	begun         bool
	texts         int  // pieces of text written
	thinking      bool // the last piece was thinking
	answered      bool // there was part of an answer
	denials       []denial
	calls         map[string]json.RawMessage // of this turn
	failure       *fault.Fault
	open          string                // the agent's own call that was written without a result
	heldEvents    []event.Event         // events held back until that result
	heldCalls     map[string]bool       // calls among them
	heldQuestions map[string]*event.Ask // questions about these calls
}

type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// longestText limits the text of a line. Even if escapes make it six times longer, it stays below 100,000 bytes, beyond
// which the GUI drops a line that arrives in parts.
const longestText = 16 << 10

// Begin sets the facts that are known when the conversation opens, and writes init if they suffice. Otherwise init
// waits until the agent reports its model and tools, or until the next line.
func (e *Encoder) Begin(id string, f event.Facts) [][]byte {
	if e.Session != "" && e.Session != id {
		e.requestedID = e.Session
	}
	e.Session, e.facts = id, f
	if f.Model == "" || f.Tools == nil {
		return nil
	}
	return e.init()
}

// init returns the first line. If the host chose a different id, the next line says so.
func (e *Encoder) init() [][]byte {
	if e.begun {
		return nil
	}
	e.begun = true
	f := e.facts
	if f.Tools == nil {
		f.Tools = []string{}
	}
	lines := encode(line{
		Type: "system", Subtype: "init", Session: e.Session, Model: f.Model, Dir: f.Dir, Mode: e.mode(), Tools: f.Tools,
		Sandbox: f.Walls,
	})
	if e.requestedID != "" {
		lines = append(lines,
			encode(line{Type: "system", Subtype: "session_id", Session: e.Session, Former: e.requestedID})...)
	}
	return lines
}

// mode returns the permission mode, in the host's own word if that applies. A resumed session may have a stricter mode.
func (e *Encoder) mode() string {
	if asked, ok := setting.ParseApproval(e.Mode); ok && e.facts.Mode != "" && e.facts.Mode != asked {
		return ModeWord(e.facts.Mode)
	}
	return e.Mode
}

// Event returns the lines for an event, if any. Parallel calls are written one after the other, each with its result.
func (e *Encoder) Event(ev event.Event) [][]byte {
	if ev.Facts != nil {
		e.facts.Merge(*ev.Facts)
	}
	switch ev.Kind {
	case event.Started:
		e.facts.Model = cmp.Or(ev.Model, e.facts.Model)
		return e.init()
	case event.Changed, event.TurnBegan, event.Notice, event.Retry, event.Prompted:
		return nil
	}
	return append(e.init(), e.inOrder(ev)...)
}

// inOrder holds back events that come too early.
func (e *Encoder) inOrder(ev event.Event) [][]byte {
	if e.waits(ev) {
		e.heldEvents = append(e.heldEvents, ev)
		return nil
	}
	var lines [][]byte
	switch ev.Kind {
	case event.ToolCall:
		if ev.Parent == "" {
			e.open = ev.Call.ID
		}
	case event.Ended:
		e.open = ""
		lines = e.release()
		e.open = ""
	}
	lines = append(lines, e.line(ev)...)
	if ev.Kind == event.ToolResult && ev.Result.ID == e.open {
		e.open = ""
		lines = append(lines, e.release()...)
	}
	return lines
}

// waits reports whether an event comes too early. While a call has no result, only the result and the events of its
// sub-agent are written.
func (e *Encoder) waits(ev event.Event) bool {
	if e.open == "" {
		return false
	}
	own := ev.Parent == ""
	wait := !own && e.heldCalls[ev.Parent]
	switch ev.Kind {
	case event.Text, event.Thinking:
		wait = wait || own
	case event.ToolCall:
		if wait = wait || own; wait {
			if e.heldCalls == nil {
				e.heldCalls = map[string]bool{}
			}
			e.heldCalls[ev.Call.ID] = true
		}
	case event.ToolResult:
		wait = wait || own && ev.Result.ID != e.open
	case event.Denied:
		wait = wait || e.heldCalls[ev.Denial.CallID]
	}
	return wait
}

// release writes the events that were held back, up to the next call without a result.
func (e *Encoder) release() (lines [][]byte) {
	waiting := e.heldEvents
	e.heldEvents, e.heldCalls = nil, nil
	for _, ev := range waiting {
		lines = append(lines, e.inOrder(ev)...)
	}
	return lines
}

// question reports that a call waits for an answer. It does so directly after the call, because the call is not
// running. A question about a held-back call is held back too.
func (e *Encoder) question(ask *event.Ask) [][]byte {
	if ask.Tool != nil && e.heldCalls[ask.Tool.ID] {
		if e.heldQuestions == nil {
			e.heldQuestions = map[string]*event.Ask{}
		}
		e.heldQuestions[ask.Tool.ID] = ask
		return nil
	}
	l := line{Type: "system", Subtype: "permission_request", Question: ask.ID, Text: ask.Text, Options: ask.Options}
	if ask.Tool != nil {
		l.UseID = ask.Tool.ID
	}
	if ask.Options == nil {
		l.Options = []string{}
	}
	return encode(l)
}

// settled drops a question that was not written yet.
func (e *Encoder) settled(id string) {
	for call, ask := range e.heldQuestions {
		if ask.ID == id {
			delete(e.heldQuestions, call)
		}
	}
}

func (e *Encoder) line(ev event.Event) [][]byte {
	switch ev.Kind {
	case event.Question:
		return e.question(ev.Ask)
	case event.Replied:
		e.settled(ev.Reply.Question)
		return nil
	case event.Withdrawn:
		e.settled(ev.Ask.ID)
		return nil
	case event.Steered:
		return encode(line{Type: "system", Subtype: "steered", Turn: ev.Turn})
	}
	var lines [][]byte
	if e.thinking && ev.Parent == "" && ev.Kind != event.Thinking {
		e.thinking = false
		lines = encode(line{Type: "thinking", Thinks: false, ID: e.textID()})
	}
	return append(lines, e.event(ev)...)
}

// Queued reports that a message for the running turn was queued as a separate message.
func (e *Encoder) Queued(turn int64) [][]byte {
	return append(e.init(), encode(line{Type: "system", Subtype: "queued", Turn: turn})...)
}

// textID returns a new id, so that no two lines of text are equal.
func (e *Encoder) textID() string {
	e.texts++
	return "t" + strconv.Itoa(e.texts)
}

func (e *Encoder) event(ev event.Event) [][]byte {
	switch ev.Kind {
	case event.Text, event.Thinking:
		return e.text(ev)
	case event.ToolCall:
		e.answered = true
		if e.calls == nil {
			e.calls = map[string]json.RawMessage{}
		}
		id, input := ev.Call.ID, ev.Call.Object()
		e.calls[id] = input
		lines := encode(line{Type: "tool_use", ID: id, Name: ev.Call.Name, Input: input, Parent: ev.Parent})
		if ask := e.heldQuestions[id]; ask != nil {
			delete(e.heldQuestions, id)
			lines = append(lines, e.question(ask)...)
		}
		return lines
	case event.ToolResult:
		return encode(line{
			Type: "tool_result", UseID: ev.Result.ID, Content: ev.Result.Output, IsError: ev.Result.Failed,
			Parent: ev.Parent,
		})
	case event.Denied:
		input := e.calls[ev.Denial.CallID]
		if input == nil {
			input = json.RawMessage("{}")
		}
		e.denials = append(e.denials, denial{ev.Denial.Tool, ev.Denial.CallID, input})
	case event.Compacted:
		return encode(line{
			Type: "system", Subtype: "compact_boundary", Session: e.Session, Parent: ev.Parent,
			Compaction: &compaction{ev.Compaction.Trigger, ev.Compaction.Before},
		})
	case event.Failed:
		if ev.Terminal {
			return e.fail(ev.Fault)
		}
	case event.Ended:
		return e.end(ev)
	}
	return nil
}

// text writes a piece of text or of thinking. It ignores the whole text that follows.
func (e *Encoder) text(ev event.Event) (lines [][]byte) {
	if !ev.Delta {
		return nil
	}
	e.answered = true
	if ev.Kind == event.Thinking {
		e.thinking = e.thinking || ev.Parent == "" && ev.Text != ""
	}
	for piece := range pieces(ev.Text) {
		l := line{Type: "text", Content: piece, ID: e.textID(), Parent: ev.Parent}
		if ev.Kind == event.Thinking {
			l.Type, l.Content, l.Thinks, l.Thought = "thinking", nil, true, piece
		}
		lines = append(lines, encode(l)...)
	}
	return lines
}

// fail reports the fault that ends the turn. A login that failed before any answer has its own form.
func (e *Encoder) fail(f *fault.Fault) [][]byte {
	if !e.answered && f.Kind() == fault.Auth {
		return e.systemError(f)
	}
	e.failure = f
	return encode(line{
		Type: "error", Message: f.Sentence(), Code: string(f.Code), RetryAfter: f.Wait().Milliseconds(),
	})
}

func (e *Encoder) systemError(f *fault.Fault) [][]byte {
	e.failure = f
	return encode(line{
		Type: "system", Subtype: "error", Session: e.Session, Message: f.Sentence(), Code: string(f.Code),
	})
}

// Wrong says that a line of the host was not taken. It is about no turn.
func (e *Encoder) Wrong(why error) [][]byte {
	return encode(line{
		Type: "system", Subtype: "error", Session: e.Session, Message: "a line on standard input was not taken: " +
			text.Visible(why.Error()), Code: string(fault.ArgError),
	})
}

// Refuse returns the whole stream of a conversation that cannot begin.
func (e *Encoder) Refuse(f *fault.Fault) [][]byte {
	return append(e.systemError(f), e.end(event.Event{Kind: event.Ended, End: &event.End{Reason: event.FailedTurn}})...)
}

// end returns usage, result and message_stop.
func (e *Encoder) end(ev event.Event) [][]byte {
	end := ev.End
	var lines [][]byte
	if end.Reason == event.Cancelled {
		lines = encode(line{Type: "interrupt"})
	}
	r := result{
		Type: "result", Subtype: end.Reason, IsError: !end.OK, Result: e.words(end), Session: e.Session,
		Turns: end.Turns, Structured: end.Structured, Denials: e.denials, NotKept: end.NotKept,
	}
	if usage := tokensOf(end.Usage); usage != nil {
		lines = append(lines, encode(usageLine{"usage", *usage, end.Usage.Estimated})...)
		r.Usage, r.Estimated, r.CostUSD = usage, end.Usage.Estimated, end.Usage.CostUSD
		r.Models = e.modelUsage(ev, end.Usage)
	}
	if end.Took > 0 {
		took, asking := end.Took.Milliseconds(), end.Asking.Milliseconds()
		r.Took, r.Asking = &took, &asking
	}
	if notes := end.Notes; len(notes) > 0 || e.failure != nil {
		if e.failure != nil {
			notes = append(notes[:len(notes):len(notes)], e.failure.Sentence())
		}
		r.Errors = notes
	}
	e.denials, e.failure, e.answered, e.calls, e.heldQuestions = nil, nil, false, nil, nil
	lines = append(lines, encode(r)...)
	return append(lines, encode(line{Type: "message_stop"})...)
}

// words returns the text that the GUI shows. For a failure, it must begin like an error.
func (e *Encoder) words(end *event.End) string {
	switch {
	case end.OK:
		return end.Text
	case e.failure != nil:
		return "Error: " + e.failure.Sentence()
	case end.Reason == event.MaxTurns:
		return "Error: the limit of model turns is reached"
	case end.Reason == event.MaxBudget:
		return "Error: the budget is used up"
	case end.Reason == event.MaxFormErrors:
		return "Error: no answer fits the schema"
	case end.Reason == event.Cancelled:
		return "Error: interrupted"
	}
	return "Error: the turn failed"
}

// tokensOf returns the usage of a turn, or nil if it is unknown, because the GUI reads zero as a compaction. It does
// not count cached tokens twice.
func tokensOf(u *event.Usage) *tokens {
	if u == nil || u.Input+u.Output == 0 {
		return nil
	}
	return &tokens{max(u.Input-u.Cached-u.Written, 0), u.Output, u.Written, u.Cached}
}

func (e *Encoder) modelUsage(ev event.Event, u *event.Usage) map[string]modelUsage {
	return map[string]modelUsage{cmp.Or(ev.Model, e.facts.Model): {
		Input: max(u.Input-u.Cached-u.Written, 0), Output: u.Output, Cached: u.Cached, Written: u.Written,
		CostUSD: u.CostUSD, CostUsd: u.CostUSD, Window: e.facts.Window,
	}}
}

// pieces splits a text between characters. An empty text yields nothing.
func pieces(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(s) > longestText {
			n := longestText
			for n > longestText-utf8.UTFMax && !utf8.RuneStart(s[n]) {
				n--
			}
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
		if s != "" {
			yield(s)
		}
	}
}

// line is any line except a result. Which members it has depends on its type; empty ones are left out. They are written
// in this order, because people read these lines too.
type line struct {
	Type       string       `json:"type"`
	Subtype    string       `json:"subtype,omitempty"`
	Session    any          `json:"session_id,omitempty"`
	Former     string       `json:"previous_session_id,omitempty"`
	Model      any          `json:"model,omitempty"`
	Dir        any          `json:"cwd,omitempty"`
	Mode       any          `json:"permissionMode,omitempty"`
	Tools      any          `json:"tools,omitempty"`
	Sandbox    *event.Walls `json:"sandbox,omitempty"`
	UseID      any          `json:"tool_use_id,omitempty"`
	Question   string       `json:"question_id,omitempty"`
	Text       any          `json:"text,omitempty"`
	Options    any          `json:"options,omitempty"`
	Turn       any          `json:"turn,omitempty"`
	Thinks     any          `json:"is_thinking,omitempty"`
	Thought    string       `json:"thought,omitempty"`
	Content    any          `json:"content,omitempty"`
	IsError    any          `json:"is_error,omitempty"`
	Message    any          `json:"message,omitempty"`
	Code       string       `json:"code,omitempty"`
	RetryAfter int64        `json:"retry_after_ms,omitempty"`
	ID         any          `json:"id,omitempty"`
	Name       any          `json:"name,omitempty"`
	Input      any          `json:"input,omitempty"`
	Compaction *compaction  `json:"compact_metadata,omitempty"`
	Parent     string       `json:"parent_tool_use_id,omitempty"`
}

type compaction struct {
	Trigger string `json:"trigger"`
	Before  int64  `json:"pre_tokens"`
}

type tokens struct {
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	Written int64 `json:"cache_creation_input_tokens,omitempty"`
	Cached  int64 `json:"cache_read_input_tokens,omitempty"`
}

type usageLine struct {
	Type string `json:"type"`
	tokens
	Estimated bool `json:"usage_estimated,omitempty"`
}

type modelUsage struct {
	Input    int64    `json:"inputTokens"`
	Output   int64    `json:"outputTokens"`
	Cached   int64    `json:"cacheReadInputTokens"`
	Written  int64    `json:"cacheCreationInputTokens"`
	Searches int64    `json:"webSearchRequests"`
	CostUSD  *float64 `json:"costUSD,omitempty"`
	CostUsd  *float64 `json:"costUsd,omitempty"`
	Window   int64    `json:"contextWindow,omitempty"`
}

// result is the line that ends a turn, before message_stop.
type result struct {
	Type       string                `json:"type"`
	Subtype    string                `json:"subtype"`
	IsError    bool                  `json:"is_error"`
	Result     string                `json:"result"`
	Session    string                `json:"session_id"`
	Usage      *tokens               `json:"usage,omitempty"`
	Estimated  bool                  `json:"usage_estimated,omitempty"`
	CostUSD    *float64              `json:"total_cost_usd,omitempty"`
	Models     map[string]modelUsage `json:"modelUsage,omitempty"`
	Took       *int64                `json:"duration_ms,omitempty"`
	Asking     *int64                `json:"duration_api_ms,omitempty"`
	Turns      *int                  `json:"num_turns,omitempty"`
	Structured json.RawMessage       `json:"structured_output,omitempty"`
	Denials    []denial              `json:"permission_denials,omitempty"`
	Errors     []string              `json:"errors,omitempty"`
	NotKept    []string              `json:"not_kept,omitempty"`
}

func encode(v any) [][]byte { return [][]byte{text.MustLine(v)} }
