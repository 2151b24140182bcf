package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/session"
	"omniagent/internal/setting"
	"omniagent/internal/tool"
)

// The words with which a turn ends, beside those of faults.
const (
	Success     = "success"
	MaxTurns    = "error_max_turns"
	MaxBudget   = "error_max_budget_usd"
	FailedTurn  = "error_during_execution"
	Interrupted = "cancelled"
	Formless    = "error_max_structured_output_retries"
)

// loop is one turn, or the work of one sub-agent.
type loop struct {
	session *Session
	own     *Model // of a helper that names one; nil: the session's
	talk    *conversation
	tools   []tool.Tool
	system  []string
	parent  string           // the call whose sub-agent this is; empty: the agent itself
	outer   *loop            // the loop of that call
	journal *session.Session // nil: nothing is kept, as of sub-agents

	began  time.Time
	asking time.Duration
	asked  int // answers of the model
	usage  model.Usage
	model  string
	notes  []string
	last   string // text of the last answer
	mended bool   // a broken answer was gone on with
	shrunk bool   // a full context was shortened
	repeat repetition

	asks    model.Client // that of models, patient
	models  int
	cost    float64
	unknown bool            // something of the cost is not known
	given   json.RawMessage // the answer in its form
	missed  int             // how often there was none
	again   bool            // a hook has kept the turn from its end
}

// stop is an end of a turn that is no success.
type stop struct {
	reason string
	fault  *fault.Fault // nil: the reason says it all
}

func (s *stop) Error() string {
	if s.fault != nil {
		return s.fault.Message
	}
	return s.reason
}

// turn answers one message.
func (s *Session) turn(ctx context.Context, said []model.Block) {
	if s.talk == nil {
		s.talk = newConversation(s.o.History, s.o.Journal)
	}
	l := &loop{session: s, talk: s.talk, tools: s.tools, system: s.o.System, journal: s.o.Journal, began: time.Now()}
	s.mu.Lock()
	s.evidence.Fault = nil
	s.mu.Unlock()
	defer s.survive()
	if limit := s.o.Limits.Time; limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fault.TimedOut)
		defer cancel()
	}
	l.tell(event.Event{Kind: event.TurnBegan, Session: s.o.ID})
	said, err := l.admit(ctx, said)
	if err == nil {
		err = l.keep(model.Message{Role: model.User, Blocks: said}, nil)
	}
	if err == nil {
		err = l.run(ctx)
	}
	s.mu.Lock()
	s.deaf = true // however it ended
	s.mu.Unlock()
	end := l.end(ctx, err)
	if err != nil && s.o.Journal != nil {
		s.talk = nil // it is read again: what could not be kept is not a part of it, and a call without its result gets one
	}
	s.mu.Lock()
	s.evidence.Usage, s.evidence.Model = end.Usage, l.model
	if l.asked > 0 {
		s.evidence.Answered = agent.Yes
	}
	s.mu.Unlock()
	if s.o.Journal != nil {
		if _, err := s.o.Journal.Append(l.record(end)); err != nil && end.OK {
			l.tell(event.Event{Kind: event.Failed, Fault: fault.Of(err), Terminal: true, Synthetic: true})
			end.OK, end.Reason = false, FailedTurn
		}
	}
	l.tell(event.Event{Kind: event.Ended, Session: s.o.ID, Model: l.model, End: end})
}

// survive ends a turn that fails inside, so that the host hears of its end and what it started is ended in order.
func (s *Session) survive() {
	r := recover()
	if r == nil {
		return
	}
	if s.o.Journal != nil {
		s.talk = nil
	}
	f := fault.New(fault.Internal, "the turn failed inside: %v", r)
	s.tell(event.Event{Kind: event.Failed, Fault: f, Terminal: true, Synthetic: true})
	s.tell(event.Event{Kind: event.Ended, Session: s.o.ID, Synthetic: true, End: &event.End{Reason: FailedTurn}})
}

// end is how the turn ended, told before where it failed.
func (l *loop) end(ctx context.Context, err error) *event.End {
	end := &event.End{OK: err == nil, Text: l.last, Reason: Success, Turns: &l.asked, Took: time.Since(l.began), Asking: l.asking, Notes: l.notes}
	if err == nil && l.given != nil {
		end.Structured = l.given
		end.Text = cmp.Or(end.Text, string(l.given))
	}
	if l.usage != (model.Usage{}) {
		end.Usage = l.used()
	}
	var s *stop
	switch cause := context.Cause(ctx); {
	case err == nil:
		return end
	case errors.Is(cause, interrupted):
		end.Reason = Interrupted
		return end
	case errors.As(cause, &s): // a hook has ended it
		err = s
	case errors.As(err, &s) && s.fault == nil:
		end.Reason = s.reason
		return end
	case errors.Is(context.Cause(ctx), fault.TimedOut):
		err = &stop{FailedTurn, fault.New(fault.TimedOut, "the turn did not end within %s", l.session.o.Limits.Time)}
	}
	end.Reason = FailedTurn
	f := plainFault(l.session.o.Secrets, faultOf(err))
	l.session.mu.Lock()
	l.session.evidence.Fault = f
	l.session.mu.Unlock()
	l.tell(event.Event{Kind: event.Failed, Fault: f, Terminal: true})
	return end
}

// used is what the turn cost until now.
func (l *loop) used() *event.Usage {
	u := l.usage
	used := &event.Usage{
		Input: u.Context(), Output: u.Output, Cached: u.CacheRead, Written: u.CacheWrite, Reasoning: u.Reasoning, Estimated: u.Estimated,
	}
	if !l.unknown {
		cost := l.cost
		used.CostUSD = &cost
	}
	return used
}

// tell marks what happens to a sub-agent.
func (l *loop) tell(e event.Event) {
	e.Parent = l.parent
	if e.Denial != nil && l.session.o.Journal != nil {
		// The turn's end tells that nothing can be written.
		_, _ = l.session.o.Journal.Append(session.Denied{Tool: e.Denial.Tool, Call: e.Denial.CallID, Reason: e.Denial.Reason})
	}
	l.session.tell(e)
}

// record is the end as the journal keeps it.
func (l *loop) record(end *event.End) session.End {
	r := session.End{Subtype: end.Reason, OK: end.OK, Text: end.Text, Usage: l.usage, Duration: end.Took}
	if end.Usage != nil && end.Usage.CostUSD != nil {
		r.Cost = *end.Usage.CostUSD
	}
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	if f := l.session.evidence.Fault; f != nil && !end.OK {
		r.Error = f.Message
	}
	return r
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
		return &stop{FailedTurn, fault.Of(err)}
	}
	l.talk.add(m, number)
	return nil
}

// run asks and acts until the model says that it is done.
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
		if answer == nil { // the conversation was mended: ask again
			continue
		}
		if text := answer.Text(); text != "" {
			l.last = text
		}
		calls := answer.Calls()
		if len(calls) == 0 {
			goOn, err := l.rest(ctx, answer)
			if goOn && err == nil {
				continue
			}
			return err
		}
		results, err := l.act(ctx, calls)
		results = append(append(results, l.steered(ctx, false)...), l.heard()...)
		if kept := l.keep(model.Message{Role: model.User, Blocks: results}, nil); err == nil {
			err = kept
		}
		if err == nil && l.missed >= mostMissed {
			err = &stop{reason: Formless}
		}
		if err != nil {
			return err
		}
		if l.gave(calls) {
			if goOn, err := l.finish(ctx); err != nil || !goOn {
				return err
			}
		}
	}
}

// rest is what follows an answer without calls: the end of the turn, unless there is something to go on with.
func (l *loop) rest(ctx context.Context, answer *model.Answer) (goOn bool, err error) {
	if more := l.steered(ctx, false); more != nil {
		return true, l.keep(model.Message{Role: model.User, Blocks: more}, nil)
	}
	if answer.Stop == model.Paused {
		return true, nil
	}
	if answer.Stop == model.Length {
		l.notes = append(l.notes, "the last answer was cut off: it was as long as the model's answers may be")
	}
	if err := judged(answer); err != nil {
		return false, err
	}
	return l.finish(ctx)
}

// judged is the end that an answer without calls is.
func judged(a *model.Answer) error {
	switch {
	case a.Stop == model.Refused:
		return &stop{FailedTurn, fault.New(fault.APIError, "the model refused to answer (%s)", a.Reason)}
	case a.Stop == model.Full:
		return &stop{FailedTurn, fault.New(fault.ContextFull, "the conversation is longer than the model can take")}
	case strings.TrimSpace(a.Text()) == "": // thinking alone is none
		return &stop{FailedTurn, fault.New(fault.NoAnswer, "the model ended without an answer (%s)", a.Reason)}
	}
	return nil
}

// steered is what was said to the turn meanwhile. A sub-agent is not spoken to. last: without it the turn ends, and hears no more.
func (l *loop) steered(ctx context.Context, last bool) []model.Block {
	if l.outer != nil {
		return nil
	}
	s := l.session
	s.mu.Lock()
	said := s.steering
	s.steering = nil
	s.deaf = s.deaf || last && said == nil
	s.mu.Unlock()
	if said == nil {
		return nil
	}
	more, err := l.admit(ctx, said)
	if err != nil { // the host refuses it: the turn goes on as if it had not been said
		l.tell(event.Event{Kind: event.Notice, Text: err.Error(), Synthetic: true})
		return nil
	}
	return more
}

// within holds the limits, of which those of a sub-agent are a part of the turn's.
func (l *loop) within() error {
	limits := l.session.o.Limits
	top := l
	for top.outer != nil {
		top = top.outer
	}
	if l.asked >= limits.Turns {
		return &stop{reason: MaxTurns}
	}
	if u := top.usage; limits.Tokens > 0 && u.Context()+u.Output >= limits.Tokens {
		return &stop{FailedTurn, fault.New(fault.Blocked, "the turn has used %d tokens, of %d that it may use", u.Context()+u.Output, limits.Tokens)}
	}
	l.session.mu.Lock()
	defer l.session.mu.Unlock()
	if limits.CostUSD > 0 && l.session.spent >= limits.CostUSD {
		return &stop{reason: MaxBudget}
	}
	return nil
}

// ask puts the conversation to the model. A nil answer without an error: the conversation has changed, and is to be asked about again.
func (l *loop) ask(ctx context.Context) (*model.Answer, error) {
	q := model.Request{System: l.system, Messages: l.talk.messages, Search: l.mayActOutside()}
	for _, t := range l.offered() {
		q.Tools = append(q.Tools, t.Tool)
	}
	began, client := time.Now(), l.client()
	answer, err := client.Ask(ctx, q, func(p model.Piece) {
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
		return nil, l.mend(ctx, client, &model.Error{Trouble: model.Overflow, Message: "the conversation is longer than the model can take"})
	}
	l.tell(event.Event{Kind: event.Answered, Model: answer.Model, Answer: &event.Answer{ID: answer.ID, Reason: answer.Reason, Usage: &event.Usage{
		Input: answer.Usage.Context(), Output: answer.Usage.Output, Cached: answer.Usage.CacheRead, Written: answer.Usage.CacheWrite, Reasoning: answer.Usage.Reasoning,
		Estimated: answer.Usage.Estimated,
	}}})
	if len(answer.Blocks) > 0 {
		if err := l.keep(model.Message{Role: model.Assistant, Blocks: answer.Blocks}, answer); err != nil {
			return nil, err
		}
	}
	l.talk.context, l.talk.seen = answer.Usage.Context()+answer.Usage.Output, len(l.talk.messages)
	return answer, nil
}

// mayActOutside says whether the API may search by itself, where nobody is asked: not in a mode that asks about every call, or denies it.
func (l *loop) mayActOutside() bool {
	s := l.session
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.o.Search && s.policy.mode != setting.DenyAll && s.policy.mode != setting.AskAll
}

// goOn is what a model is told whose answer broke off after it had been heard.
const goOn = "The connection broke off in the middle of your answer, which the user has read up to there. Go on exactly where it stops, and repeat nothing."

// mend makes the best of an error: nil when the conversation can be asked about again.
func (l *loop) mend(ctx context.Context, client model.Client, err error) error {
	var e *model.Error
	if !errors.As(err, &e) {
		return err
	}
	l.count(client, e.Usage)
	said := model.Answer{Blocks: e.Partial}.Text()
	switch {
	case ctx.Err() != nil && said != "": // what the user has read is a part of the conversation
		_ = l.keep(model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Text, Text: said}}}, nil)
	case ctx.Err() != nil:
	case e.Trouble == model.Overflow && !l.shrunk:
		l.shrunk = true
		return l.shorten(ctx, "auto")
	case (e.Trouble == model.Cut || e.Trouble == model.Stalled) && said != "" && !l.mended:
		l.mended = true
		l.notes = append(l.notes, "the connection broke off in the middle of an answer, which was gone on with")
		if err := l.keep(model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Text, Text: said}}}, nil); err != nil {
			return err
		}
		return l.keep(model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: goOn}}}, nil)
	}
	return err
}

// faultOf says in our own words what a model's API could not do.
func faultOf(err error) *fault.Fault {
	var s *stop
	if errors.As(err, &s) {
		return s.fault
	}
	var e *model.Error
	if !errors.As(err, &e) {
		return fault.Of(err)
	}
	f := fault.New(codeOf(e.Trouble), "%s", e.Error()).With("trouble", string(e.Trouble))
	if e.Status != 0 {
		f = f.With("status", e.Status)
	}
	if e.After > 0 {
		f = f.After(e.After)
	}
	switch e.Trouble {
	case model.Overflow:
		f = f.Hint("begin a new session, or shorten this one")
	case model.Quota:
		f = f.Hint("the account of this key is used up; waiting for a moment does not help")
	}
	return f
}

func codeOf(t model.Trouble) fault.Code {
	switch t {
	case model.NoLogin:
		return fault.AuthRequired
	case model.Forbidden:
		return fault.PermissionDenied
	case model.Unknown:
		return fault.NotFoundCode
	case model.Overflow:
		return fault.ContextFull
	case model.Limited, model.Quota:
		return fault.TooManyRequests
	case model.Overloaded, model.Offline:
		return fault.Down
	case model.Stalled:
		return fault.TimedOut
	case model.Stopped:
		return fault.Interrupted
	}
	return fault.APIError
}
