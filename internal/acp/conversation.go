package acp

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	wire "omniagent/internal/proto/acp"
	"omniagent/internal/text"
)

// conversation is one session of the client. What is below inbox belongs to its own goroutine, and to who opens it before that runs.
type conversation struct {
	host    *Host
	id      string
	encoder wire.Encoder
	inbox   chan func()
	ended   chan struct{}
	working atomic.Bool // a turn runs or waits

	spec     agent.Spec
	link     *link // nil: it is being opened anew
	record   Record
	resume   string
	options  wire.Options
	narrator narrator
	users    int // messages of the user until now
	titled   bool

	turn     *turn
	waiting  []*turn
	asked    map[string]int64 // open questions, and our requests to the client
	changing bool             // nothing begins meanwhile
	closing  bool
	over     bool // nothing more will come
}

// link is what the client talks with.
type link struct {
	session agent.Session
	events  chan event.Event
	end     func() // of what lives as long
}

// turn is a message and what comes of it.
type turn struct {
	id        json.RawMessage
	blocks    []wire.Block
	cancelled bool
	fault     *fault.Fault
	reason    string // why the model stopped
}

func newConversation(h *Host, id string, spec agent.Spec, record Record, encoder wire.Encoder) *conversation {
	c := &conversation{
		host: h, id: id, encoder: encoder, inbox: make(chan func(), mostWaiting), ended: make(chan struct{}),
		spec: spec, record: record, resume: spec.Resume, options: h.Options, asked: map[string]int64{}, titled: spec.Resume != "",
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	c.narrator = newNarrator(hex.EncodeToString(random[:]), spec.Dir, h.Mask)
	return c
}

// open opens what a client talks with. It lives longer than ctx, unless ctx ends meanwhile.
func (h *Host) open(ctx context.Context, spec agent.Spec) (*link, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stay := context.AfterFunc(ctx, end)
	session, err := h.Open(life, h.Agent, spec, agent.Services{CanAsk: true})
	if !stay() && err == nil {
		_, _ = session.Close(context.WithoutCancel(ctx))
		err = context.Canceled
	}
	if err != nil {
		end()
		return nil, err
	}
	l := &link{session, make(chan event.Event), end}
	go l.hearken(life)
	return l, nil
}

// adopt talks with it from now on.
func (c *conversation) adopt(l *link, spec agent.Spec) {
	c.link, c.spec = l, spec
	facts := l.session.Facts()
	if facts.Mode != "" {
		c.options.Mode = string(facts.Mode)
	}
	if facts.Model != "" {
		c.options.Model = facts.Model
	}
	c.options.Modes = offered(c.options.Modes, c.options.Mode)
	c.options.Models = offered(c.options.Models, c.options.Model)
	c.narrator.window = facts.Window
}

// close ends it within a time, and what lives as long.
func (l *link) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_, err := l.session.Close(ctx)
	l.end()
	return err
}

// offered is the list with what holds now in it.
func offered(list []wire.Choice, now string) []wire.Choice {
	list = slices.DeleteFunc(slices.Clone(list), func(o wire.Choice) bool { return o.ID == "" })
	if now == "" || slices.ContainsFunc(list, func(o wire.Choice) bool { return o.ID == now }) {
		return list
	}
	return append(list, wire.Choice{ID: now, Name: now})
}

// hearken passes the events on.
func (l *link) hearken(ctx context.Context) {
	defer close(l.events)
	for {
		e, err := l.session.Next(ctx)
		if err != nil {
			return
		}
		select {
		case l.events <- e:
		case <-ctx.Done():
			return
		}
	}
}

// post has something done in the conversation. false: it has ended.
func (c *conversation) post(do func()) bool {
	select {
	case <-c.ended:
		return false
	default:
	}
	select {
	case c.inbox <- do:
		return true
	case <-c.ended:
		return false
	}
}

func (c *conversation) busy() bool { return c.working.Load() }

func (c *conversation) run() {
	defer c.finish()
	soon := time.NewTicker(patience)
	defer soon.Stop()
	for !c.over {
		var events chan event.Event
		if c.link != nil {
			events = c.link.events
		}
		select {
		case do := <-c.inbox:
			do()
		case e, open := <-events:
			if !open {
				c.over = true
				break
			}
			c.hear(e)
		case <-soon.C:
			c.tell(c.narrator.running()...)
		}
		c.working.Store(c.turn != nil || len(c.waiting) > 0)
	}
}

// finish is the end of it all: whoever waits for an answer gets one.
func (c *conversation) finish() {
	if !c.closing {
		c.host.Log("the session %s has ended by itself", c.id)
		if c.turn != nil && c.turn.fault == nil {
			c.turn.fault = fault.New(fault.AgentFailed, "the agent has ended")
		}
		if c.link != nil {
			_ = c.link.close()
		}
	}
	if c.turn != nil {
		c.finished(&event.End{Reason: "cancelled"})
	}
	c.drop()
	c.record.Close() // whoever waits for the end may want the session at once
	c.host.forget(c)
	close(c.ended)
	for {
		select {
		case do := <-c.inbox: // what comes last has its answer as well
			do()
		case <-time.After(time.Second):
			return
		}
	}
}

// shut ends the conversation: the turn is interrupted, all is saved, and nothing that it started is left.
func (c *conversation) shut() {
	c.post(func() {
		if c.closing || c.over {
			return
		}
		c.closing = true
		if c.turn != nil {
			c.turn.cancelled = true
		}
		c.drop()
		c.unlink()
	})
	<-c.ended
}

// unlink closes what the client talks with; its events end then.
func (c *conversation) unlink() {
	l := c.link
	if l == nil {
		return // who opens it anew sees that it is not wanted any more
	}
	go func() {
		if err := l.close(); err != nil {
			c.host.Log("the session %s could not be closed: %v", c.id, err)
		}
	}()
}

// tell tells the client, and keeps what is told.
func (c *conversation) tell(updates ...wire.Update) {
	for _, u := range updates {
		c.record.Tell(u)
		c.host.put(c.encoder.Update(c.id, u)...)
	}
}

// state says what the session does, in the version that has a word for it.
func (c *conversation) state(state, stop string, e *wire.Error) {
	c.tell(wire.Update{Kind: wire.Conditions, State: state, Stop: stop, Error: e})
}

// prompt takes a message. It begins a turn when those before it are over.
func (c *conversation) prompt(id json.RawMessage, blocks []wire.Block) {
	switch {
	case c.closing || c.over:
		c.host.put(wire.Fail(id, noSession(c.id)))
		return
	case len(c.waiting) >= mostWaiting:
		c.host.put(wire.Fail(id, wire.Wrong(wire.InvalidRequest, "%d messages wait already", mostWaiting)))
		return
	}
	for _, b := range blocks {
		if b.Media != "" && !c.host.About.Images {
			c.host.put(wire.Fail(id, wire.Wrong(wire.InvalidParams, "%s takes texts here, no %s", c.host.Agent, b.Media)))
			return
		}
	}
	c.waiting = append(c.waiting, &turn{id: id, blocks: blocks})
	c.next()
}

// next begins the turn of the message that waited longest.
func (c *conversation) next() {
	for c.turn == nil && !c.changing && !c.closing && !c.over && len(c.waiting) > 0 {
		t := c.waiting[0]
		c.waiting = c.waiting[1:]
		var said []event.Block
		for _, b := range t.blocks {
			said = append(said, event.Block{Text: b.Text, Media: b.Media, Data: b.Data, Name: b.Name})
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		err := c.link.session.Send(ctx, said)
		cancel()
		if err != nil {
			c.host.put(wire.Fail(t.id, errorOf(err)))
			continue
		}
		c.turn = t
		c.users++
		c.narrator.begin()
		c.title(t.blocks) // in front: who lists the sessions looks for it there
		message := wire.Update{Kind: wire.Said, Message: "u" + strconv.Itoa(c.users), Blocks: t.blocks}
		if c.encoder.Version == wire.V2 {
			c.tell(message)
			c.host.put(wire.Reply(t.id, wire.Taken(message.Message)))
			c.state("running", "", nil)
		} else { // the client shows what it sent
			c.record.Tell(message)
		}
	}
}

const longestTitle = 80

// title names the session after its first message.
func (c *conversation) title(blocks []wire.Block) {
	if c.titled {
		return
	}
	for _, b := range blocks {
		clean, _ := text.Clean(strings.Join(strings.FieldsFunc(b.Text, unicode.IsSpace), " "))
		if clean == "" {
			continue
		}
		if runes := []rune(clean); len(runes) > longestTitle {
			clean = strings.TrimSpace(string(runes[:longestTitle-1])) + "…"
		}
		c.titled = true
		c.tell(wire.Update{Kind: wire.Titled, Title: clean, Time: time.Now().UTC().Format(time.RFC3339)})
		return
	}
}

// cancel ends the turn that runs, and those that wait.
func (c *conversation) cancel() {
	c.drop()
	if c.turn == nil || c.turn.cancelled || c.closing || c.over {
		return
	}
	c.turn.cancelled = true
	session := c.link.session
	go func() { // it may last until the turn is over
		ctx, cancel := context.WithTimeout(context.Background(), closing)
		defer cancel()
		if err := session.Interrupt(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			c.host.Log("the turn could not be interrupted: %v", err)
		}
	}()
}

// drop answers the messages whose turns will not begin.
func (c *conversation) drop() {
	for _, t := range c.waiting {
		c.dropped(t)
	}
	c.waiting = nil
}

func (c *conversation) dropped(t *turn) {
	if c.encoder.Version == wire.V1 {
		c.host.put(wire.Reply(t.id, wire.Stopped("cancelled", nil)))
		return
	}
	c.host.put(wire.Fail(t.id, wire.Wrong(wire.RequestCancelled, "the message was not taken: the turn before it was ended")))
}

// cancelRequest gives a message up by the id of its request.
func (c *conversation) cancelRequest(id json.RawMessage) {
	if c.turn != nil && shown(c.turn.id) == shown(id) && c.encoder.Version == wire.V1 {
		c.cancel()
		return
	}
	if i := slices.IndexFunc(c.waiting, func(t *turn) bool { return shown(t.id) == shown(id) }); i >= 0 {
		t := c.waiting[i]
		c.waiting = slices.Delete(c.waiting, i, i+1)
		c.dropped(t)
	}
}

// finished tells how the turn ended.
func (c *conversation) finished(end *event.End) {
	t := c.turn
	for question, request := range c.asked {
		c.host.unask(request)
		delete(c.asked, question)
	}
	c.tell(c.narrator.end(end)...)
	c.known()
	if t == nil {
		return
	}
	c.turn = nil
	stop, wrong := stopOf(t, end)
	switch {
	case c.encoder.Version == wire.V2:
		if wrong != nil {
			stop = "error"
		}
		c.state("idle", stop, wrong)
	case wrong != nil:
		c.host.put(wire.Fail(t.id, wrong))
	default:
		c.host.put(wire.Reply(t.id, wire.Stopped(stop, spentOf(end.Usage))))
	}
	c.next()
}

// known keeps what the agent calls the session.
func (c *conversation) known() {
	if c.link == nil {
		return
	}
	if id := c.link.session.ID(); id != "" && id != c.resume {
		c.resume = id
		c.record.Resume(id)
	}
}

// stopOf is why a turn ended in the words of the protocol, or what went wrong.
func stopOf(t *turn, end *event.End) (string, *wire.Error) {
	switch {
	case t.cancelled || !end.OK && end.Reason == "cancelled" && t.fault == nil:
		return "cancelled", nil
	case end.OK && slices.Contains([]string{"max_tokens", "length", "MAX_TOKENS", "max_output_tokens"}, t.reason):
		return "max_tokens", nil
	case end.OK:
		return "end_turn", nil
	case t.reason == "refusal":
		return "refusal", nil
	case end.Reason == "error_max_turns":
		return "max_turn_requests", nil
	case t.fault != nil:
		return "", errorOf(t.fault)
	}
	return "", wire.Wrong(wire.InternalError, "the turn failed: %s", end.Reason)
}

func spentOf(u *event.Usage) *wire.Spent {
	if u == nil {
		return nil
	}
	return &wire.Spent{Input: max(0, u.Input-u.Cached-u.Written), Output: u.Output, Cached: u.Cached, Written: u.Written, Reasoning: u.Reasoning}
}

// hear tells the client what happened.
func (c *conversation) hear(e event.Event) {
	switch e.Kind {
	case event.Question:
		c.question(e.Ask)
		return
	case event.Failed:
		if e.Terminal && c.turn != nil {
			c.turn.fault = e.Fault
			return
		}
	case event.Answered:
		if c.turn != nil && e.Parent == "" {
			c.turn.reason = e.Answer.Reason
		}
	case event.Started:
		c.known()
	case event.Changed:
		c.refresh(agent.Change{Mode: e.Facts.Mode, Model: e.Facts.Model}, c.options)
		return
	case event.Withdrawn:
		if request, open := c.asked[e.Ask.ID]; open {
			delete(c.asked, e.Ask.ID)
			c.host.unask(request)
		}
		return
	case event.Ended:
		if e.Unasked { // the turn that a message began goes on
			c.tell(c.narrator.end(e.End)...)
			return
		}
		c.finished(e.End)
		return
	}
	c.tell(c.narrator.event(e)...)
}
