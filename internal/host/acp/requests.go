package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	wire "omniagent/internal/wire/acp"
	"omniagent/internal/wire/jsonrpc"
)

// message handles one message. It is called for the messages in order.
func (h *Host) message(ctx context.Context, m jsonrpc.Message) {
	switch {
	case m.Wrong != nil && !m.Silent:
		h.put(jsonrpc.Failure(m.ID, m.Wrong))
	case m.Method == "":
		h.response(m)
	case m.Method == "initialize" && m.ID != nil:
		h.initialize(m)
	default:
		h.mu.Lock()
		agreed, version := h.initialized, h.encoder.Version
		h.otherMessages = agreed
		h.mu.Unlock()
		if !agreed {
			h.refuse(m, jsonrpc.Errorf(jsonrpc.InvalidRequest, "%s: initialize must come first", m.Method))
			return
		}
		wanted, wrong := wire.Decode(version, m.Method, m.Params)
		if wrong != nil {
			h.refuse(m, wrong)
			return
		}
		h.dispatch(ctx, m.ID, wanted)
	}
}

// refuse answers a request with an error; for a notification it only logs the error.
func (h *Host) refuse(m jsonrpc.Message, e *jsonrpc.Error) {
	if m.ID == nil {
		h.Log("a notification was ignored: %s", e.Message)
		return
	}
	h.put(jsonrpc.Failure(m.ID, e))
}

func (h *Host) initialize(m jsonrpc.Message) {
	said, wrong := wire.Greeting(m.Params)
	var version wire.Version
	if wrong == nil {
		version, wrong = wire.Agree(said.Wanted)
	}
	h.mu.Lock()
	if wrong == nil && (h.otherMessages || h.initialized && version != h.encoder.Version) {
		wrong = jsonrpc.Errorf(jsonrpc.InvalidRequest, "initialize: version %d is already in use", h.encoder.Version)
	}
	if wrong == nil {
		h.initialized, h.encoder = true, wire.Encoder{Version: version, Client: said.Client}
	}
	encoder := h.encoder
	h.mu.Unlock()
	if wrong != nil {
		h.put(jsonrpc.Failure(m.ID, wrong))
		return
	}
	h.put(jsonrpc.Result(m.ID, encoder.Initialized(h.About)))
}

// accept answers a notification that was sent as a request.
func (h *Host) accept(id json.RawMessage) {
	if id != nil {
		h.put(jsonrpc.Result(id, wire.Done()))
	}
}

// dispatch carries out a request or a notification. Only a request has an id.
func (h *Host) dispatch(ctx context.Context, id json.RawMessage, wanted any) {
	switch w := wanted.(type) {
	case wire.CancelRequest:
		h.cancelRequest(w.ID)
		h.accept(id)
		return
	case wire.Cancel:
		if s := h.session(w.Session); s != nil {
			s.cancel()
		}
		h.accept(id)
		return
	}
	if id == nil { // the rest are requests, which need an id to answer
		h.Log("a request without an id was ignored")
		return
	}
	switch w := wanted.(type) {
	case wire.Authenticate:
		h.aside(ctx, id, func(ctx context.Context) (any, error) { return wire.Done(), h.ready(ctx) })
	case wire.New:
		h.aside(ctx, id, func(ctx context.Context) (any, error) { return h.begin(ctx, w.Place) })
	case wire.Load:
		h.aside(ctx, id, func(ctx context.Context) (any, error) { return h.load(ctx, w) })
	case wire.Fork:
		h.aside(ctx, id, func(ctx context.Context) (any, error) { return h.fork(ctx, w) })
	case wire.List:
		// it is short, and answered even while the host ends
		h.aside(ctx, id, func(ctx context.Context) (any, error) { return h.list(context.WithoutCancel(ctx), w) })
	case wire.Delete:
		h.aside(ctx, id, func(ctx context.Context) (any, error) {
			return wire.Done(), h.remove(context.WithoutCancel(ctx), w.Session)
		})
	case wire.Close:
		h.aside(ctx, id, func(context.Context) (any, error) {
			if s := h.session(w.Session); s != nil {
				s.shut()
			}
			return wire.Done(), nil
		})
	case wire.Set:
		if s := h.open(id, w.Session); s != nil {
			if wrong := s.post(func() { s.set(id, w.Option, w.Value) }); wrong != nil {
				h.put(jsonrpc.Failure(id, wrong))
			}
		}
	case wire.Prompt:
		if s := h.open(id, w.Session); s != nil {
			if command, is := s.command(w.Blocks); is {
				s.carryOut(id, w.Blocks, command)
				return
			}
			s.prompt(id, w.Blocks)
		}
	}
}

// open returns the open session that a request names. If there is none, it has answered the request with an error.
func (h *Host) open(id json.RawMessage, session string) *clientSession {
	s := h.session(session)
	if s == nil {
		h.put(jsonrpc.Failure(id, noSession(session)))
	}
	return s
}

func noSession(id string) *jsonrpc.Error {
	e := jsonrpc.Errorf(wire.NotFound, "there is no session %s here", strconv.Quote(id))
	e.Data = map[string]any{"sessionId": id}
	return e
}

// aside handles a slow request in a new goroutine, and answers it.
func (h *Host) aside(ctx context.Context, id json.RawMessage, do func(context.Context) (any, error)) {
	ctx, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	full := len(h.requests) >= mostAside || h.closed
	if !full {
		h.requests[string(id)] = cancel
		h.beginning.Add(1)
	}
	h.mu.Unlock()
	if full {
		cancel()
		h.put(jsonrpc.Failure(id,
			jsonrpc.Errorf(jsonrpc.InternalError, "too many requests at once, or the host is ending")))
		return
	}
	go func() {
		defer h.beginning.Done()
		result, err := do(ctx)
		gone := ctx.Err() != nil
		h.mu.Lock()
		delete(h.requests, string(id))
		h.mu.Unlock()
		cancel()
		switch {
		case err != nil && gone:
			h.put(jsonrpc.Failure(id, jsonrpc.Errorf(wire.RequestCancelled, "the request was cancelled")))
		case err != nil:
			h.put(jsonrpc.Failure(id, errorOf(err)))
		default:
			o, is := result.(opened)
			if is {
				result = o.answer
			}
			if h.put(jsonrpc.Result(id, result)); is {
				o.session.offer()
			}
		}
	}()
}

// opened is the result of a request that opens a session.
type opened struct {
	answer  any
	session *clientSession
}

// cancelRequest cancels a request that opens a session or sends a message.
func (h *Host) cancelRequest(id json.RawMessage) {
	h.mu.Lock()
	cancel := h.requests[string(id)]
	h.mu.Unlock()
	if cancel != nil {
		cancel()
		return
	}
	for _, s := range h.all() {
		s.cancelRequest(id)
	}
}

func (h *Host) ready(ctx context.Context) error {
	if h.Ready == nil {
		return nil
	}
	return h.Ready(ctx)
}

// begin starts a new session.
func (h *Host) begin(ctx context.Context, place wire.Place) (any, error) {
	spec, err := h.spec(place)
	if err != nil {
		return nil, err
	}
	spec.Fresh = h.NewID()
	return h.converse(ctx, spec, false)
}

// spec returns the spec for a conversation in a place.
func (h *Host) spec(place wire.Place) (agent.Spec, error) {
	for _, dir := range append([]string{place.Dir}, place.Dirs...) {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return agent.Spec{}, jsonrpc.Errorf(jsonrpc.InvalidParams, "%s is not a directory that can be opened", dir)
		}
	}
	s := h.Spec
	s.Dir, s.Terms.Dirs, s.Terms.Servers = place.Dir, append(slices.Clone(h.Spec.Terms.Dirs), place.Dirs...),
		place.Servers
	return s, nil
}

// converse opens a conversation and forwards its events: a new one with the id Fresh, or else the one that Resume
// names. If tell is true, the client first gets its past messages.
func (h *Host) converse(ctx context.Context, spec agent.Spec, tell bool) (any, error) {
	id := cmp.Or(spec.Fresh, spec.Resume)
	h.mu.Lock()
	_, there := h.sessions[id]
	taken, full, encoder := there || h.opening[id], len(h.sessions)+len(h.opening) >= mostSessions, h.encoder
	if !taken && !full {
		h.opening[id] = true
	}
	h.mu.Unlock()
	switch {
	case taken:
		return nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "the session %s is open already, or is being opened", id)
	case full:
		return nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "%d sessions are open already; close one first",
			mostSessions)
	}
	s, err := h.start(ctx, id, spec, encoder, tell)
	h.mu.Lock()
	delete(h.opening, id)
	if err == nil {
		h.sessions[id] = s
	}
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	go s.work()
	go s.read(s.talk.Events(s.talk.Last() + 1))
	return opened{s.encoder.Opened(spec.Fresh, s.options()), s}, nil
}

// start opens the conversation. It outlives ctx, unless ctx ends before start returns.
func (h *Host) start(ctx context.Context, id string, spec agent.Spec, encoder wire.Encoder, tell bool) (*clientSession,
	error,
) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stay := context.AfterFunc(ctx, end)
	talk, err := h.Open(life, h.Agent, spec, agent.Services{CanAsk: true})
	if err != nil {
		end()
		return nil, err
	}
	go func() {
		<-talk.Done()
		end()
	}()
	s := newSession(h, id, talk, spec, encoder, spec.Resume != "")
	if tell {
		err = h.Sessions.replay(ctx, id, func(u wire.Update) { s.tell(u) })
	}
	if spec.Resume != "" {
		s.state("idle", "", nil)
	}
	if !stay() || err != nil {
		_, _ = talk.Close(ctx)
		return nil, errors.Join(err, ctx.Err())
	}
	return s, nil
}

// load resumes a session. If it is open here, it is closed first, because the client may want other servers.
func (h *Host) load(ctx context.Context, w wire.Load) (any, error) {
	spec, err := h.spec(w.Place)
	if err != nil {
		return nil, err
	}
	if s := h.session(w.Session); s != nil {
		if s.busy() {
			return nil, jsonrpc.Errorf(jsonrpc.InvalidRequest, "the session %s is at work; cancel its turn first",
				w.Session)
		}
		s.shut()
	}
	if err := h.Sessions.find(w.Session); err != nil {
		return nil, missing(w.Session, err)
	}
	spec.Resume = w.Session
	return h.converse(ctx, spec, w.Replay)
}

func missing(id string, err error) error {
	if errors.Is(err, fault.NotFoundCode) {
		return noSession(id)
	}
	return err
}

// fork creates a session with the history of another, which is not changed.
func (h *Host) fork(ctx context.Context, w wire.Fork) (any, error) {
	spec, err := h.spec(w.Place)
	if err != nil {
		return nil, err
	}
	if err := h.Sessions.find(w.Session); err != nil {
		return nil, missing(w.Session, err)
	}
	if !h.About.Fork {
		return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "%s cannot copy a session; begin a new one", h.Agent)
	}
	spec.Resume, spec.Fresh, spec.Terms.Fork = w.Session, h.NewID(), true
	return h.converse(ctx, spec, false)
}

const page = 100

func (h *Host) list(ctx context.Context, w wire.List) (any, error) {
	from := 0
	if w.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(w.Cursor); err != nil || from < 0 {
			return nil, jsonrpc.Errorf(jsonrpc.InvalidParams, "session/list: invalid cursor")
		}
	}
	list, err := h.Sessions.list(ctx, w.Dir)
	if err != nil {
		return nil, err
	}
	from = min(from, len(list))
	next := ""
	if len(list)-from > page {
		next, list = strconv.Itoa(from+page), list[:from+page]
	}
	return wire.Listed(list[from:], next), nil
}

func (h *Host) remove(ctx context.Context, id string) error {
	if s := h.session(id); s != nil {
		s.shut()
	}
	err := h.Sessions.remove(ctx, id)
	if errors.Is(err, fault.NotFoundCode) { // already deleted
		return nil
	}
	return err
}

// errorOf returns an error in the form of the protocol.
func errorOf(err error) *jsonrpc.Error {
	if e, is := errors.AsType[*jsonrpc.Error](err); is {
		return e
	}
	f := fault.Of(err)
	code := jsonrpc.InternalError
	switch f.Code {
	case fault.AuthRequired, fault.CredentialsExpired:
		code = wire.AuthRequired
	case fault.NotFoundCode:
		code = wire.NotFound
	case fault.ArgError, fault.Invalid, fault.Unsupported, fault.PromptTooLong, fault.NotInstalled:
		code = jsonrpc.InvalidParams
	case fault.TooManyRequests, fault.Conflicting:
		code = jsonrpc.InvalidRequest
	case fault.Interrupted:
		code = wire.RequestCancelled
	}
	e := jsonrpc.Errorf(code, "%s", f.Message)
	for _, hint := range []string{f.Suggestion, f.Fix, f.FixCommand} {
		if hint != "" {
			e.Message += "\nhint: " + hint // clients show only the message
		}
	}
	e.Data = map[string]any{"code": string(f.Code)}
	return e
}
