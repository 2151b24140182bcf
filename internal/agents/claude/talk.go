package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	wire "omniagent/internal/wire/claude"
)

// talk implements the client's side of the CLI's stdio protocol: lines of stream-json, and requests in both directions.
//
//	Begin ──► greeting ──► its answer: ready ──► idle ◄────────────────────── result: Ended ──┐
//	              │ error                         │ message                                   │
//	              ▼                               ▼                                           │
//	           failed: no message is sent      sent ──► started: steer, interrupt, questions ─┘
//
// A result that comes before the message was started ends a turn that no message began, such as that of a background
// task.
type talk struct {
	*decoder
	o    talkOptions
	step live.Step

	ready      bool // messages do not wait for the answer to the greeting
	greeted    bool // the greeting was answered
	hooking    bool // our own hook is registered
	failed     *fault.Fault
	message    []byte // waits for the answer to the greeting
	current    string // id of the message without a result yet
	started    bool   // the CLI has started it
	lifecycles bool   // the CLI reports when it starts messages
	stops      bool   // the turn was asked to end
	mode       setting.Approval
	facts      *wire.Init
	steers     []steer
	partial    *event.End // of a turn that continues because the CLI has yet to start a steer

	sent      int
	requests  map[string]ownRequest // our requests without a response
	questions live.Questions[question]
	always    map[string]bool // calls that a person has allowed from now on, as named by exactly
	needs     map[string]need // requests for the host, by id

	// The message that is arriving in pieces:
	pieces strings.Builder // the current block
	held   []event.Event   // calls that wait until the message is complete
	answer *event.Answer
	model  string
}

// talkOptions are the terms with which a conversation is opened.
type talkOptions struct {
	mode    setting.Approval
	hooks   bool
	servers []string // those that live in the host
	helpers []agent.Helper
	sandbox bool
	asks    bool          // also with yolo: a person asked for the sandbox
	id      func() string // generates ids of messages
}

// ownRequest is a request that we sent. Its response matters for the greeting and for changes.
type ownRequest struct {
	greeting bool
	change   *agent.Change // or part of one
	token    int
	next     []byte // the request for the other part
}

// question is a request of the CLI that a person has to answer.
type question struct {
	request     string
	kind        string // of the request
	call        *event.Call
	input       json.RawMessage
	suggestions []wire.Update
	form        event.Form
}

// need is a request of the CLI that the host has to answer.
type need struct {
	moment  agent.MomentName
	message json.RawMessage // if not a moment: the id of a message for an MCP server
}

var _ live.Proto = (*talk)(nil)

func newTalk(o talkOptions) *talk {
	if o.id == nil {
		o.id = ident.UUID
	}
	t := &talk{
		decoder: newDecoder(), o: o, mode: o.mode, requests: map[string]ownRequest{}, needs: map[string]need{},
	}
	t.decoder.talk = t
	return t
}

// Begin sends the greeting. If it contains terms, messages wait for the answer, because a CLI that rejects the terms
// would work without them. Hooks slow down the start, so they are only registered if needed.
func (t *talk) Begin() live.Step {
	var names []agent.MomentName
	switch {
	case t.o.hooks:
		names = wire.Moments()
	case hookKeeps(t.mode):
		names = []agent.MomentName{agent.BeforeTool}
	}
	t.hooking = len(names) > 0
	greeting := &wire.Greeting{Hooks: map[string][]wire.HookMatcher{}, Servers: t.o.servers}
	for _, name := range names {
		greeting.Hooks[string(name)] = []wire.HookMatcher{{IDs: []string{string(name)}}}
	}
	if len(t.o.helpers) > 0 {
		greeting.Helpers = map[string]wire.Helper{}
	}
	for _, h := range t.o.helpers {
		greeting.Helpers[h.Name] = wire.Helper{
			Description: h.Description, Prompt: h.Prompt, Tools: h.Tools, Model: h.Model,
		}
	}
	t.ready = len(names) == 0 && len(t.o.servers) == 0 && len(t.o.helpers) == 0
	t.say(t.control(ownRequest{greeting: true}, wire.Control{Subtype: "initialize", Greeting: greeting}))
	return t.step.Take()
}

// hookKeeps reports whether our own hook enforces a mode.
func hookKeeps(m setting.Approval) bool { return m == setting.AskAll || m == setting.DenyAll }

func (t *talk) say(line []byte) { t.step.Lines = append(t.step.Lines, append(line, '\n')) }

func (t *talk) control(r ownRequest, what wire.Control) []byte {
	t.sent++
	id := fmt.Sprintf("omniagent-%d", t.sent)
	t.requests[id] = r
	return wire.Ask(id, what)
}

func (t *talk) respond(id string, response any) { t.say(wire.OK(id, response)) }

func (t *talk) reject(id, why string) { t.say(wire.No(id, why)) }

func (t *talk) interrupt() { t.say(t.control(ownRequest{}, wire.Control{Subtype: "interrupt"})) }

// Feed takes the next bytes.
func (t *talk) Feed(data []byte) live.Step {
	t.step.Events = append(t.step.Events, t.decoder.Feed(data)...)
	return t.step.Take()
}

// Ready reports whether the CLI has accepted or rejected the greeting.
func (t *talk) Ready() bool { return t.greeted }

// End reads the rest of the output. It drops the decoder's synthetic end, because the decoder does not count messages.
func (t *talk) End(x agent.Exit) []event.Event {
	out := append(t.release(), t.decoder.End(x)...)
	out = slices.DeleteFunc(out, func(e event.Event) bool { return e.Kind == event.Ended && e.Synthetic })
	out = append(out, t.questions.WithdrawAll()...)
	switch {
	case t.partial != nil:
		out = append(out, event.Event{Kind: event.Ended, Session: t.session, End: t.partial})
	case t.current != "":
		out = append(out, cli.Unfinished(t.session, ""))
	}
	t.current, t.partial = "", nil
	return out
}

// AddFacts adds the facts that the CLI has reported.
func (t *talk) AddFacts(f *event.Facts) {
	f.Mode = t.mode
	if t.facts == nil {
		return
	}
	f.Model, f.Tools, f.Helpers = t.facts.Model, t.facts.Tools, t.facts.Helpers
	f.Commands = t.facts.Commands
	f.Version = cmp.Or(t.facts.Version, f.Version)
	f.Servers = nil
	for _, s := range t.facts.Servers {
		f.Servers = append(f.Servers, event.Server(s))
	}
	f.Servers = live.SortServers(f.Servers)
}

// read reads a line, with the decoder's help.
func (t *talk) read(l *wire.Line, raw []byte) []event.Event {
	switch l.Type {
	case "control_request":
		return append(t.release(), t.requested(l)...)
	case "control_response":
		return t.answered(raw)
	case "control_cancel_request":
		return t.withdrawn(l.RequestID)
	case "command_lifecycle":
		return t.lifecycle(l)
	case "keep_alive":
		return nil
	case "stream_event":
		return t.piece(l, raw)
	case "system":
		if l.Subtype == "init" {
			t.facts = &wire.Init{}
			_ = json.Unmarshal(raw, t.facts) // a member of an unexpected type does not affect the others
		}
		t.modeChanged(l.Mode)
		if l.Subtype == "status" {
			return nil
		}
		return append(t.release(), t.continued(t.decoder.read(l, raw))...)
	case "assistant":
		return t.whole(l, t.decoder.read(l, raw))
	case "result":
		return append(t.release(), t.result(l, raw)...)
	}
	return append(t.release(), withParent(l, t.decoder.read(l, raw))...)
}

// withParent marks events of a sub-agent with the call that started it.
func withParent(l *wire.Line, events []event.Event) []event.Event {
	if l.ParentTool == "" {
		return events
	}
	for i := range events {
		events[i].Parent = l.ParentTool
		if l.Type == "assistant" && events[i].Kind == event.Notice && events[i].Text != "" {
			events[i].Kind = event.Text
		}
	}
	return events
}

// result ends the turn of the message, if the CLI has started it, or else a turn that no message began.
func (t *talk) result(l *wire.Line, raw []byte) []event.Event {
	var r struct {
		Origin struct {
			Kind string `json:"kind"`
		} `json:"origin"`
	}
	_ = json.Unmarshal(raw, &r)
	unasked := t.current == "" ||
		!t.started && (t.lifecycles || r.Origin.Kind == "task-notification") && r.Origin.Kind != ""
	events := t.decoder.read(l, raw)
	for i := range events {
		if events[i].Kind == event.Ended {
			events[i].Unprompted = unasked
		}
	}
	if !unasked {
		events = t.conclude(events)
	}
	return append(t.questions.WithdrawAll(), events...)
}

// piece reads a piece of a message.
func (t *talk) piece(l *wire.Line, raw []byte) []event.Event {
	if l.ParentTool != "" {
		return nil
	}
	switch l.Event.Type {
	case "content_block_delta":
		events := delta(l)
		for _, e := range events {
			t.pieces.WriteString(e.Text)
		}
		return events
	case "content_block_start":
		t.pieces.Reset()
	case "message_start", "message_delta":
		var m struct {
			Event struct {
				Message struct{ ID, Model string } `json:"message"`
				Delta   struct {
					Reason string `json:"stop_reason"`
				} `json:"delta"`
				Usage wire.Tokens `json:"usage"`
			} `json:"event"`
		}
		if json.Unmarshal(raw, &m) != nil {
			return nil
		}
		if l.Event.Type == "message_start" {
			out := t.release()
			t.answer, t.model = &event.Answer{ID: m.Event.Message.ID}, m.Event.Message.Model
			return out
		}
		if t.answer == nil {
			return nil
		}
		t.answer.Reason, t.answer.Usage = m.Event.Delta.Reason, m.Event.Usage.Usage()
		whole := event.Event{Kind: event.Answered, Session: l.Session, Model: t.model, Answer: t.answer}
		t.answer = nil
		return append([]event.Event{whole}, t.release()...)
	}
	return nil
}

// whole returns those events of a message that its pieces have not reported. It holds calls back until the message is
// complete.
func (t *talk) whole(l *wire.Line, events []event.Event) []event.Event {
	if l.ParentTool != "" || t.answer == nil {
		return withParent(l, events)
	}
	var out []event.Event
	for _, e := range events {
		switch {
		case e.Kind == event.ToolCall:
			e.Raw = bytes.Clone(e.Raw)
			t.held = append(t.held, e)
		case e.Text == "" || e.Text != t.pieces.String():
			out = append(out, e)
		}
	}
	return out
}

// release returns the calls that were held back.
func (t *talk) release() []event.Event {
	out := t.held
	t.held = nil
	return out
}
