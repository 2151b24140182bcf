package conversation

import (
	"context"
	"fmt"
	"time"

	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// questions is the table of what is asked. There is no other.
type questions struct {
	open   map[string]*question    // by its id
	calls  map[string]*event.Reply // calls without a result, with what a host said of them before it was asked
	number int                     // of questions in the turn
	turn   int64                   // in which they are counted
	past   map[string]event.Reply  // the last answers, so that a late one learns who was first
	order  []string                // of past
	// left are questions that an earlier process asked and nobody answered. No agent waits for the answer any more.
	left map[string]event.Ask
}

// question is one that is open.
type question struct {
	wire  string // the Mind's own id
	ask   event.Ask
	turn  int64
	clock *time.Timer
}

// mostPast is how many answered questions are remembered.
const mostPast = 64

func (q *questions) init() {
	q.open, q.calls, q.past = map[string]*question{}, map[string]*event.Reply{}, map[string]event.Reply{}
}

// called is a call that may be asked about.
func (q *questions) called(id string) { q.calls[id] = nil }

// over is a call that has its result: what is asked about it is asked no more.
func (q *questions) over(c *Conversation, call string) {
	delete(q.calls, call)
	for id, open := range q.open {
		if open.ask.Tool != nil && open.ask.Tool.ID == call {
			q.forget(id)
			c.record(event.Event{Kind: event.Withdrawn, Turn: open.turn, Ask: &event.Ask{ID: id}, Synthetic: true})
		}
	}
}

// withdrawn is a question that the agent takes back.
func (q *questions) withdrawn(c *Conversation, wire string) {
	for id, open := range q.open {
		if open.wire == wire {
			q.forget(id)
			c.record(event.Event{Kind: event.Withdrawn, Turn: open.turn, Ask: &event.Ask{ID: id}})
		}
	}
}

// endTurn withdraws what is still asked.
func (q *questions) endTurn(c *Conversation, turn int64) {
	for id, open := range q.open {
		if open.turn == turn {
			q.forget(id)
			c.record(event.Event{Kind: event.Withdrawn, Turn: turn, Ask: &event.Ask{ID: id}, Synthetic: true})
		}
	}
	clear(q.calls)
}

func (q *questions) forget(id string) {
	if open := q.open[id]; open != nil {
		if open.clock != nil {
			open.clock.Stop()
		}
		delete(q.open, id)
	}
}

// find is an open question, by its id or by that of the call that it is about.
func (q *questions) find(id string) string {
	if q.open[id] != nil {
		return id
	}
	for name, open := range q.open {
		if open.ask.Tool != nil && open.ask.Tool.ID == id {
			return name
		}
	}
	return ""
}

// ask takes a question of the Mind. Where nobody answers it is denied at once, and nobody hears of it but by the
// denial.
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
				_ = c.reply(event.Reply{
					Question: id, Option: event.Deny, ByUs: true, Text: fmt.Sprintf("nobody answered within %s",
						c.o.Patience),
				})
				c.record(event.Event{Kind: event.Withdrawn, Turn: open.turn, Ask: &event.Ask{ID: id}, Synthetic: true})
			}
		})
	})
}

// open puts a question on record under a name of ours.
func (c *Conversation) open(e *event.Event) *question {
	q, t := &c.questions, c.attribute(e)
	if q.turn != t.number {
		q.turn, q.number = t.number, 0
	}
	q.number++
	open := &question{wire: e.Ask.ID, ask: *e.Ask, turn: t.number}
	open.ask.ID = fmt.Sprintf("q%d.%d", t.number, q.number) // the number of a turn is never used again
	q.open[open.ask.ID] = open
	shown := open.ask
	e.Ask = &shown
	c.record(*e)
	return open
}

// deny denies what nobody is asked about.
func (c *Conversation) deny(wire, why string) {
	mind := c.mind
	go func() { _ = mind.Answer(event.Reply{Question: wire, Option: event.Deny, ByUs: true, Text: why}) }()
}

// answer is what Answer does.
func (c *Conversation) answer(r event.Reply) error {
	q := &c.questions
	if id := q.findLeft(r.Question); id != "" {
		return c.answerLeft(id, r)
	}
	if id := q.find(r.Question); id != "" {
		r.Question = id
		return c.reply(r)
	}
	if said, called := q.calls[r.Question]; called && said == nil {
		q.calls[r.Question] = &r
		return nil
	}
	if before, answered := q.past[r.Question]; answered || q.calls[r.Question] != nil {
		who := "somebody else"
		if before.ByUs {
			who = "omniagent, since nobody did"
		}
		return fault.New(fault.Conflicting, "question %s was answered already, by %s", r.Question, who).
			With("question", r.Question).
			With("answer", before.Option)
	}
	return fault.New(fault.NotFoundCode, "there is no open question %s", r.Question).With("question", r.Question)
}

// reply answers an open question: it is on record before the agent can act on it.
func (c *Conversation) reply(r event.Reply) error {
	q := &c.questions
	open := q.open[r.Question]
	q.forget(r.Question)
	q.remember(r)
	c.record(event.Event{Kind: event.Replied, Turn: open.turn, Reply: &r})
	c.sync()
	said, mind := r, c.mind
	said.Question = open.wire
	go func() {
		if err := mind.Answer(said); err != nil && said.Option != event.Deny {
			c.inbox.post(func() {
				c.record(event.Event{
					Kind: event.Notice, Turn: open.turn, Synthetic: true,
					Text: fmt.Sprintf("the answer to %s came too late: %v", r.Question, err),
				})
			})
		}
	}()
	return c.failure
}

// remember keeps an answer for those that come too late, by the question's id and by that of its call.
func (q *questions) remember(r event.Reply) {
	q.past[r.Question] = r
	if q.order = append(q.order, r.Question); len(q.order) > mostPast {
		delete(q.past, q.order[0])
		q.order = q.order[1:]
	}
}

// nobodyAnswers is what NobodyAnswers does.
func (c *Conversation) nobodyAnswers() {
	c.canAsk = false
	for id, open := range c.questions.open {
		_ = c.reply(event.Reply{Question: id, Option: event.Deny, ByUs: true, Text: "nobody can answer any more"})
		c.record(event.Event{Kind: event.Withdrawn, Turn: open.turn, Ask: &event.Ask{ID: id}, Synthetic: true})
	}
}

// steer is what Steer does. A negative number is that of a message.
func (c *Conversation) steer(blocks []event.Block, reply func(int64, error)) {
	message := func() {
		number, err := c.accept(blocks)
		reply(-number, err)
	}
	t := c.turn
	if t == nil || t.ended || t.cancelled || !c.able.Steer {
		message()
		return
	}
	mind := c.mind
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), c.o.Services.Grace)
		defer cancel()
		err := mind.Steer(ctx, blocks)
		c.inbox.post(func() {
			if err != nil {
				message()
				return
			}
			c.record(event.Event{Kind: event.Steered, Turn: t.number, Blocks: blocks})
			c.sync()
			reply(t.number, c.failure)
		})
	}()
}

// findLeft is the id of a question that an earlier process asked, by its id or by that of its call; empty: there is
// none.
func (q *questions) findLeft(id string) string {
	if _, is := q.left[id]; is {
		return id
	}
	for name, ask := range q.left {
		if ask.Tool != nil && ask.Tool.ID == id {
			return name
		}
	}
	return ""
}

// answerLeft answers a question whose asker is gone: the answer becomes the next message. It allows nothing by itself:
// a call that the agent makes again is asked about again.
func (c *Conversation) answerLeft(id string, r event.Reply) error {
	q := &c.questions
	ask := q.left[id]
	delete(q.left, id)
	r.Question = id
	q.remember(r)
	c.record(event.Event{Kind: event.Replied, Reply: &r})
	text := "You asked before the conversation was interrupted: " + ask.Text + "\nThe answer is: " + r.Option
	if r.Text != "" {
		text += "\n" + r.Text
	}
	_, err := c.accept([]event.Block{{Text: text}})
	return err
}

// dropLeft withdraws what an earlier process asked: the user has gone on without an answer.
func (c *Conversation) dropLeft() {
	for id := range c.questions.left {
		c.record(event.Event{Kind: event.Withdrawn, Synthetic: true, Ask: &event.Ask{ID: id}})
	}
	c.questions.left = nil
}
