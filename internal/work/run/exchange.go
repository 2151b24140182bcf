package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/sys/redact"
	"omniagent/internal/sys/stuckprompt"
	"omniagent/internal/talk/conversation"
)

// Exchange is one message to an agent, and its turn.
type Exchange struct {
	Open     conversation.Opener
	Agent    string
	Spec     agent.Spec
	Services agent.Services
	Mode     setting.Approval // mode for this message; a resumed session may have another
	Prompt   string
	Secrets  *redact.Values // secrets of the prompt, which the journal must not contain; nil: none
	Idle     time.Duration  // longest silence of the agent; 0 for no limit
	Busy     time.Duration  // the same while a tool runs; 0 for no limit
	// Ask decides about a question: it returns an answer, or reports that the turn waits for one. Without either, or if
	// no answer comes within Patience, the turn ends with the question.
	Ask      func(event.Ask) (reply *event.Reply, wait bool)
	Patience time.Duration
	// Person asks a person a question that the turn waits for. If ok is false, the turn ends with the question. Its
	// context ends when the answer comes from elsewhere. It may be nil, so that answers only come from elsewhere.
	Person  func(context.Context, event.Ask) (reply event.Reply, ok bool)
	Opened  func(*conversation.Conversation) // may be nil
	Sent    func(turn int64)                 // called when the agent has the message; may be nil
	OnEvent func(event.Event)                // gets each event of the turn; may be nil
	Alive   func() bool                      // reports whether a silent agent is working; may be nil
	Lost    func() error                     // why the output cannot be stored, which ends the turn; may be nil
	// Waits looks for a prompt in the agent's output, which nobody can answer; may be nil
	Waits func(exited bool) *stuckprompt.Signal
}

// Ending is everything known about a finished exchange.
type Ending struct {
	Session        string // empty if no conversation was opened
	AgentSessionID string // the agent's own id of the session
	Facts          event.Facts
	Turn           int64 // 0 if the message was not accepted
	Last           int64 // record of the session
	End            *event.End
	Concluded      bool                // we ended the turn, so the agent may not have reported all calls
	Fault          *fault.Fault        // why the turn failed, according to the agent or its driver
	Text           string              // of the answer
	Question       *event.Ask          // the question that ended the turn
	Prompt         *stuckprompt.Signal // the prompt that ended the turn
	Denials        []event.Denial
	Tools          map[string]*ToolCall // by the id of the call
	Said           string               // the last line of an agent that prints text only
	Outcome        agent.Outcome
	Err            error // why it could not begin, or what ended it: a timeout, a cancellation
}

// ToolCall is a tool that was called.
type ToolCall struct {
	Number        int // 1 is the first
	Name          string
	Kind          event.ToolKind
	Command       string
	identity      string // see Question.Call
	said          string // its output
	Ended, Failed bool
	ExitCode      *int
}

// errIdle is the cause of the end of a turn whose agent was silent for too long.
var errIdle = errors.New("there was no sign of life")

const (
	closing   = 10 * time.Second      // for an agent to end
	lookEvery = 50 * time.Millisecond // between two checks of the time limits
	stopped   = time.Second           // a longer time between two checks means that this process was stopped
)

// runningExchange is an Exchange in progress.
type runningExchange struct {
	Exchange
	ending  Ending
	talk    *conversation.Conversation
	waiting map[string]*event.Ask              // open questions
	asking  map[string]context.CancelCauseFunc // calls of Person about them
	persons sync.WaitGroup
	give    context.CancelCauseFunc // ends the turn
	running map[string]bool         // calls without a result
	cut     bool                    // the events ended before the turn
	replies replies

	began   time.Time
	mu      sync.Mutex
	sign    time.Duration // the machine's uptime at the agent's last activity
	limit   time.Duration // how long the next silence may last; 0 for no limit
	waits   bool          // an answer of a person is due
	telling bool          // OnEvent has not returned
}

// Run opens the conversation, sends the message, reads the turn to its end or to a question, and closes the
// conversation. Nothing that it started is alive when it returns.
func (e Exchange) Run(ctx context.Context) Ending {
	w := runningExchange{
		began:    time.Now(),
		Exchange: e, waiting: map[string]*event.Ask{}, running: map[string]bool{},
		asking: map[string]context.CancelCauseFunc{},
	}
	w.ending.Tools = map[string]*ToolCall{}
	e.Services.Replied = w.replies.await
	defer w.replies.close()
	talk, err := e.Open(ctx, e.Agent, e.Spec, e.Services)
	if err != nil {
		w.ending.Err = cmp.Or(context.Cause(ctx), err)
		return w.ending
	}
	w.talk = talk
	w.ending.Session = talk.ID()
	if e.Opened != nil {
		e.Opened(talk)
	}
	events := talk.Events(talk.Last() + 1)
	defer events.Close()
	if e.Spec.Resume != "" && e.Mode != "" && talk.Facts().Mode != e.Mode {
		err = talk.Set(ctx, agent.Change{Mode: e.Mode})
	}
	if err == nil && e.Secrets != nil {
		err = talk.Hide(ctx, e.Secrets)
	}
	if err == nil {
		w.ending.Turn, err = talk.Send(ctx, []event.Block{{Text: e.Prompt}})
	}
	if err == nil {
		if e.Sent != nil {
			e.Sent(w.ending.Turn)
		}
		life := w.watched(ctx)
		err = w.listen(life, events)
		w.replies.close() // nothing waits for OnEvent any more
		w.give(nil)
		w.persons.Wait()
		w.Person = nil // the turn no longer waits for answers
	}
	if errors.Is(err, Unanswered) {
		for _, ask := range w.waiting {
			w.ending.Question, err = ask, nil
		}
	}
	var at *prompted
	atPrompt := errors.As(err, &at)
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if w.ending.Turn > 0 && w.ending.End == nil { // from here on, events belong to the turn
		question := w.ending.Question
		w.ending.Question = nil
		if atPrompt {
			talk.Kill()
		} else {
			talk.Interrupt(true)
		}
		_ = w.listen(out, events)
		w.ending.Question = question
	}
	outcome, lost := talk.Close(out)
	if w.cut { // the journal could not be written, which ended the events and the turn
		err = cmp.Or(lost, err)
	}
	w.ending.Outcome, w.ending.Err = outcome, cmp.Or(err, lost)
	if atPrompt {
		w.ending.Prompt, w.ending.Err = at.signal, lost
	} else if err == nil && w.ending.Question == nil {
		w.ending.Prompt = w.prompted(true) // it ended at a prompt
	}
	w.ending.Facts, w.ending.AgentSessionID, w.ending.Last = talk.Facts(), talk.AgentSessionID(), talk.Last()
	w.evidence(outcome.Evidence)
	return w.ending
}

// prompted is the cause of the end of a turn whose agent waits at a prompt.
type prompted struct{ signal *stuckprompt.Signal }

func (p *prompted) Error() string { return "it waits at a prompt: " + p.signal.Question }

func (w *runningExchange) prompted(exited bool) *stuckprompt.Signal {
	if w.Waits == nil {
		return nil
	}
	return w.Waits(exited)
}

// evidence adds the evidence from the agent's own records.
func (w *runningExchange) evidence(e agent.Evidence) {
	for _, d := range e.Denials {
		if !slices.ContainsFunc(w.ending.Denials, func(known event.Denial) bool {
			return known.CallID == d.CallID && (d.CallID != "" || known.Tool == d.Tool)
		}) {
			w.ending.Denials = append(w.ending.Denials, d)
		}
	}
}

// watched returns a context that ends when the agent is silent for too long, waits at a prompt, or its output cannot be
// stored. The silence includes the time that the machine sleeps, because connections do not survive that, but not the
// time that this process is stopped or OnEvent blocks.
func (w *runningExchange) watched(ctx context.Context) context.Context {
	w.alive()
	life, cancel := context.WithCancelCause(ctx)
	w.give = cancel
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-life.Done():
				return
			case <-tick.C:
			}
			w.mu.Lock()
			if gap := time.Since(last); gap > stopped { // this clock stops while the machine sleeps
				w.sign += gap
			}
			silent, waits := w.limit > 0 && !w.telling && uptime(w.began)-w.sign >= w.limit, w.waits
			w.mu.Unlock()
			if w.Lost != nil {
				if err := w.Lost(); err != nil {
					cancel(err)
					return
				}
			}
			if found := w.prompted(false); found != nil {
				cancel(&prompted{found})
				return
			}
			switch {
			case !silent:
			case waits:
				cancel(Unanswered)
				return
			case w.Alive != nil && w.Alive():
				w.alive()
			default: // a prompt explains the silence better
				if found := w.prompted(true); found != nil {
					cancel(&prompted{found})
				}
				cancel(errIdle)
				return
			}
		}
	}()
	return life
}

// alive records activity. There is no idle limit while a question is open.
func (w *runningExchange) alive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sign, w.limit, w.waits = uptime(w.began), w.Idle, len(w.waiting) > 0
	switch {
	case w.waits:
		w.limit = w.Patience
	case len(w.running) > 0:
		w.limit = w.Busy
	}
}

// listen reads events until the turn ends, or a question ends it.
func (w *runningExchange) listen(ctx context.Context, events *conversation.Events) error {
	for w.ending.End == nil && w.ending.Question == nil {
		e, err := events.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			w.cut = true
			return fault.New(fault.AgentFailed, "%s ended in the middle of its turn", w.Agent)
		}
		if e.Turn == w.ending.Turn {
			w.take(ctx, e)
		}
		w.tell(e)
		w.replies.told(e)
		w.alive()
	}
	return nil
}

// tell passes an event to OnEvent, and waits for it.
func (w *runningExchange) tell(e event.Event) {
	if w.OnEvent == nil {
		return
	}
	now := func(telling bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.telling = telling
	}
	now(true)
	defer now(false)
	w.OnEvent(e)
}

// take records an event. It ignores the texts and failures of a sub-agent.
func (w *runningExchange) take(ctx context.Context, e event.Event) {
	switch e.Kind {
	case event.Text:
		if e.Parent == "" && !e.Delta {
			w.ending.Text = e.Text
		}
	case event.ToolCall:
		c := e.Call
		w.ending.Tools[c.ID] = &ToolCall{
			Number: len(w.ending.Tools) + 1, Name: c.Name, Kind: c.Kind, Command: c.Command, identity: identity(c, ""),
		}
		w.running[c.ID] = true
	case event.ToolResult:
		delete(w.running, e.Result.ID)
		if t := w.ending.Tools[e.Result.ID]; t != nil && !e.Synthetic {
			t.Ended, t.Failed, t.ExitCode, t.said = true, e.Result.Failed, e.Result.ExitCode, e.Result.Output
		}
	case event.Question:
		w.asked(ctx, e.Ask)
	case event.Replied:
		w.settled(e.Reply.Question, AnsweredElsewhere)
	case event.Withdrawn:
		w.settled(e.Ask.ID, AsksNoMore)
	case event.Denied:
		w.ending.Denials = append(w.ending.Denials, *e.Denial)
	case event.Failed:
		if e.Terminal && e.Parent == "" {
			w.ending.Fault = e.Fault
		}
	case event.Ended:
		w.ending.End, w.ending.Concluded = e.End, e.Synthetic
	}
}

func (w *runningExchange) asked(ctx context.Context, ask *event.Ask) {
	reply, wait := w.Ask(*ask)
	switch {
	case reply != nil:
		reply.Question = ask.ID
		_, _ = w.talk.Answer(ctx, *reply) // an error means that the question was withdrawn
	case wait:
		w.waiting[ask.ID] = ask
		if w.Person != nil {
			w.person(ctx, *ask)
		}
	default:
		w.ending.Question = ask
	}
}

// QuestionClosed is the cause with which the context of Person ends.
type QuestionClosed string

// Why a question is closed.
const (
	AnsweredElsewhere QuestionClosed = "It was answered elsewhere."
	AsksNoMore        QuestionClosed = "The agent no longer asks."
	Unanswered        QuestionClosed = "The time to answer is over. The question stays open."
)

func (s QuestionClosed) Error() string { return string(s) }

// person asks a person while the turn continues.
func (w *runningExchange) person(ctx context.Context, ask event.Ask) {
	ctx, settled := context.WithCancelCause(ctx)
	w.asking[ask.ID] = settled
	w.persons.Go(func() {
		reply, ok := w.Person(ctx, ask)
		switch {
		case ctx.Err() != nil:
		case ok:
			reply.Question = ask.ID
			_, _ = w.talk.Answer(ctx, reply) // an error means that the question was withdrawn
		default:
			w.give(Unanswered)
		}
	})
}

// settled closes a question.
func (w *runningExchange) settled(id string, why QuestionClosed) {
	delete(w.waiting, id)
	if settled := w.asking[id]; settled != nil {
		settled(why)
		delete(w.asking, id)
	}
}

// Touched reports whether the exchange may have changed something outside the conversation: true if a tool ran that
// can, nil if unknown.
func (e Ending) Touched() *bool {
	wrote, unclear := false, e.Concluded || e.End == nil
	for id, t := range e.Tools {
		switch {
		case slices.ContainsFunc(e.Denials, func(d event.Denial) bool { return d.CallID == id }):
		case t.Kind == event.Read || t.Kind == event.Search || t.Kind == event.Web:
		case t.Kind == event.Write && t.Ended:
			wrote = wrote || !t.Failed
		default:
			unclear = true
		}
	}
	if !wrote && unclear && e.Session != "" { // without a conversation nothing was started
		return nil
	}
	return &wrote
}

// Answer returns the agent's answer.
func (e Ending) Answer() string {
	if e.End != nil && e.End.Text != "" {
		return e.End.Text
	}
	return e.Text
}

// Usage returns the agent's usage, or nil if it is unknown.
func (e Ending) Usage() *event.Usage {
	if e.End != nil && e.End.Usage != nil {
		return e.End.Usage
	}
	return e.Outcome.Evidence.Usage
}
