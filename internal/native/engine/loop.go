package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
	"omniagent/internal/talk/session"
)

// loop is one turn, or the work of one sub-agent in it.
type loop struct {
	mind    *Mind
	turn    *turn
	own     *Model // the model that a helper names; nil: the Mind's
	talk    *conversation
	tools   []tool.Tool
	system  []string
	parent  string           // the call of this sub-agent; empty: the agent itself
	outer   *loop            // the loop of that call
	journal *session.Session // nil: nothing is recorded, as for sub-agents

	began     time.Time
	asking    time.Duration
	prompt    model.Message // the message of this turn
	promptAt  int64         // its number in the journal
	asked     int           // answers of the model
	usage     model.Usage
	model     string
	notes     []string
	last      string // text of the last answer
	continues bool   // the next answer continues the last one
	resumed   bool   // an answer that broke off was continued
	shortened bool   // a full context was shortened
	clipped   bool   // clip was called
	repeat    repetition

	asks       model.Client // the client of models, with retries
	models     int
	cost       float64
	unknown    bool            // part of the cost is unknown
	given      json.RawMessage // the answer in its form
	formErrors int             // how often the answer was missing or invalid
	keptGoing  bool            // a hook has prevented the end of the turn
}

// tell marks the events of a sub-agent with its call.
func (l *loop) tell(e event.Event) {
	e.Parent = l.parent
	l.mind.tell(e)
}

// keep adds a message to the conversation and to the journal.
func (l *loop) keep(m model.Message, a *model.Answer) error {
	if l.journal == nil {
		l.talk.add(m, 0)
		return nil
	}
	r := session.Message{Message: m}
	if a != nil {
		r.Answer, r.Model, r.Usage = a.ID, a.Model, &a.Usage
	}
	number, err := l.journal.Append(r)
	if err != nil {
		return &stop{event.FailedTurn, fault.Of(err)}
	}
	if len(l.prompt.Blocks) == 0 {
		l.prompt, l.promptAt = m, number
	}
	l.talk.add(m, number)
	return nil
}

// run asks the model and runs its calls until the turn ends.
func (l *loop) run(ctx context.Context) error {
	for {
		if err := l.within(); err != nil {
			return err
		}
		if err := l.fit(ctx); err != nil {
			return err
		}
		answer, err := l.ask(ctx)
		if err != nil {
			return err
		}
		if answer == nil { // the conversation was repaired: ask again
			continue
		}
		switch text := answer.Text(); {
		case l.continues:
			l.last += text
		case text != "":
			l.last = text
		}
		l.continues = false
		calls := answer.Calls()
		if len(calls) == 0 {
			more, err := l.rest(ctx, answer)
			if more && err == nil {
				continue
			}
			return err
		}
		results, err := l.act(ctx, calls)
		results = append(append(results, l.steered(ctx, false)...), l.takeNews()...)
		if kept := l.keep(model.Message{Role: model.User, Blocks: results}, nil); err == nil {
			err = kept
		}
		if err == nil && l.exhausted() {
			err = &stop{reason: event.MaxFormErrors}
		}
		if err != nil {
			return err
		}
		if l.gaveForm(calls) {
			if more, err := l.finish(ctx); err != nil || !more {
				return err
			}
		}
	}
}

// rest handles an answer without calls. more reports whether the turn continues.
func (l *loop) rest(ctx context.Context, answer *model.Answer) (more bool, err error) {
	if blocks := l.steered(ctx, false); blocks != nil {
		return true, l.keep(model.Message{Role: model.User, Blocks: blocks}, nil)
	}
	if answer.Stop == model.Paused {
		l.continues = true
		return true, nil
	}
	if answer.Stop == model.Length {
		l.notes = append(l.notes, "the last answer was cut off: it was as long as the model's answers may be")
	}
	if err := answerError(answer); err != nil {
		return false, err
	}
	return l.finish(ctx)
}

// answerError returns the error with which an answer without calls ends the turn, or nil.
func answerError(a *model.Answer) error {
	switch {
	case a.Stop == model.Refused:
		return &stop{event.FailedTurn, fault.New(fault.ModelRefused, "the model refused to answer (%s)", a.Reason)}
	case a.Stop == model.Full:
		return &stop{event.FailedTurn, fault.New(fault.ContextFull, tooLong)}
	case strings.TrimSpace(a.Text()) == "": // thinking alone is not an answer
		return &stop{event.FailedTurn, fault.New(fault.NoAnswer, "the model ended without an answer (%s)", a.Reason)}
	}
	return nil
}

// steered returns what the user has added to the turn, and nothing for a sub-agent. With last, the turn accepts no more
// if nothing was added. What was added to an interrupted turn is left for the next one.
func (l *loop) steered(ctx context.Context, last bool) []model.Block {
	if l.outer != nil || ctx.Err() != nil {
		return nil
	}
	m := l.mind
	m.mu.Lock()
	added := m.steering
	m.steering = nil
	l.turn.sealed = l.turn.sealed || last && added == nil
	m.mu.Unlock()
	if added == nil {
		return nil
	}
	more, err := l.admit(ctx, added)
	if err != nil { // the host refuses it: the turn continues without it
		l.tell(event.Event{Kind: event.Notice, Text: err.Error(), Synthetic: true})
		return nil
	}
	return more
}

// within returns an error if a limit is reached. The requests of a sub-agent are counted separately.
func (l *loop) within() error {
	limits := l.mind.o.Limits
	if l.asked >= limits.Turns {
		return &stop{reason: event.MaxTurns}
	}
	l.mind.mu.Lock()
	defer l.mind.mu.Unlock()
	if limits.CostUSD > 0 && l.mind.spent >= limits.CostUSD {
		return &stop{reason: event.MaxBudget}
	}
	return nil
}

// ask sends the conversation to the model. A nil answer without an error means that the conversation has changed and
// has to be sent again.
func (l *loop) ask(ctx context.Context) (*model.Answer, error) {
	q := model.Request{System: l.system, Messages: l.talk.messages, Search: l.mayActOutside()}
	for _, t := range l.offered() {
		q.Tools = append(q.Tools, t.ToolSpec)
	}
	began, client := time.Now(), l.client()
	answer, err := client.Ask(ctx, q, func(p model.Piece) {
		if p.Search != nil {
			l.searched(*p.Search)
			return
		}
		kind := event.Text
		if p.Kind == model.Thinking {
			kind = event.Thinking
		}
		l.tell(event.Event{Kind: kind, Text: p.Text, Delta: true})
	})
	l.asking += time.Since(began)
	if err != nil {
		return nil, l.mend(ctx, client, err)
	}
	l.asked++
	l.model = answer.Model
	l.count(client, answer.Usage)
	l.talk.named(answer.Blocks)
	if answer.Stop == model.Full && len(answer.Blocks) == 0 {
		return nil, l.mend(ctx, client, &model.Error{Trouble: model.Overflow, Message: tooLong})
	}
	l.resumed, l.shortened = false, false // allow both again
	l.tell(event.Event{Kind: event.Answered, Model: answer.Model, Answer: &event.Answer{
		ID: answer.ID, Reason: answer.Reason, Usage: usageOf(answer.Usage),
	}})
	if len(answer.Blocks) > 0 {
		if err := l.keep(model.Message{Role: model.Assistant, Blocks: answer.Blocks}, answer); err != nil {
			return nil, err
		}
	}
	l.talk.context, l.talk.seen = answer.Usage.Context()+answer.Usage.Output, len(l.talk.messages)
	return answer, nil
}

// searched reports a search that the API made itself, as a call and its result.
func (l *loop) searched(s model.Search) {
	id := cmp.Or(s.ID, "search_"+ident.Hex(8))
	input, err := text.JSON(struct {
		Query string `json:"query"`
	}{s.Query})
	if err != nil {
		return
	}
	output := cmp.Or(s.Failed, strings.Join(s.Found, "\n"), "The model's API searched, and did not tell what it found.")
	l.tell(event.Event{Kind: event.ToolCall, Call: &event.Call{
		ID: id, Name: tool.SearchName, Kind: event.Web, Input: input,
	}})
	l.tell(event.Event{Kind: event.ToolResult, Result: &event.Result{
		ID: id, Name: tool.SearchName, Failed: s.Failed != "", Output: output,
	}})
}

// tooLong is the message for a conversation that does not fit into the model's context.
const tooLong = "the conversation is longer than the model can take"

// usageOf converts a usage to the form of events.
func usageOf(u model.Usage) *event.Usage {
	return &event.Usage{
		Input: u.Context(), Output: u.Output, Cached: u.CacheRead, Written: u.CacheWrite, Reasoning: u.Reasoning,
		Estimated: u.Estimated,
	}
}

// mayActOutside reports whether the API may search without a question. It may not in a mode that asks about
// every call or denies it.
func (l *loop) mayActOutside() bool {
	return l.mind.o.Search && outside(l.mind.mode())
}

// continuePrompt tells the model to continue an answer that broke off.
const continuePrompt = "The connection broke off in the middle of your answer, which the user has read up to there. " +
	"Go on exactly where it stops, and repeat nothing."

// words returns a message of text alone.
func words(from model.Role, text string) model.Message {
	return model.Message{Role: from, Blocks: []model.Block{{Kind: model.Text, Text: text}}}
}

// mend tries to recover from an error of the model. It returns nil if the conversation can be sent again.
func (l *loop) mend(ctx context.Context, client model.Client, err error) error {
	e, is := errors.AsType[*model.Error](err)
	if !is {
		return err
	}
	l.count(client, e.Usage)
	part := model.Answer{Blocks: e.Partial}.Text()
	switch {
	case ctx.Err() != nil && part != "": // the user has read that part, so it is part of the conversation
		_ = l.keep(words(model.Assistant, part), nil)
	case ctx.Err() != nil:
	case e.Trouble == model.Overflow && l.clips():
		return l.clip()
	case e.Trouble == model.Overflow && !l.shortened:
		l.shortened = true
		return l.shorten(ctx, "auto", "")
	case (e.Trouble == model.Cut || e.Trouble == model.Stalled) && part != "" && !l.resumed:
		l.resumed, l.continues, l.last = true, true, part
		l.notes = append(l.notes,
			"the connection broke off in the middle of an answer, and the model was asked to go on")
		if err := l.keep(words(model.Assistant, part), nil); err != nil {
			return err
		}
		return l.keep(words(model.User, continuePrompt), nil)
	case part != "":
		_ = l.keep(words(model.Assistant, part), nil)
	}
	return err
}
