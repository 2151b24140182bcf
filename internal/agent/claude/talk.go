package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/ident"
	wire "omniagent/internal/proto/claude"
	"omniagent/internal/setting"
)

// talk is both sides of the stdio protocol: the lines of stream-json, and requests that go either way.
type talk struct {
	*decoder
	o    options
	step cli.Step

	ready   bool // messages need not wait for the answer to the greeting
	greeted bool // the greeting was answered
	hooking bool // our own hook is registered
	failed  *fault.Fault
	message []byte // waits for that
	asked   string // the id of the message that has no result yet
	begun   bool   // the CLI has taken it up
	told    bool   // the CLI tells when it takes up messages
	stops   bool   // the turn is to end
	mode    setting.Approval
	facts   *wire.Init
	steers  []steer
	partial *event.End // of a turn that goes on, since the CLI has yet to take up a steer

	sent      int
	requests  map[string]request // ours, without a response
	questions cli.Questions[asking]
	needs     map[string]string // hook callbacks by request, and the moment

	// Of the message that is told in pieces:
	pieces strings.Builder // of the block that was begun last
	held   []event.Event
	answer *event.Answer
	model  string
}

// options are what a conversation is opened with.
type options struct {
	mode    setting.Approval
	hooks   bool
	servers []string // that live in the host
	helpers []agent.Helper
	sandbox bool
	id      func() string // of messages
}

// request is one of ours.
type request struct {
	greeting bool
	stop     bool
	change   *agent.Change // of a part of it
	token    int
	more     []byte // what is said once it was taken
}

// asking is a request of the CLI that a person has to answer.
type asking struct {
	request     string
	kind        string // of the request
	call        *event.Call
	input       json.RawMessage
	suggestions []wire.Update
	form        event.Form
}

var _ cli.Proto = (*talk)(nil)

func newTalk(o options) *talk {
	if o.id == nil {
		o.id = ident.UUID
	}
	t := &talk{
		decoder: newDecoder(), o: o, mode: o.mode,
		requests: map[string]request{}, needs: map[string]string{},
	}
	t.decoder.talk = t
	return t
}

// Begin greets. Messages wait for the answer where something stands in the greeting that has to hold: a CLI that did
// not take it would run without. Hooks make its start slower, so they are registered where they are needed only.
func (t *talk) Begin() cli.Step {
	var names []agent.MomentName
	if t.o.hooks || keptByUs(t.mode) {
		names = append(names, agent.BeforeTool)
		t.hooking = true
	}
	if t.o.hooks {
		names = append(names, agent.AfterTool, agent.AfterFailure, agent.MessageComes, agent.SessionBegins,
			agent.SessionEnds, agent.TurnEnds,
			agent.HelperBegins, agent.HelperEnds, agent.Shortening)
	}
	greeting := &wire.Greeting{Hooks: map[string][]wire.HookMatcher{}, Servers: t.o.servers}
	for _, name := range names {
		greeting.Hooks[string(name)] = []wire.HookMatcher{{IDs: []string{string(name)}}}
	}
	if len(t.o.helpers) > 0 {
		greeting.Helpers = map[string]wire.Helper{}
	}
	for _, h := range t.o.helpers {
		greeting.Helpers[h.Name] = wire.Helper{
			Description: h.Description, Prompt: h.Prompt, Tools: h.Tools,
			Model: h.Model,
		}
	}
	t.ready = len(names) == 0 && len(t.o.servers) == 0 && len(t.o.helpers) == 0
	t.say(t.control(request{greeting: true}, wire.Control{Subtype: "initialize", Greeting: greeting}))
	return t.done()
}

// keptByUs says whether a mode is kept by our own hook.
func keptByUs(m setting.Approval) bool { return m == setting.AskAll || m == setting.DenyAll }

// done is what came together, and begins anew.
func (t *talk) done() cli.Step {
	step := t.step
	t.step = cli.Step{}
	return step
}

func (t *talk) say(line []byte) { t.step.Lines = append(t.step.Lines, append(line, '\n')) }

func (t *talk) control(r request, what wire.Control) []byte {
	t.sent++
	id := fmt.Sprintf("omniagent-%d", t.sent)
	t.requests[id] = r
	return wire.Ask(id, what)
}

func (t *talk) respond(id string, response any) { t.say(wire.OK(id, response)) }

func (t *talk) reject(id, why string) { t.say(wire.No(id, why)) }

// Feed takes the next bytes.
func (t *talk) Feed(data []byte) cli.Step {
	t.step.Events = append(t.step.Events, t.decoder.Feed(data)...)
	return t.done()
}

// Ready says whether the CLI has answered the greeting, or failed to.
func (t *talk) Ready() bool { return t.greeted }

// End reads what is left.
func (t *talk) End(x agent.Exit) []event.Event {
	out := append(t.release(), t.decoder.End(x)...)
	// That of the decoder is left out: it counts no messages.
	out = slices.DeleteFunc(out, func(e event.Event) bool { return e.Kind == event.Ended && e.Synthetic })
	out = append(out, t.questions.WithdrawAll()...)
	switch {
	case t.partial != nil:
		out = append(out, event.Event{Kind: event.Ended, Session: t.session, End: t.partial})
	case t.asked != "":
		end := &event.End{Reason: event.FailedTurn}
		out = append(out, event.Event{Kind: event.Ended, Session: t.session, Synthetic: true, End: end})
	}
	t.asked, t.partial = "", nil
	return out
}

// Know adds what the CLI has told.
func (t *talk) Know(f *event.Facts) {
	f.Mode = t.mode
	if t.facts == nil {
		return
	}
	f.Model, f.Tools, f.Helpers = t.facts.Model, t.facts.Tools, t.facts.Helpers
	if t.facts.Version != "" {
		f.Version = t.facts.Version
	}
	f.Servers = nil
	for _, s := range t.facts.Servers {
		f.Servers = append(f.Servers, event.Server(s))
	}
	f.Servers = cli.SortServers(f.Servers)
}

// read looks at a line before, and behind, the decoder.
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
			_ = json.Unmarshal(raw, t.facts) // a member of an odd type leaves the others readable
		}
		t.heardMode(l.Mode)
		if l.Subtype == "status" {
			return nil // it works
		}
		return append(t.release(), t.goesOn(t.decoder.read(l, raw))...)
	case "assistant":
		return t.whole(l, t.decoder.read(l, raw))
	case "result":
		return append(t.release(), t.result(l, raw)...)
	}
	return append(t.release(), of(l, t.decoder.read(l, raw))...)
}

// of names the sub-agent that it happened to.
func of(l *wire.Line, events []event.Event) []event.Event {
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

// result ends a turn: that of the message if the CLI has taken it up, else one that nobody asked for.
func (t *talk) result(l *wire.Line, raw []byte) []event.Event {
	var r struct {
		Origin struct {
			Kind string `json:"kind"`
		} `json:"origin"`
	}
	_ = json.Unmarshal(raw, &r)
	unasked := t.asked == "" || !t.begun && (t.told || r.Origin.Kind == "task-notification") && r.Origin.Kind != ""
	events := t.decoder.read(l, raw)
	for i := range events {
		if events[i].Kind == event.Ended {
			events[i].Unasked = unasked
		}
	}
	if !unasked {
		events = t.conclude(events)
	}
	return append(t.questions.WithdrawAll(), events...)
}

// piece hears of a message while it is made.
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

// whole tells of a message what its pieces have not. Its calls wait until all of it is there.
func (t *talk) whole(l *wire.Line, events []event.Event) []event.Event {
	if l.ParentTool != "" || t.answer == nil {
		return of(l, events)
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

// release tells of calls that waited.
func (t *talk) release() []event.Event {
	out := t.held
	t.held = nil
	return out
}
