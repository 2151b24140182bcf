package conversation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/repo/claim"
)

// questions is the table of open questions.
//
//	Mind asks ─▶ open ─▶ answered   the first reply, recorded before the Mind gets it
//	                  ├─▶ denied     no reply within Options.Patience, or nobody can reply
//	                  └─▶ withdrawn  by the Mind, by the result of its call, or by the end of the turn
type questions struct {
	open   map[string]*question    // by its id
	calls  map[string]*event.Reply // calls without a result, and the replies that came before the question
	number int                     // of the last question
	turn   int64                   // the turn of number
	past   map[string]event.Reply  // the last answers, to report a late one as a conflict
	order  []string                // ids in past, oldest first
	// stale are questions of an earlier process. No agent waits for the answer any more.
	stale map[string]*question
}

// question is an open question.
type question struct {
	wire  string // the Mind's own id
	ask   event.Ask
	turn  int64
	clock *time.Timer
	file  string // fingerprint of what its call would change
}

// mostPast is how many answered questions are remembered.
const mostPast = 64

func (q *questions) init() {
	q.open, q.stale = map[string]*question{}, map[string]*question{}
	q.calls, q.past = map[string]*event.Reply{}, map[string]event.Reply{}
}

// addCall notes a call that a question may be about.
func (q *questions) addCall(id string) { q.calls[id] = nil }

// endCall withdraws the questions about a call that has its result.
func (q *questions) endCall(c *Conversation, call string) {
	delete(q.calls, call)
	q.withdrawn(c, true, func(open *question) bool { return open.isAbout(call) })
}

// withdraw removes a question that the agent takes back.
func (q *questions) withdraw(c *Conversation, wire string) {
	q.withdrawn(c, false, func(open *question) bool { return open.wire == wire })
}

// endTurn withdraws the open questions of a turn.
func (q *questions) endTurn(c *Conversation, turn int64) {
	q.withdrawn(c, true, func(open *question) bool { return open.turn == turn })
	clear(q.calls)
}

// withdrawn removes the open questions for which meant returns true. byUs: the agent has not withdrawn them itself.
func (q *questions) withdrawn(c *Conversation, byUs bool, meant func(*question) bool) {
	for id, open := range q.open {
		if meant(open) {
			q.forget(id)
			c.record(event.Event{Kind: event.Withdrawn, Turn: open.turn, Ask: &event.Ask{ID: id}, Synthetic: byUs})
		}
	}
}

func (q *questions) forget(id string) {
	if open := q.open[id]; open != nil {
		if open.clock != nil {
			open.clock.Stop()
		}
		delete(q.open, id)
	}
}

func (q *question) isAbout(call string) bool { return q.ask.Tool != nil && q.ask.Tool.ID == call }

// find returns the id of a question, given that id or the id of the call it is about, or "".
func find(among map[string]*question, id string) string {
	if among[id] != nil {
		return id
	}
	for name, q := range among {
		if q.isAbout(id) {
			return name
		}
	}
	return ""
}

// ask opens a question of the Mind. If nobody can answer, it is denied at once, and only the denial is recorded.
func (c *Conversation) ask(e *event.Event) {
	ask, q := *e.Ask, &c.questions
	var early *event.Reply
	if ask.Tool != nil {
		early = q.calls[ask.Tool.ID]
	}
	if !c.canAsk && early == nil {
		c.deny(ask.ID, "it needs approval, and nobody can be asked")
		return
	}
	open := c.open(e)
	id := open.ask.ID
	c.sync()
	if early != nil {
		q.calls[ask.Tool.ID] = nil
		early.Question = id
		_ = c.reply(*early)
		return
	}
	open.clock = time.AfterFunc(c.o.Patience, func() {
		c.inbox.post(func() {
			if q.open[id] == open {
				c.unanswered(open, fmt.Sprintf("nobody answered within %s", c.o.Patience))
			}
		})
	})
}

// open records a question under an id of the conversation.
func (c *Conversation) open(e *event.Event) *question {
	q, t := &c.questions, c.attribute(e)
	if q.turn != t.number {
		q.turn, q.number = t.number, 0
	}
	q.number++
	open := &question{wire: e.Ask.ID, ask: *e.Ask, turn: t.number, file: c.fileOf(e.Ask.Tool)}
	// The number of a turn is unique in the session.
	open.ask.ID = fmt.Sprintf("%sq%d.%d", c.o.Services.Asker, t.number, q.number)
	q.open[open.ask.ID] = open
	shown := open.ask
	e.Ask = &shown
	c.record(*e)
	return open
}

// unanswered denies an open question that nobody answers.
func (c *Conversation) unanswered(open *question, why string) {
	id := open.ask.ID
	_ = c.reply(event.Reply{Question: id, Option: event.Deny, Automatic: true, Text: why})
	c.record(event.Event{Kind: event.Withdrawn, Turn: open.turn, Ask: &event.Ask{ID: id}, Synthetic: true})
}

// deny denies a question that is not recorded.
func (c *Conversation) deny(wire, why string) {
	mind := c.mind
	go func() { _ = mind.Answer(event.Reply{Question: wire, Option: event.Deny, Automatic: true, Text: why}) }()
}

// answer implements Answer.
func (c *Conversation) answer(r event.Reply) (turn int64, err error) {
	q := &c.questions
	if r.Mode == setting.Yolo && !c.MayBypass() {
		return 0, fault.New(fault.PermissionDenied, "an answer cannot change the mode to yolo in this conversation")
	}
	if id := find(q.stale, r.Question); id != "" {
		return c.answerStale(id, r)
	}
	if id := find(q.open, r.Question); id != "" {
		if ask := q.open[id].ask; ask.Tool != nil && !ask.Form && r.Option != event.Allow && r.Option != event.Deny &&
			!slices.Contains(ask.Options, r.Option) { // it would be recorded as the user's denial
			return 0, fault.New(fault.ArgError, "question %s has no option %q, only %s", id, r.Option,
				strings.Join(ask.Options, ", "))
		}
		r.Question = id
		return 0, c.reply(r)
	}
	if given, called := q.calls[r.Question]; called && given == nil {
		q.calls[r.Question] = &r
		return 0, nil
	}
	if before, answered := q.past[r.Question]; answered || q.calls[r.Question] != nil {
		by := ""
		if before.Automatic {
			by = ", by omniagent: " + before.Text
		}
		return 0, fault.New(fault.Conflicting, "question %s was answered already%s", r.Question, by).
			With("question", r.Question).
			With("answer", before.Option)
	}
	return 0, fault.New(fault.NotFoundCode, "there is no open question %s", r.Question).With("question", r.Question)
}

// reply answers an open question. The answer is durable before the agent gets it.
func (c *Conversation) reply(r event.Reply) error {
	q := &c.questions
	open := q.open[r.Question]
	q.forget(r.Question)
	outdated := r.Option != event.Deny && c.fileOf(open.ask.Tool) != open.file
	if outdated {
		name := cmp.Or(text.Name(open.ask.Tool.Path), "what it would change")
		r = event.Reply{Question: r.Question, Option: event.Deny, Automatic: true, Stop: r.Stop, Text: name +
			" has changed since the person was asked; nothing was written. Read it, then make the call that suits it."}
	}
	given, mind := r, c.mind
	given.Question = open.wire
	if r.Secret {
		r.Text, r.Input = "", nil
	}
	q.remember(r)
	c.record(event.Event{Kind: event.Replied, Turn: open.turn, Reply: &r})
	if outdated { // the person has to see that the answer does not count
		c.record(event.Event{Kind: event.Notice, Turn: open.turn, Synthetic: true, Denies: true, Text: r.Text})
	}
	c.sync()
	c.claims.Tell(&event.Event{Kind: event.Replied, Reply: &given})
	go func() {
		if seen := c.o.Services.Replied; seen != nil {
			seen(r.Question)
		}
		if err := mind.Answer(given); err != nil && given.Option != event.Deny {
			// It may still wait for an answer.
			_ = mind.Answer(event.Reply{Question: given.Question, Option: event.Deny, Automatic: true})
			c.inbox.post(func() {
				c.record(event.Event{
					Kind: event.Notice, Turn: open.turn, Synthetic: true,
					Text: fmt.Sprintf("the answer to %s was not taken: %v", r.Question, err),
				})
			})
		}
	}()
	return c.failure
}

// fileOf returns the fingerprint of what a call of an agent's file tool would change. It is "" for the engine, which
// looks at the file when it writes.
func (c *Conversation) fileOf(call *event.Call) string {
	if c.o.Recorded {
		return ""
	}
	return claim.Fingerprint(call, c.spec.Dir)
}

// remember keeps an answer, to report later ones as conflicts.
func (q *questions) remember(r event.Reply) {
	q.past[r.Question] = r
	if q.order = append(q.order, r.Question); len(q.order) > mostPast {
		delete(q.past, q.order[0])
		q.order = q.order[1:]
	}
}

// nobodyAnswers implements NobodyAnswers.
func (c *Conversation) nobodyAnswers() {
	c.canAsk = false
	for _, open := range c.questions.open {
		c.unanswered(open, "nobody can answer any more")
	}
}

// steer is a message for the turn that runs, and the function that reports its outcome.
type steer struct {
	blocks []event.Block
	reply  func(turn int64, err error) // a negative number is the turn of a new message
}

// steer implements Steer.
func (c *Conversation) steer(s steer) {
	c.steers = append(c.steers, s)
	if len(c.steers) == 1 {
		c.nextSteer()
	}
}

// nextSteer passes the oldest steer to the agent, and the next one when the agent has taken it.
func (c *Conversation) nextSteer() {
	for len(c.steers) > 0 {
		t, mind := c.turn, c.mind
		if t == nil || t.ended || t.cancelled || !c.able.Steer {
			c.becomesMessage()
			continue
		}
		s := c.steers[0]
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), c.o.Services.Grace)
			defer cancel()
			err := mind.Steer(ctx, s.blocks)
			c.inbox.post(func() {
				if err != nil {
					c.becomesMessage()
				} else {
					c.steers = c.steers[1:]
					c.record(event.Event{Kind: event.Steered, Turn: t.number, Blocks: s.blocks})
					c.sync()
					s.reply(t.number, c.failure)
				}
				c.nextSteer()
			})
		}()
		return
	}
}

// becomesMessage turns the oldest steer into a message.
func (c *Conversation) becomesMessage() {
	s := c.steers[0]
	c.steers = c.steers[1:]
	number, err := c.accept(s.blocks)
	s.reply(-number, err)
}

// answerStale answers a question of an earlier process: the answer becomes the next message. It allows no call: if the
// agent makes the call again, it asks again.
func (c *Conversation) answerStale(id string, r event.Reply) (turn int64, err error) {
	q := &c.questions
	ask := q.stale[id].ask
	delete(q.stale, id)
	r.Question = id
	q.remember(r)
	c.record(event.Event{Kind: event.Replied, Reply: &r})
	text := "You asked before the conversation was interrupted: " + ask.Text + "\nThe answer is: " + r.Option
	if r.Text != "" {
		text += "\n" + r.Text
	}
	return c.accept([]event.Block{{Text: text}})
}

// dropStale withdraws the questions of an earlier process, because the user has sent a message instead.
func (c *Conversation) dropStale() {
	for id := range c.questions.stale {
		c.record(event.Event{Kind: event.Withdrawn, Synthetic: true, Ask: &event.Ask{ID: id}})
	}
	clear(c.questions.stale)
}
