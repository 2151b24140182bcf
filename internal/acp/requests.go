package acp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
)

// hear deals with one message, in the order in which they come.
func (h *Host) hear(ctx context.Context, m wire.Message) {
	switch {
	case m.Wrong != nil && !m.Silent:
		h.put(wire.Fail(m.ID, m.Wrong))
	case m.Method == "":
		h.answered(m)
	case m.Method == "initialize" && m.ID != nil:
		h.initialize(m)
	default:
		h.mu.Lock()
		agreed, version := h.agreed, h.encoder.Version
		h.used = agreed
		h.mu.Unlock()
		if !agreed {
			h.refuse(m, wire.Wrong(wire.InvalidRequest, "%s: initialize comes first", m.Method))
			return
		}
		wanted, wrong := wire.Decode(version, m.Method, m.Params)
		if wrong != nil {
			h.refuse(m, wrong)
			return
		}
		h.heed(ctx, m.ID, wanted)
	}
}

// refuse answers a request with an error; of a notification it is only said.
func (h *Host) refuse(m wire.Message, e *wire.Error) {
	if m.ID == nil {
		h.Log("a notification was passed over: %s", e.Message)
		return
	}
	h.put(wire.Fail(m.ID, e))
}

func (h *Host) initialize(m wire.Message) {
	said, wrong := wire.Greeting(m.Params)
	var version wire.Version
	if wrong == nil {
		version, wrong = wire.Agree(said.Wanted)
	}
	h.mu.Lock()
	if wrong == nil && (h.used || h.agreed && version != h.encoder.Version) {
		wrong = wire.Wrong(wire.InvalidRequest, "initialize: version %d was agreed on before", h.encoder.Version)
	}
	if wrong == nil {
		h.agreed, h.encoder = true, wire.Encoder{Version: version, Client: said.Client}
	}
	encoder := h.encoder
	h.mu.Unlock()
	if wrong != nil {
		h.put(wire.Fail(m.ID, wrong))
		return
	}
	h.put(wire.Reply(m.ID, encoder.Initialized(h.About)))
}

// heed does what a request or a notification wants. A request has an id.
func (h *Host) heed(ctx context.Context, id json.RawMessage, wanted any) {
	switch w := wanted.(type) {
	case wire.CancelRequest:
		h.cancelRequest(w.ID)
		return
	case wire.Cancel:
		if c := h.talk(w.Session); c != nil {
			c.post(c.cancel)
		}
		return
	}
	if id == nil { // the rest asks for something, and nobody would hear the answer
		h.Log("a request without an id was passed over")
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
		h.aside(ctx, id, func(ctx context.Context) (any, error) { return h.list(context.WithoutCancel(ctx), w) }) // it is short, and answered to the last
	case wire.Delete:
		h.aside(ctx, id, func(ctx context.Context) (any, error) {
			return wire.Done(), h.delete(context.WithoutCancel(ctx), w.Session)
		})
	case wire.Close:
		h.aside(ctx, id, func(context.Context) (any, error) {
			if c := h.talk(w.Session); c != nil {
				c.shut()
			}
			return wire.Done(), nil
		})
	case wire.Set:
		h.in(id, w.Session, func(c *conversation) { c.set(id, w.Option, w.Value) })
	case wire.Prompt:
		h.in(id, w.Session, func(c *conversation) { c.prompt(id, w.Blocks) })
	}
}

// in has a conversation do something.
func (h *Host) in(id json.RawMessage, session string, do func(*conversation)) {
	c := h.talk(session)
	if c == nil || !c.post(func() { do(c) }) {
		h.put(wire.Fail(id, noSession(session)))
	}
}

func noSession(id string) *wire.Error {
	e := wire.Wrong(wire.NotFound, "there is no session %s here", strconv.Quote(id))
	e.Data = map[string]any{"sessionId": id}
	return e
}

// aside does what takes its time beside everything else, and answers.
func (h *Host) aside(ctx context.Context, id json.RawMessage, do func(context.Context) (any, error)) {
	ctx, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	full := len(h.requests) >= mostWaiting || h.closed
	if !full {
		h.requests[shown(id)] = cancel
		h.beginning.Add(1)
	}
	h.mu.Unlock()
	if full {
		cancel()
		h.put(wire.Fail(id, wire.Wrong(wire.InternalError, "too much is asked for at once, or all is being ended")))
		return
	}
	go func() {
		defer h.beginning.Done()
		result, err := do(ctx)
		gone := ctx.Err() != nil
		h.mu.Lock()
		delete(h.requests, shown(id))
		h.mu.Unlock()
		cancel()
		switch {
		case err != nil && gone:
			h.put(wire.Fail(id, wire.Wrong(wire.RequestCancelled, "it was given up")))
		case err != nil:
			h.put(wire.Fail(id, errorOf(err)))
		default:
			h.put(wire.Reply(id, result))
		}
	}()
}

// cancelRequest gives a request up: what is being opened, or a message.
func (h *Host) cancelRequest(id json.RawMessage) {
	h.mu.Lock()
	cancel := h.requests[shown(id)]
	talks := make([]*conversation, 0, len(h.talks))
	for _, c := range h.talks {
		talks = append(talks, c)
	}
	h.mu.Unlock()
	if cancel != nil {
		cancel()
		return
	}
	for _, c := range talks {
		c.post(func() { c.cancelRequest(id) })
	}
}

func (h *Host) ready(ctx context.Context) error {
	if h.Ready == nil {
		return nil
	}
	return h.Ready(ctx)
}

// begin makes a new session.
func (h *Host) begin(ctx context.Context, place wire.Place) (any, error) {
	spec, err := h.spec(place)
	if err != nil {
		return nil, err
	}
	id := h.Keeper.NewID()
	spec.Fresh = id
	c, err := h.converse(ctx, id, spec, Kept{ID: id, Dir: place.Dir, Dirs: place.Dirs, Updated: time.Now()}, nil)
	if err != nil {
		return nil, err
	}
	return c.encoder.Opened(id, c.options), nil
}

// spec is what a conversation in that place begins with.
func (h *Host) spec(place wire.Place) (agent.Spec, error) {
	for _, dir := range append([]string{place.Dir}, place.Dirs...) {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return agent.Spec{}, wire.Wrong(wire.InvalidParams, "%s is no directory that can be opened", dir)
		}
	}
	s := h.Spec
	s.Dir, s.Terms.Dirs, s.Terms.Servers = place.Dir, append(slices.Clone(h.Spec.Terms.Dirs), place.Dirs...), place.Servers
	return s, nil
}

// converse opens a conversation and has it run. tell tells the client what was said before, and how many messages that was.
func (h *Host) converse(ctx context.Context, id string, spec agent.Spec, kept Kept, tell func(*conversation) (int, error)) (*conversation, error) {
	h.mu.Lock()
	taken, full, encoder := h.opening[id], len(h.talks)+len(h.opening) >= mostTalks, h.encoder
	if !taken && !full {
		h.opening[id] = true
	}
	h.mu.Unlock()
	if taken || full {
		return nil, wire.Wrong(wire.InvalidRequest, "the session %s cannot be opened now: it is being opened, or too many are", id)
	}
	defer func() {
		h.mu.Lock()
		delete(h.opening, id)
		h.mu.Unlock()
	}()
	record, err := h.Keeper.Keep(ctx, kept)
	if err != nil {
		return nil, err
	}
	l, err := h.open(ctx, spec)
	if err != nil {
		record.Close()
		return nil, err
	}
	c := newConversation(h, id, spec, record, encoder)
	c.adopt(l, spec)
	if tell != nil {
		c.users, err = tell(c)
	}
	h.mu.Lock()
	_, there := h.talks[id]
	if err == nil && ctx.Err() == nil && !there {
		h.talks[id] = c
	} else {
		there = true
	}
	h.mu.Unlock()
	if there {
		_ = l.close()
		record.Close()
		return nil, errors.Join(err, ctx.Err(), wire.Wrong(wire.InvalidRequest, "the session %s is open already", id))
	}
	go c.run()
	return c, nil
}

// load goes on with a session. One that is open here is closed before: the client may want other servers.
func (h *Host) load(ctx context.Context, w wire.Load) (any, error) {
	spec, err := h.spec(w.Place)
	if err != nil {
		return nil, err
	}
	if c := h.talk(w.Session); c != nil {
		if c.busy() {
			return nil, wire.Wrong(wire.InvalidRequest, "the session %s is at work; cancel its turn first", w.Session)
		}
		c.shut()
	}
	kept, err := h.Keeper.Find(ctx, w.Session)
	if err != nil {
		return nil, missing(w.Session, err)
	}
	spec.Resume = kept.Resume
	if spec.Resume == "" { // nothing was said in it
		spec.Fresh = w.Session
	}
	kept.Dir, kept.Dirs = w.Dir, w.Dirs
	c, err := h.converse(ctx, w.Session, spec, kept, func(c *conversation) (int, error) { return h.replay(ctx, c, w.Session, w.Replay) })
	if err != nil {
		return nil, err
	}
	return c.encoder.Opened("", c.options), nil
}

// replay tells what was said in a session, and returns how many messages of the user that were.
func (h *Host) replay(ctx context.Context, c *conversation, id string, tell bool) (users int, err error) {
	err = h.Keeper.Replay(ctx, id, func(u wire.Update) {
		if u.Kind == wire.Said {
			users++
		}
		if tell {
			h.put(c.encoder.Update(c.id, u)...)
		}
	})
	c.state("idle", "", nil)
	return users, err
}

func missing(id string, err error) error {
	if errors.Is(err, fault.NotFoundCode) {
		return noSession(id)
	}
	return err
}

// fork makes a session with the past of another, which stays as it is.
func (h *Host) fork(ctx context.Context, w wire.Fork) (any, error) {
	spec, err := h.spec(w.Place)
	if err != nil {
		return nil, err
	}
	id := h.Keeper.NewID()
	kept, err := h.Keeper.Fork(ctx, w.Session, id)
	if err != nil {
		return nil, missing(w.Session, err)
	}
	spec.Resume, spec.Fresh, spec.Terms.Fork = kept.Resume, id, kept.Shared
	if !kept.Shared && kept.Resume != "" {
		spec.Fresh = ""
	}
	kept.Dir, kept.Dirs = w.Dir, w.Dirs
	c, err := h.converse(ctx, id, spec, kept, func(c *conversation) (int, error) { return h.replay(ctx, c, id, false) })
	if err != nil {
		_ = h.Keeper.Delete(context.WithoutCancel(ctx), id)
		return nil, err
	}
	return c.encoder.Opened(id, c.options), nil
}

const page = 100

func (h *Host) list(ctx context.Context, w wire.List) (any, error) {
	from := 0
	if w.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(w.Cursor); err != nil || from < 0 {
			return nil, wire.Wrong(wire.InvalidParams, "session/list: the cursor is none of ours")
		}
	}
	all, err := h.Keeper.List(ctx)
	if err != nil {
		return nil, err
	}
	list := []wire.Session{}
	for _, k := range all {
		if w.Dir == "" || k.Dir == w.Dir {
			list = append(list, wire.Session{ID: k.ID, Dir: k.Dir, Dirs: k.Dirs, Title: k.Title, Updated: k.Updated.UTC().Format(time.RFC3339)})
		}
	}
	from = min(from, len(list))
	next := ""
	if len(list)-from > page {
		next, list = strconv.Itoa(from+page), list[:from+page]
	}
	return wire.Listed(list[from:], next), nil
}

func (h *Host) delete(ctx context.Context, id string) error {
	if c := h.talk(id); c != nil {
		c.shut()
	}
	err := h.Keeper.Delete(ctx, id)
	if errors.Is(err, fault.NotFoundCode) { // then it is as it shall be
		return nil
	}
	return err
}

// errorOf is an error as the protocol tells it.
func errorOf(err error) *wire.Error {
	var e *wire.Error
	if errors.As(err, &e) {
		return e
	}
	f := fault.Of(err)
	code := wire.InternalError
	switch f.Code {
	case fault.AuthRequired, fault.CredentialsExpired:
		code = wire.AuthRequired
	case fault.NotFoundCode:
		code = wire.NotFound
	case fault.ArgError, fault.Invalid, fault.Unsupported, fault.PromptTooLong, fault.NotInstalled:
		code = wire.InvalidParams
	case fault.Interrupted:
		code = wire.RequestCancelled
	}
	e = wire.Wrong(code, "%s", f.Message)
	for _, hint := range []string{f.Suggestion, f.Fix, f.FixCommand} {
		if hint != "" {
			e.Message += "\nhint: " + hint // clients show the message alone
		}
	}
	e.Data = map[string]any{"code": string(f.Code)}
	return e
}
