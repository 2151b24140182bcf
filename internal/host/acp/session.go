package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/talk/conversation"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// clientSession translates between one session of the client and its conversation.
//
//	client ── request ──▶ listen ── requests ──▶ work ── Send, Set ──▶ conversation ──▶ journal
//	client ◀── lines ──── put ◀──── narrator ◀── read ◀─────────────── events ◀────────────┘
//
// work handles the client's requests in order. Urgent requests, such as a cancellation, bypass it. read sends the
// events in the journal, so a slow client only delays read.
type clientSession struct {
	host     *Host
	id       string
	encoder  wire.Encoder
	talk     *conversation.Conversation
	spec     agent.Spec // what it began with
	requests chan func()
	ended    chan struct{} // closed when everything has been sent

	sending sync.Mutex // held from a Send until the number of its turn is recorded

	mu      sync.Mutex
	prompts []*prompt // requests whose turns are not over
	model   string    // the name that the client chose; the agent's name may differ
	over    bool      // no more requests are accepted
	closing bool

	reading // owned by read
}

// reading is the state of read.
type reading struct {
	narrator  narrator
	hasTitle  bool
	turns     map[int64]bool   // turns in progress
	questions map[string]int64 // open questions, to our requests to the client
	failure   *jsonrpc.Error   // the error that ends the turn
	reason    string           // why the model stopped
}

// prompt is a request with a message, and its state.
//
//	                cancelled            cancelled: the conversation withdraws the turn
//	                    ▲                    ▲
//	request ──▶ queued ─┴─ Send ──▶ sent ────┴─ TurnBegan ──▶ begun ── Ended ──▶ answered
//
// In version 2 of the protocol the request is answered when the turn begins, and a state update reports its end.
type prompt struct {
	id        json.RawMessage
	blocks    []wire.Block
	turn      int64 // 0 if not yet sent
	begun     bool
	cancelled bool
}

// mostRequests limits the queued requests of a client. It exceeds the conversation's own queue, so that the
// conversation refuses messages first.
const mostRequests = 2 * conversation.MostWaiting

func newSession(h *Host, id string, talk *conversation.Conversation, spec agent.Spec, encoder wire.Encoder,
	titled bool,
) *clientSession {
	return &clientSession{
		host: h, id: id, encoder: encoder, talk: talk, spec: spec, model: spec.Shared.Model.Value,
		requests: make(chan func(), mostRequests), ended: make(chan struct{}),
		reading: reading{
			narrator: newNarrator(ident.Hex(4), spec.Dir, h.Mask), hasTitle: titled, turns: map[int64]bool{},
			questions: map[string]int64{},
		},
	}
}

// post queues a request for work. The error says why it was refused.
func (s *clientSession) post(do func()) *jsonrpc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return noSession(s.id)
	}
	select {
	case s.requests <- do:
		return nil
	default:
		return jsonrpc.Errorf(jsonrpc.InvalidRequest, "%d requests of the session %s are waiting", mostRequests, s.id)
	}
}

// work handles the client's requests in order, until everything is sent.
func (s *clientSession) work() {
	for {
		select {
		case do := <-s.requests:
			do()
			continue
		case <-s.ended:
		}
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		for {
			select {
			case do := <-s.requests: // answer the last ones too
				do()
			default:
				return
			}
		}
	}
}

// prompt handles a message. read answers its request when its turn is over or, in version 2, when it begins.
func (s *clientSession) prompt(id json.RawMessage, blocks []wire.Block) {
	p := &prompt{id: id, blocks: blocks}
	s.mu.Lock()
	s.prompts = append(s.prompts, p)
	s.mu.Unlock()
	if wrong := s.post(func() { s.send(p) }); wrong != nil {
		s.remove(p)
		s.host.put(jsonrpc.Failure(id, wrong))
	}
}

func (s *clientSession) send(p *prompt) {
	s.sending.Lock()
	wait := func() (int64, error) { return 0, nil }
	s.mu.Lock()
	cancelled := p.cancelled
	if !cancelled { // under the lock, so that a later cancellation finds it in the conversation
		wait = s.talk.StartSend(context.Background(), messageOf(p.blocks))
	}
	s.mu.Unlock()
	turn, err := wait()
	s.mu.Lock()
	p.turn = turn
	withdraw := p.cancelled && !cancelled
	s.mu.Unlock()
	s.sending.Unlock()
	switch {
	case cancelled:
		s.remove(p)
		s.dropped(p)
	case err != nil:
		s.remove(p)
		s.host.put(jsonrpc.Failure(p.id, s.wrong(err)))
	case withdraw: // the client cancelled it meanwhile
		s.talk.Withdraw(turn)
	}
}

func messageOf(blocks []wire.Block) []event.Block {
	var message []event.Block
	for _, b := range blocks {
		message = append(message, event.Block{Text: b.Text, Media: b.Media, Data: b.Data, Name: b.Name})
	}
	return message
}

// wrong converts an error of the conversation, unless the conversation is over.
func (s *clientSession) wrong(err error) *jsonrpc.Error {
	select {
	case <-s.talk.Done():
		return noSession(s.id)
	default:
		return errorOf(err)
	}
}

// dropped answers a message whose turn will not begin.
func (s *clientSession) dropped(p *prompt) {
	if s.encoder.Version == wire.V1 {
		s.host.put(jsonrpc.Result(p.id, wire.Stopped("cancelled", nil)))
		return
	}
	s.host.put(jsonrpc.Failure(p.id,
		jsonrpc.Errorf(wire.RequestCancelled, "the message was cancelled before its turn began")))
}

// of returns the prompt that began a turn, or nil.
func (s *clientSession) of(turn int64) *prompt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.prompts, func(p *prompt) bool { return p.turn == turn }); i >= 0 {
		return s.prompts[i]
	}
	return nil
}

func (s *clientSession) remove(p *prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts = slices.DeleteFunc(s.prompts, func(o *prompt) bool { return o == p })
}

// busy reports whether a message waits or is being answered.
func (s *clientSession) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.prompts) > 0
}

// cancelled reports whether the client has cancelled the message of a turn.
func (s *clientSession) cancelled(turn int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.prompts, func(p *prompt) bool { return p.turn == turn && p.cancelled })
}

// giveUp marks all messages as cancelled. Their turns then end as cancelled, whatever the agent reports.
func (s *clientSession) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.prompts {
		p.cancelled = true
	}
}

// cancel ends the running turn and the waiting ones.
func (s *clientSession) cancel() {
	s.giveUp()
	s.talk.Interrupt(true)
}

// cancelRequest cancels one message by the id of its request. In version 2 that works only until its turn has begun,
// because the request is then answered.
func (s *clientSession) cancelRequest(id json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.prompts, func(p *prompt) bool { return string(p.id) == string(id) })
	if i < 0 || s.encoder.Version != wire.V1 && s.prompts[i].begun {
		return
	}
	p := s.prompts[i]
	if p.cancelled = true; p.turn != 0 {
		s.talk.Withdraw(p.turn)
	}
}

// set changes an option, and answers the request.
func (s *clientSession) set(id json.RawMessage, option, value string) {
	if wrong := s.change(option, value); wrong != nil {
		s.host.put(jsonrpc.Failure(id, wrong))
		return
	}
	s.host.put(jsonrpc.Result(id, s.encoder.Changed(s.options())))
}

// change changes an option. It calls the conversation even if the value seems unchanged, because only the conversation
// knows the current one.
func (s *clientSession) change(option, value string) *jsonrpc.Error {
	change, choices := agent.Change{Mode: setting.Approval(value)}, s.host.Modes
	switch option {
	case "mode":
	case "model":
		change, choices = agent.Change{Model: value}, s.host.Models
	default:
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "there is no option %q; the options are mode and model", option)
	}
	if !slices.ContainsFunc(choices, func(o wire.Choice) bool { return o.ID == value }) {
		return jsonrpc.Errorf(jsonrpc.InvalidParams, "%s cannot be %q here", option, value)
	}
	if err := s.talk.Set(context.Background(), change); err != nil {
		return s.wrong(err)
	}
	if change.Model != "" {
		s.mu.Lock()
		s.model = change.Model
		s.mu.Unlock()
	}
	return nil
}

// options returns the current values and the choices.
func (s *clientSession) options() wire.Options {
	facts := s.talk.Facts()
	o := wire.Options{Mode: string(facts.Mode), Model: facts.Model}
	o.Mode = cmp.Or(o.Mode, string(s.spec.Terms.Mode))
	if !slices.ContainsFunc(s.host.Models, func(c wire.Choice) bool { return c.ID == o.Model }) {
		s.mu.Lock()
		o.Model = s.model
		s.mu.Unlock()
	}
	o.Modes, o.Models = offered(s.host.Modes, o.Mode), offered(s.host.Models, o.Model)
	return o
}

// offered returns the list, including the current value.
func offered(list []wire.Choice, now string) []wire.Choice {
	if now == "" || slices.ContainsFunc(list, func(o wire.Choice) bool { return o.ID == now }) {
		return list
	}
	return append(slices.Clone(list), wire.Choice{ID: now, Name: now})
}

// shut ends the conversation. When it returns, every message has ended, and the client knows.
func (s *clientSession) shut() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.giveUp()
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	if _, err := s.talk.Close(ctx); err != nil {
		s.host.Log("the session %s could not be closed in order: %v", s.id, err)
	}
	<-s.ended
}

// closing is the time for a conversation to end by itself.
const closing = 10 * time.Second
