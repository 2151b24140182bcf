// Package claude is Claude Code's stream-json, without I/O and for both of its sides. Towards hosts that were written
// for Claude Code: events in, lines out; lines of the host in, frames out; and Claude Code's command line in our own
// words. Towards the CLI itself: the types of its lines, which its driver reads and answers.
//
// It promises the shapes that those hosts rely on: init at the beginning of every turn, a line for each block of an
// answer, all of which share the id of its message, a result at every end, totals over the process, a uuid on every
// line. It promises that no flag, no setting and no member of a request that limits what may happen is passed over: it
// is translated, or refused by name. It refuses to decide anything about the conversation.
package claude

import (
	"encoding/json"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// Encoder writes one process's stream. It takes events as a conversation tells them: a text in pieces and then as a
// whole. The whole is a line; the pieces are written with Partial.
type Encoder struct {
	UUID    func() string // a new one at each call
	Partial bool          // pieces of answers are told as they come
	Unasked bool          // what would be asked about is denied
	Limits  Limits        // for the words of a turn that they ended
	Version string        // of what stands in for Claude Code

	session string
	facts   event.Facts
	mode    string // the last that the host was told, in Claude Code's word
	started bool   // the agent has told of itself what it tells
	due     bool   // a turn began, and its init is not written
	within  bool   // a turn runs
	open    map[string]*message
	calls   map[string]called
	denials []Denial
	failure *fault.Fault
	last    string // what the agent itself said last
	stop    string // why the model stopped last
	cost    float64
	models  map[string]ModelTokens
	running string // the call of the agent itself that has no result
}

// Limits are those that end a turn.
type Limits struct {
	Turns int
	USD   float64
}

type called struct {
	name  string
	input json.RawMessage
}

// Know takes what is known of the conversation when it is open. Events tell what becomes different.
func (e *Encoder) Know(id string, f event.Facts) { e.session, e.facts = id, f }

// Session is the conversation's id.
func (e *Encoder) Session() string { return e.session }

// Facts are what was told so far.
func (e *Encoder) Facts() event.Facts { return e.facts }

// Event is what an event looks like: no line, or several.
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
		if !e.started && (e.facts.Model == "" || e.facts.Tools == nil) { // the agent tells them soon
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

// begin notes that a turn runs.
func (e *Encoder) begin() {
	if !e.within {
		e.within, e.due, e.last, e.stop = true, true, "", ""
	}
}

// init is the first line of a turn.
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
		Commands: []string{}, KeySource: "none", Version: e.Version, Style: "default", Helpers: nonNil(f.Helpers),
		Skills: []string{}, Plugins: []string{},
		Agent: f.Agent, Provider: f.Provider, Identifier: e.UUID(),
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
		if e.running == ev.Result.ID && !ev.Synthetic { // else the turn ended while it ran
			e.running = ""
		}
		return append(lines, e.line(said{Type: "user", Parent: parent(ev.Parent), Message: userMessage{"user", []any{
			resultBlock{ev.Result.ID, "tool_result", ev.Result.Output, ev.Result.Failed},
		}}}))
	case event.Denied:
		d := ev.Denial
		input := e.calls[d.CallID].input
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
		return [][]byte{e.system(system{Subtype: "compact_boundary", Compact: &compactLine{
			ev.Compaction.Trigger,
			ev.Compaction.Before,
		}})}
	case event.Retry:
		r := ev.Retry
		wait := r.After.Milliseconds()
		s := system{Subtype: "api_retry", Attempt: r.Attempt, Most: r.Of, Delay: &wait, Error: "server_error"}
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

// call is a block of the answer that is being told.
func (e *Encoder) call(ev event.Event) [][]byte {
	c := ev.Call
	input := c.Object()
	if e.calls == nil {
		e.calls = map[string]called{}
	}
	e.calls[c.ID] = called{c.Name, input}
	if ev.Parent == "" {
		e.running = c.ID
	}
	return e.message(ev.Parent).addCall(e, callBlock{"tool_use", c.ID, c.Name, input})
}

// answered says how an answer ended, of which only calls can follow.
func (e *Encoder) answered(ev event.Event) [][]byte {
	m, found := e.open[ev.Parent]
	if !found { // there is nothing of it yet
		m = e.message(ev.Parent)
	}
	if ev.Model != "" {
		m.model = ev.Model
	}
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

// Status says which mode holds now, where that is news.
func (e *Encoder) Status() [][]byte {
	now := Word(e.facts.Mode, e.Unasked)
	if e.facts.Mode == "" || now == e.mode {
		return nil
	}
	e.mode = now
	return [][]byte{e.system(system{Subtype: "status", Status: []byte("null"), Mode: now})}
}

// Became says of a message that was to reach the turn that runs what became of it: started, or queued.
func (e *Encoder) Became(message, state string) []byte {
	return encode(struct {
		Type       string `json:"type"`
		Message    string `json:"command_uuid"`
		State      string `json:"state"`
		Session    string `json:"session_id"`
		Identifier string `json:"uuid"`
	}{"command_lifecycle", message, state, e.session, e.UUID()})
}

// Repeat is a message of the host as it came, which the host hears again.
func (e *Encoder) Repeat(message []byte) []byte {
	return e.line(said{Type: "user", Message: rawMessage(message), Replay: true})
}

// line completes a line of one side.
func (e *Encoder) line(s said) []byte {
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

// count are tokens as the Messages API counts them.
func count(u *event.Usage) Tokens {
	if u == nil {
		return Tokens{}
	}
	return Tokens{Input: max(u.Input-u.Cached-u.Written, 0), Written: u.Written, Cached: u.Cached, Output: u.Output}
}

// reason is why a model stopped, in the Messages API's word where that is known.
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
