// Package claude is Claude Code's stream-json protocol, without I/O. For hosts that were written for Claude Code, it
// encodes events, decodes the host's lines, and translates Claude Code's command line to ours. For the driver of the
// CLI itself, it has the types of its lines.
//
// The output has the shape that those hosts rely on: init at the beginning of every turn, a line for each block of an
// answer with the id of its message, a result at every end, totals for the process, a uuid on every line. A flag,
// setting or member of a request that is a limit is never ignored: it is translated, or refused by name. The package
// makes no decisions about the conversation.
package claude

import (
	"cmp"
	"encoding/json"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// Encoder writes the stream of one process. It gets a text in pieces and then as a whole. The whole becomes a line;
// pieces are only written with Partial.
//
//	between turns ── TurnBegan ──▶ due ── the agent has described itself, or a line comes ──▶ within: init is written
//	      ▲                                                                                        │
//	      └────────────────────────────── Ended: result ──────────────────────────────────────────┘
type Encoder struct {
	UUID    func() string // returns a new UUID
	Partial bool          // write pieces of answers
	Unasked bool          // deny questions
	Limits  Limits        // explain why a turn ended
	Version string        // of the program that replaces Claude Code

	session string
	facts   event.Facts
	mode    string // the last mode reported to the host, in Claude Code's word
	started bool   // the agent has described itself
	due     bool   // a turn began, and its init is not written
	within  bool   // a turn is running
	open    map[string]*message
	calls   map[string]json.RawMessage // the inputs of this turn's calls, by id
	denials []Denial
	failure *fault.Fault
	last    string // the agent's own last text
	stop    string // why the model last stopped
	cost    float64
	models  map[string]ModelTokens
	running string // the agent's own call without a result
}

// Limits are the limits that end a turn.
type Limits struct {
	Turns int
	USD   float64
}

// Know sets the facts that are known when the conversation opens. Events report changes.
func (e *Encoder) Know(id string, f event.Facts) { e.session, e.facts = id, f }

// Session returns the conversation's id.
func (e *Encoder) Session() string { return e.session }

// Facts returns the facts that are known so far.
func (e *Encoder) Facts() event.Facts { return e.facts }

// Event returns the lines for an event, if any.
func (e *Encoder) Event(ev event.Event) [][]byte {
	if ev.Facts != nil {
		e.facts.Merge(*ev.Facts)
	}
	if ev.Model != "" && ev.Parent == "" {
		e.facts.Model = ev.Model
	}
	switch ev.Kind {
	case event.Started:
		e.started = true
		if e.within {
			return e.init()
		}
		return nil
	case event.TurnBegan:
		e.begin()
		if !e.started && (e.facts.Model == "" || e.facts.Tools == nil) { // wait: the agent reports them soon
			return nil
		}
		return e.init()
	case event.Changed:
		return e.Status()
	case event.Notice, event.Prompted, event.Replied, event.Withdrawn: // they may come between turns
		return nil
	}
	e.begin()
	return append(e.init(), e.event(ev)...)
}

// begin notes that a turn is running.
func (e *Encoder) begin() {
	if !e.within {
		e.within, e.due, e.last, e.stop = true, true, "", ""
	}
}

// init returns the first line of a turn.
func (e *Encoder) init() [][]byte {
	if !e.due {
		return nil
	}
	e.due, e.started = false, true
	f := e.facts
	e.mode = Word(f.Mode, e.Unasked)
	line := Init{
		Type: "system", Subtype: "init", Dir: f.Dir, Session: e.session, Tools: nonNil(f.Tools),
		Servers: []Server{}, Model: f.Model, Mode: e.mode,
		Commands: nonNil(f.Commands), KeySource: "none", Version: e.Version, Style: "default",
		Helpers: nonNil(f.Helpers),
		Skills:  []string{}, Plugins: []string{}, Agent: f.Agent, Provider: f.Provider, Identifier: e.UUID(),
	}
	for _, s := range f.Servers {
		line.Servers = append(line.Servers, Server(s))
	}
	if f.Walls != nil {
		line.Sandbox = f.Walls
	}
	return [][]byte{encode(line)}
}

func (e *Encoder) event(ev event.Event) [][]byte {
	switch ev.Kind {
	case event.Text, event.Thinking:
		return e.message(ev.Parent).add(e, ev)
	case event.Answered:
		return e.answered(ev)
	case event.ToolCall:
		return e.call(ev)
	case event.ToolResult:
		lines := e.shut(ev.Parent, false)
		if e.running == ev.Result.ID && !ev.Synthetic { // otherwise the turn ended while it ran
			e.running = ""
		}
		return append(lines,
			e.line(messageLine{Type: "user", Parent: parent(ev.Parent), Message: userMessage{"user", []any{
				resultBlock{ev.Result.ID, "tool_result", ev.Result.Output, ev.Result.Failed},
			}}}))
	case event.Denied:
		d := ev.Denial
		input := e.calls[d.CallID]
		if input == nil {
			input = json.RawMessage("{}")
		}
		e.denials = append(e.denials, Denial{d.Tool, d.CallID, input})
		if d.ByUser {
			return nil
		}
		return [][]byte{e.system(system{Subtype: "permission_denied", Tool: d.Tool, Call: d.CallID, Message: d.Reason})}
	case event.Question:
		return e.shut(ev.Parent, false)
	case event.Steered:
		return nil
	case event.Compacted:
		shortened := &compactLine{ev.Compaction.Trigger, ev.Compaction.Before}
		return [][]byte{e.system(system{Subtype: "compact_boundary", Compact: shortened})}
	case event.Retry:
		r := ev.Retry
		s := system{
			Subtype: "api_retry", Attempt: r.Attempt, Most: r.Of, Delay: new(r.After.Milliseconds()),
			Error: "server_error",
		}
		if r.Status != 0 {
			s.Code = &r.Status
		}
		return [][]byte{e.system(s)}
	case event.Failed:
		if ev.Terminal {
			return e.fail(ev.Fault)
		}
	case event.Ended:
		return e.end(ev)
	}
	return nil
}

// call returns a block of the current answer.
func (e *Encoder) call(ev event.Event) [][]byte {
	c := ev.Call
	input := c.Object()
	if e.calls == nil {
		e.calls = map[string]json.RawMessage{}
	}
	e.calls[c.ID] = input
	if ev.Parent == "" {
		e.running = c.ID
	}
	return e.message(ev.Parent).addCall(e, callBlock{"tool_use", c.ID, c.Name, input})
}

// answered handles the end of an answer, which only calls can follow.
func (e *Encoder) answered(ev event.Event) [][]byte {
	m, found := e.open[ev.Parent]
	if !found { // none of it was written yet
		m = e.message(ev.Parent)
	}
	m.model = cmp.Or(ev.Model, m.model)
	if a := ev.Answer; a != nil {
		m.reason = reason(a.Reason)
		if a.Usage != nil {
			m.usage = count(a.Usage)
		}
		if ev.Parent == "" {
			e.stop = m.reason
		}
	}
	return append(m.flush(e, false), m.close(e)...)
}

// Status reports the current mode if the host does not know it.
func (e *Encoder) Status() [][]byte {
	now := Word(e.facts.Mode, e.Unasked)
	if e.facts.Mode == "" || now == e.mode {
		return nil
	}
	e.mode = now
	return [][]byte{e.system(system{Subtype: "status", Status: []byte("null"), Mode: now})}
}

// Became reports the state of a message for the running turn: started, or queued.
func (e *Encoder) Became(message, state string) []byte {
	return encode(struct {
		Type       string `json:"type"`
		Message    string `json:"command_uuid"`
		State      string `json:"state"`
		Session    string `json:"session_id"`
		Identifier string `json:"uuid"`
	}{"command_lifecycle", message, state, e.session, e.UUID()})
}

// Repeat repeats a message of the host.
func (e *Encoder) Repeat(message []byte) []byte {
	return e.line(messageLine{Type: "user", Message: rawMessage(message), Replay: true})
}

// line completes a messageLine.
func (e *Encoder) line(s messageLine) []byte {
	s.Session, s.Identifier = e.session, e.UUID()
	return encode(s)
}

func (e *Encoder) system(s system) []byte {
	s.Type, s.Session, s.Identifier = "system", e.session, e.UUID()
	return encode(s)
}

func parent(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

// count converts a usage to the counts of the Messages API.
func count(u *event.Usage) Tokens {
	if u == nil {
		return Tokens{}
	}
	return Tokens{Input: max(u.Input-u.Cached-u.Written, 0), Written: u.Written, Cached: u.Cached, Output: u.Output}
}

// reason returns the Messages API's word for why a model stopped, or "".
func reason(word string) string {
	switch strings.ToLower(word) {
	case "tool_calls", "tool_use", "function_call":
		return "tool_use"
	case "stop", "end_turn", "completed":
		return "end_turn"
	case "length", "max_tokens", "max_output_tokens":
		return "max_tokens"
	}
	return word
}
