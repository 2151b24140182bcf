// Package yume is the flat stream-json dialect of Yume's GUI, without I/O: it encodes events and decodes lines of the
// host.
//
// It promises what that GUI relies on: one JSON object a line; init first; a call directly followed by its result; no
// two equal lines of text; no usage of zero; an error only if it ends the turn; usage, then result, then message_stop
// at every end. It makes no decisions about the conversation.
package yume

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/setting"
	"omniagent/internal/text"
)

// Encoder writes one process's stream. It gets a text in pieces and then as a whole, and writes the pieces.
type Encoder struct {
	Session string // the conversation's id; before Begin, the id that the host chose
	Mode    string // the permission mode in the host's word

	facts    event.Facts
	former   string // the id that the host chose, if the conversation has another
	begun    bool
	texts    int  // pieces of text written
	thinking bool // the last piece was thinking
	answered bool // part of an answer came
	denials  []denial
	calls    map[string]json.RawMessage // of this turn
	failure  *fault.Fault
	open     string                // the agent's own call that was written and has no result
	later    []event.Event         // held back until that result
	held     map[string]bool       // calls among them
	asked    map[string]*event.Ask // questions about those
}

type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// longestText limits the text of a line: even escaped to six times its length, it stays below the hundred thousand
// bytes at which the GUI gives up on a line that arrives in parts.
const longestText = 16 << 10

// Begin takes what is known when the conversation opens, and writes init if that is enough. Otherwise init waits for
// the agent to report its model and tools, at most until the first line after it.
func (e *Encoder) Begin(id string, f event.Facts) [][]byte {
	if e.Session != "" && e.Session != id {
		e.former = e.Session
	}
	e.Session, e.facts = id, f
	if f.Model == "" || f.Tools == nil {
		return nil
	}
	return e.init()
}

// init returns the first line. If the conversation has another id than the host chose, the next line says so.
func (e *Encoder) init() [][]byte {
	if e.begun {
		return nil
	}
	e.begun = true
	f := e.facts
	if f.Tools == nil {
		f.Tools = []string{}
	}
	line := ordered{
		{"type", "system"},
		{"subtype", "init"},
		{"session_id", e.Session},
		{"model", f.Model},
		{"cwd", f.Dir},
		{"permissionMode", e.mode()},
		{"tools", f.Tools},
	}
	if f.Walls != nil {
		line = append(line, member{"sandbox", f.Walls})
	}
	lines := encode(line)
	if e.former != "" {
		lines = append(lines, encode(ordered{
			{"type", "system"}, {"subtype", "session_id"}, {"session_id", e.Session}, {"previous_session_id", e.former},
		})...)
	}
	return lines
}

// mode returns the permission mode in the host's own word, unless another one applies: resuming a session grants
// nothing.
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
		if ev.Model != "" {
			e.facts.Model = ev.Model
		}
		return e.init()
	case event.Changed, event.TurnBegan, event.Notice, event.Retry, event.Prompted:
		return nil
	}
	return append(e.init(), e.inOrder(ev)...)
}

// inOrder holds back what comes too early.
func (e *Encoder) inOrder(ev event.Event) [][]byte {
	if e.waits(ev) {
		e.later = append(e.later, ev)
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

// waits reports whether something comes too early: while a call has no result, only that result and its sub-agent's
// events are written.
func (e *Encoder) waits(ev event.Event) bool {
	if e.open == "" {
		return false
	}
	own := ev.Parent == ""
	wait := !own && e.held[ev.Parent]
	switch ev.Kind {
	case event.Text, event.Thinking:
		wait = wait || own
	case event.ToolCall:
		if wait = wait || own; wait {
			if e.held == nil {
				e.held = map[string]bool{}
			}
			e.held[ev.Call.ID] = true
		}
	case event.ToolResult:
		wait = wait || own && ev.Result.ID != e.open
	case event.Denied:
		wait = wait || e.held[ev.Denial.CallID]
	}
	return wait
}

// release writes what was held back, up to the next call without a result.
func (e *Encoder) release() (lines [][]byte) {
	waiting := e.later
	e.later, e.held = nil, nil
	for _, ev := range waiting {
		lines = append(lines, e.inOrder(ev)...)
	}
	return lines
}

// question writes that a call waits for an answer, directly after the call, because it is not running. The question
// about a held-back call is held back as well.
func (e *Encoder) question(ask *event.Ask) [][]byte {
	if ask.Tool != nil && e.held[ask.Tool.ID] {
		if e.asked == nil {
			e.asked = map[string]*event.Ask{}
		}
		e.asked[ask.Tool.ID] = ask
		return nil
	}
	line := ordered{{"type", "system"}, {"subtype", "permission_request"}}
	if ask.Tool != nil {
		line = append(line, member{"tool_use_id", ask.Tool.ID})
	}
	options := ask.Options
	if options == nil {
		options = []string{}
	}
	return encode(append(line, member{"question_id", ask.ID}, member{"text", ask.Text}, member{"options", options}))
}

// settled forgets a question that was not written yet.
func (e *Encoder) settled(id string) {
	for call, ask := range e.asked {
		if ask.ID == id {
			delete(e.asked, call)
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
		return encode(ordered{{"type", "system"}, {"subtype", "steered"}, {"turn", ev.Turn}})
	}
	var lines [][]byte
	if e.thinking && ev.Parent == "" && ev.Kind != event.Thinking {
		e.thinking = false
		lines = encode(ordered{{"type", "thinking"}, {"is_thinking", false}, {"id", e.textID()}})
	}
	return append(lines, e.event(ev)...)
}

// Queued reports that a message for the running turn became a message of its own.
func (e *Encoder) Queued(turn int64) [][]byte {
	return append(e.init(), encode(ordered{{"type", "system"}, {"subtype", "queued"}, {"turn", turn}})...)
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
		lines := encode(of(ev, ordered{{"type", "tool_use"}, {"id", id}, {"name", ev.Call.Name}, {"input", input}}))
		if ask := e.asked[id]; ask != nil {
			delete(e.asked, id)
			lines = append(lines, e.question(ask)...)
		}
		return lines
	case event.ToolResult:
		return encode(of(ev, ordered{
			{"type", "tool_result"},
			{"tool_use_id", ev.Result.ID},
			{"content", ev.Result.Output},
			{"is_error", ev.Result.Failed},
		}))
	case event.Denied:
		input := e.calls[ev.Denial.CallID]
		if input == nil {
			input = json.RawMessage("{}")
		}
		e.denials = append(e.denials, denial{ev.Denial.Tool, ev.Denial.CallID, input})
	case event.Compacted:
		return encode(of(ev, ordered{
			{"type", "system"},
			{"subtype", "compact_boundary"},
			{"session_id", e.Session},
			{"compact_metadata", ordered{{"trigger", ev.Compaction.Trigger}, {"pre_tokens", ev.Compaction.Before}}},
		}))
	case event.Failed:
		if ev.Terminal {
			return e.fail(ev.Fault)
		}
	case event.Ended:
		return e.end(ev)
	}
	return nil
}

// text writes a piece of text or of thinking. The whole that follows is ignored.
func (e *Encoder) text(ev event.Event) (lines [][]byte) {
	if !ev.Delta {
		return nil
	}
	e.answered = true
	if ev.Kind == event.Thinking {
		e.thinking = e.thinking || ev.Parent == "" && ev.Text != ""
	}
	for piece := range pieces(ev.Text) {
		line := ordered{{"type", "text"}, {"content", piece}}
		if ev.Kind == event.Thinking {
			line = ordered{{"type", "thinking"}, {"is_thinking", true}, {"thought", piece}}
		}
		lines = append(lines, encode(of(ev, append(line, member{"id", e.textID()})))...)
	}
	return lines
}

// of marks an event of a sub-agent.
func of(ev event.Event, o ordered) ordered {
	if ev.Parent != "" {
		return append(o, member{"parent_tool_use_id", ev.Parent})
	}
	return o
}

// fail reports what ends the turn: a login that failed before any answer in its own form, anything else as an error.
func (e *Encoder) fail(f *fault.Fault) [][]byte {
	if !e.answered && f.Kind() == fault.Auth {
		return e.systemError(f)
	}
	e.failure = f
	o := ordered{{"type", "error"}, {"message", f.Sentence()}, {"code", string(f.Code)}}
	if wait := f.Wait(); wait > 0 {
		o = append(o, member{"retry_after_ms", wait.Milliseconds()})
	}
	return encode(o)
}

func (e *Encoder) systemError(f *fault.Fault) [][]byte {
	e.failure = f
	return encode(ordered{
		{"type", "system"},
		{"subtype", "error"},
		{"session_id", e.Session},
		{"message", f.Sentence()},
		{"code", string(f.Code)},
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
		lines = encode(ordered{{"type", "interrupt"}})
	}
	usage := tokens(end.Usage)
	if usage != nil {
		o := append(ordered{{"type", "usage"}}, usage...)
		if end.Usage.Estimated {
			o = append(o, member{"usage_estimated", true})
		}
		lines = append(lines, encode(o)...)
	}
	result := ordered{
		{"type", "result"},
		{"subtype", end.Reason},
		{"is_error", !end.OK},
		{"result", e.words(end)},
		{"session_id", e.Session},
	}
	if usage != nil {
		result = append(result, member{"usage", usage})
		if end.Usage.Estimated {
			result = append(result, member{"usage_estimated", true})
		}
		if end.Usage.CostUSD != nil {
			result = append(result, member{"total_cost_usd", *end.Usage.CostUSD})
		}
		result = append(result, member{"modelUsage", e.modelUsage(ev, end.Usage)})
	}
	if end.Took > 0 {
		result = append(result, member{"duration_ms", end.Took.Milliseconds()},
			member{"duration_api_ms", end.Asking.Milliseconds()})
	}
	if end.Turns != nil {
		result = append(result, member{"num_turns", *end.Turns})
	}
	if len(end.Structured) > 0 {
		result = append(result, member{"structured_output", end.Structured})
	}
	if len(e.denials) > 0 {
		result = append(result, member{"permission_denials", e.denials})
	}
	if notes := end.Notes; len(notes) > 0 || e.failure != nil {
		if e.failure != nil {
			notes = append(notes[:len(notes):len(notes)], e.failure.Sentence())
		}
		result = append(result, member{"errors", notes})
	}
	e.denials, e.failure, e.answered, e.calls, e.asked = nil, nil, false, nil, nil
	lines = append(lines, encode(result)...)
	return append(lines, encode(ordered{{"type", "message_stop"}})...)
}

// words returns what the GUI shows: for a failure only a text that begins like an error.
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
	case end.Reason == event.Cancelled:
		return "Error: interrupted"
	}
	return "Error: the turn failed"
}

// tokens returns the usage of a turn, or nil if it is unknown, since the GUI takes zero for a compaction. Cached tokens
// are not counted twice.
func tokens(u *event.Usage) ordered {
	if u == nil || u.Input+u.Output == 0 {
		return nil
	}
	o := ordered{{"input_tokens", max(u.Input-u.Cached-u.Written, 0)}, {"output_tokens", u.Output}}
	if u.Written > 0 {
		o = append(o, member{"cache_creation_input_tokens", u.Written})
	}
	if u.Cached > 0 {
		o = append(o, member{"cache_read_input_tokens", u.Cached})
	}
	return o
}

func (e *Encoder) modelUsage(ev event.Event, u *event.Usage) ordered {
	name := ev.Model
	if name == "" {
		name = e.facts.Model
	}
	o := ordered{
		{"inputTokens", max(u.Input-u.Cached-u.Written, 0)},
		{"outputTokens", u.Output},
		{"cacheReadInputTokens", u.Cached},
		{"cacheCreationInputTokens", u.Written},
		{"webSearchRequests", 0},
	}
	if u.CostUSD != nil {
		o = append(o, member{"costUSD", *u.CostUSD}, member{"costUsd", *u.CostUSD})
	}
	if e.facts.Window > 0 {
		o = append(o, member{"contextWindow", e.facts.Window})
	}
	return ordered{{name, o}}
}

// pieces splits a text between characters. An empty text has no pieces.
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

// ordered is an object whose members keep their order, because people read these lines too.
type ordered []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := write(&b, m.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := write(&b, m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func write(b *bytes.Buffer, v any) error {
	data, err := text.JSON(v)
	b.Write(data)
	return err
}

func encode(o ordered) [][]byte {
	line, err := text.Line(o)
	if err != nil {
		panic(fmt.Sprintf("a line of our own cannot be encoded: %v", err))
	}
	return [][]byte{line}
}
