package acpclient

import (
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
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// talk is the client's side of the Agent Client Protocol.
//
//	Begin ──► initialize ──► session/new, load, resume or fork ──► mode, model ──► idle
//	                          │ a login is missing, or refused                      │ message
//	                          ▼                                                     ▼
//	                        failed                            Ended ◄── session/prompt: updates, questions
//
// Version 1 ends the turn with the answer to session/prompt, version 2 with a state that is idle.
type talk struct {
	live.RPC[ownRequest, question]
	o       terms
	agent   acp.Agent
	greeted bool
	failed  *fault.Fault // why no session could be opened
	offer   acp.Offer
	loaded  bool // an existing session was loaded; the agent repeats its messages
	open    bool // the session accepts messages
	message []event.Block
	busy    bool   // a message's turn has not ended
	begun   bool   // the agent has begun to work on it
	stops   bool   // the agent was asked to end the turn
	last    string // the last piece of text
	pieces  int    // of text since the last call
	plan    string

	calls     map[string]*toolCall // of this turn
	order     []string             // their ids
	terminals map[string]*acp.Terminal
	chores    map[string]json.RawMessage // ids of requests that the host carries out
	granted   map[string]bool            // commands and files that a person allowed in this turn
	facts     event.Facts
	spent     *acp.Spent   // in this turn; nil if nothing is known
	sum       *event.Usage // in the turns before, if what is known are sums; nil if that is not known
	cost      *float64     // of the session so far
	before    float64      // cost before this turn
}

// terms are the terms with which a conversation is opened.
type terms struct {
	Agent
	name, login string
	dir         string
	resume      string
	fork        bool
	mode        setting.Approval
	plan        bool // the agent must have a mode of its own that changes nothing
	model       string
	servers     []acp.Server
	recorded    func(session string) *event.Usage // Agent.Recorded in the agent's environment
}

// ownRequest is a request that we sent.
type ownRequest struct {
	method string
	token  int // if it is a change
}

var _ live.Proto = (*talk)(nil)

func newTalk(o terms) *talk {
	t := &talk{
		o: o, calls: map[string]*toolCall{}, terminals: map[string]*acp.Terminal{},
		chores: map[string]json.RawMessage{}, granted: map[string]bool{},
	}
	t.Handle(t.answered, t.requested, t.notified)
	return t
}

// Begin sends the greeting.
func (t *talk) Begin() live.Step {
	t.send("initialize", acp.Hello("omniagent", "1", t.o.Offered))
	return t.Step.Take()
}

func (t *talk) send(method string, params any) {
	t.Request(ownRequest{method: method}, method, params)
}

// Ready reports whether the agent has answered the greeting.
func (t *talk) Ready() bool { return t.greeted }

// End reads the rest of the output.
func (t *talk) End(agent.Exit) []event.Event {
	out := t.Rest()
	if t.busy {
		t.busy = false
		out = append(out, cli.Unfinished(t.offer.Session, ""))
	}
	return out
}

// AddFacts adds the facts that the agent has reported.
func (t *talk) AddFacts(f *event.Facts) {
	f.Mode = t.o.mode
	f.Merge(t.facts)
	f.Model = cmp.Or(t.offer.Model, f.Model)
}

// answered handles a response to one of our requests.
func (t *talk) answered(r ownRequest, m jsonrpc.Message) []event.Event {
	switch {
	case r.token != 0:
		return t.changed(r, m)
	case m.Error != nil:
		return t.refused(r.method, m.Error)
	}
	switch r.method {
	case "initialize":
		return t.greet(m.Result)
	case "session/prompt":
		return t.prompted(m.Result)
	case "session/new", "session/load", "session/resume", "session/fork":
		if t.offer.Read(m.Result); t.offer.Session == "" {
			t.offer.Session = t.o.resume
		}
		t.loaded = r.method == "session/load"
		return t.opened()
	}
	t.offer.Read(m.Result) // an option was set
	return t.opened()
}

// greet handles the answer to the greeting, and opens the session.
func (t *talk) greet(result json.RawMessage) []event.Event {
	var ok bool
	if t.agent, ok = acp.ReadAgent(result); !ok {
		return t.fail(fault.New(fault.AgentRefused, "%s speaks an unknown version of the Agent Client Protocol",
			t.o.name))
	}
	t.greeted = true
	t.facts.Version = t.agent.About.Version
	method := "session/new"
	switch {
	case t.o.resume == "":
	case t.o.fork && t.agent.Fork:
		method = "session/fork"
	case t.o.fork:
		return t.fail(fault.New(fault.Unsupported, "%s cannot fork a session", t.o.name))
	case t.agent.Resume:
		method = "session/resume"
	case t.agent.Load:
		method = "session/load"
	default:
		return t.fail(fault.New(fault.Unsupported, "%s cannot resume sessions over its protocol", t.o.name))
	}
	if !t.agent.HTTP && slices.ContainsFunc(t.o.servers, func(s acp.Server) bool { return s.URL != "" }) {
		return t.fail(fault.New(fault.Unsupported, "%s does not support MCP servers with an address", t.o.name))
	}
	t.send(method, t.agent.Opening(t.o.resume, t.o.dir, t.o.servers))
	return nil
}

// opened sets the options that differ from those requested, one at a time, and then opens the session for messages.
func (t *talk) opened() []event.Event {
	if t.open {
		return nil
	}
	mode, found := harmlessMode(t.offer.Modes)
	switch {
	case t.o.mode == setting.Plan && found && t.offer.Mode != mode:
		t.offer.Mode = mode // not every response repeats it
		t.send(t.offer.SetMode(mode))
		return nil
	case t.o.plan && !found:
		return t.fail(fault.New(fault.Unsupported, "%s has no mode in which it changes nothing", t.o.name))
	case t.o.model != "" && t.o.model != t.offer.Model:
		if !slices.ContainsFunc(t.offer.Models, func(c acp.Choice) bool { return c.ID == t.o.model }) {
			return t.fail(fault.New(fault.AgentRefused, "%s offers no model %s", t.o.name, t.o.model))
		}
		t.offer.Model = t.o.model
		t.send(t.offer.SetModel(t.o.model))
		return nil
	}
	if t.loaded && t.offer.Mode != "" { // some agents repeat the messages after the response: wait for that
		t.loaded = false
		t.send(t.offer.SetMode(t.offer.Mode))
		return nil
	}
	t.open = true
	t.sum = &event.Usage{}
	if t.o.recorded != nil && t.o.resume != "" {
		t.sum = t.o.recorded(t.offer.Session)
	}
	if message := t.message; message != nil {
		t.message = nil
		t.prompt(message)
	}
	return []event.Event{{Kind: event.Started, Session: t.offer.Session, Model: t.offer.Model}}
}

// harmlessMode returns the mode in which an agent changes nothing. Some ids are URLs.
func harmlessMode(modes []acp.Choice) (id string, found bool) {
	for _, word := range []string{"plan", "read-only"} {
		for _, m := range modes {
			if m.ID == word || strings.HasSuffix(m.ID, "#"+word) {
				return m.ID, true
			}
		}
	}
	return "", false
}

// refused handles an error response.
func (t *talk) refused(method string, e *jsonrpc.Error) []event.Event {
	f := t.faultOf(method, e)
	if method != "session/prompt" {
		return t.fail(f)
	}
	if t.stops {
		return t.ended("cancelled", nil)
	}
	return t.ended("error", f)
}

// faultOf translates an error, if possible with the agent's driver.
func (t *talk) faultOf(method string, e *jsonrpc.Error) (f *fault.Fault) {
	words := cli.FirstLine(e.Message)
	data, _ := e.Data.(map[string]any)
	if data["details"] != nil {
		words = cli.FirstLine(fmt.Sprintf("%s: %v", words, data["details"]))
	}
	kind, _ := data["errorKind"].(string) // set by the adapter for Claude Code
	if e.Code == acp.AuthRequired {
		f = fault.New(fault.AuthRequired, "%s wants a login: %s", t.o.name, words)
		switch login := t.agent.Login; {
		case t.o.login != "":
			f.Hint("%s", t.o.login)
		case login != nil:
			f.Hint("%s", strings.TrimSpace(login.Name+": "+login.About))
		}
		return f
	}
	if t.o.Fault != nil {
		f = t.o.Fault(e)
	}
	switch {
	case f != nil:
	case e.Code == 401 || e.Code == 403 || kind == "authentication_failed":
		f = fault.New(fault.Login(e.Message), "%s: %s", t.o.name, words)
	case e.Code == 429 || kind == "rate_limit":
		f = fault.New(fault.TooManyRequests, "%s: %s", t.o.name, words)
	case kind == "billing_error":
		f = fault.New(fault.QuotaExhausted, "%s: %s", t.o.name, words)
	default:
		f = fault.New(fault.AgentFailed, "%s refused %s: %s", t.o.name, method, words)
	}
	return f
}

// fail records that no session can be opened.
func (t *talk) fail(f *fault.Fault) []event.Event {
	t.failed, t.greeted, t.message = f, true, nil
	open := t.busy
	t.busy = false
	return live.Rejected(f, t.offer.Session, "", open)
}

// prompt begins the turn of a message.
func (t *talk) prompt(message []event.Block) {
	t.last, t.pieces, t.begun, t.stops, t.spent, t.plan = "", 0, false, false, nil, ""
	if t.cost != nil {
		t.before = *t.cost
	}
	blocks := make([]acp.Block, 0, len(message))
	for _, b := range message {
		blocks = append(blocks, acp.Block{Text: b.Text, Media: b.Media, Data: b.Data, Name: b.Name})
	}
	t.send("session/prompt", acp.Prompting(t.offer.Session, blocks))
}

// prompted handles the response to a message: in version 1 its turn is over, in version 2 it has begun.
func (t *talk) prompted(result json.RawMessage) []event.Event {
	s := acp.ReadStopped(result)
	t.spent = cmp.Or(s.Spent, t.spent)
	if t.agent.Version == acp.V2 {
		return t.begins()
	}
	return t.ended(s.Stop, nil)
}

// begins reports, once, that the agent has begun to work on the message.
func (t *talk) begins() []event.Event {
	if t.begun || !t.open {
		return nil
	}
	t.begun = true
	return []event.Event{{Kind: event.TurnBegan, Session: t.offer.Session}}
}

// used returns the usage of the turn that ends, or nil if that is not known.
func (t *talk) used() *event.Usage {
	var u *event.Usage
	switch s := t.spent; {
	case t.o.recorded != nil:
		u = t.o.recorded(t.offer.Session)
	case s != nil:
		u = &event.Usage{
			Input: s.Input, Output: s.Output, Cached: s.Cached, Written: s.Written, Reasoning: s.Reasoning,
		}
	}
	if sums := t.o.Sums || t.o.recorded != nil; u == nil || !sums {
		return u
	}
	before := t.sum
	if t.sum = u; before == nil {
		return nil
	}
	return new(u.Since(*before))
}

// ended ends the turn for the agent's reason. f is why it failed, if known.
func (t *talk) ended(stop string, f *fault.Fault) []event.Event {
	out := append(t.begins(), t.Questions.WithdrawAll()...)
	out = append(out, t.callsLeft()...)
	end := &event.End{OK: stop == "end_turn" && f == nil, Reason: stop, Usage: t.used()}
	if f == nil && end.OK && t.o.Lost != nil && t.pieces == 1 {
		f = t.o.Lost(t.last, end.Usage != nil && end.Usage.Input+end.Usage.Output > 0)
		end.OK = f == nil
	}
	switch {
	case stop == "cancelled":
		end.Reason = event.Cancelled
	case stop == "max_turn_requests":
		end.Reason, end.AgentReason = event.MaxTurns, stop
	case stop == "refusal":
		f = fault.New(fault.ModelRefused, "the model behind %s refused", t.o.name)
	case f == nil && !end.OK:
		f = fault.New(fault.AgentFailed, "%s ended its turn: %s", t.o.name,
			cmp.Or(cli.FirstLine(stop), "no reason given"))
	}
	if t.cost != nil && end.Usage != nil && *t.cost > t.before {
		end.Usage.CostUSD = new(*t.cost - t.before)
	}
	unasked := !t.busy
	t.busy, t.stops, t.begun = false, false, false
	if f != nil {
		out = append(out, event.Event{Kind: event.Failed, Fault: f, Terminal: true})
	}
	return append(out, event.Event{Kind: event.Ended, Session: t.offer.Session, End: end, Unprompted: unasked})
}
