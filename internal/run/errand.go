package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/conversation"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/prompt"
	"omniagent/internal/setting"
)

// Errand is one message to an agent, carried to the end of its turn.
type Errand struct {
	Open     conversation.Opener
	Agent    string
	Spec     agent.Spec
	Services agent.Services
	Mode     setting.Approval // of this message: a resumed session may have another
	Prompt   string
	Idle     time.Duration // without a sign of life; 0: any time
	Busy     time.Duration // the same, while a tool runs; 0: any time
	// Ask decides about a question. It returns an answer, or whether to wait for one; else the turn ends with the
	// question. So it does when there is no answer within Patience.
	Ask      func(event.Ask) (reply *event.Reply, wait bool)
	Patience time.Duration
	// Person asks a person a question for whose answer the turn waits. ok is false if nobody answers: then the turn
	// ends with the question. It returns when its context ends, as it does with an answer from elsewhere. nil: answers
	// come only from elsewhere.
	Person func(context.Context, event.Ask) (reply event.Reply, ok bool)
	Opened func(*conversation.Conversation) // nil: nobody wants to know
	Sent   func(turn int64)                 // the agent has the message; nil: nobody wants to know
	See    func(event.Event)                // gets each event of the turn; nil: nobody
	Alive  func() bool                      // asked in silence: whether the agent's processes work; nil: unknown
	// Waits looks for a prompt on the output of the agent, which nobody there would answer; nil: it has none.
	Waits func(exited bool) *prompt.Signal
}

// Ending is all that is known of an errand that is over.
type Ending struct {
	Session   string // empty: no conversation was opened
	Own       string // the agent's own id of it
	Facts     event.Facts
	Turn      int64 // 0: the message was not accepted
	Began     bool  // the agent took it up
	Last      int64 // record of the session
	End       *event.End
	Concluded bool           // we ended the turn, so the agent may not have told all of its calls
	Fault     *fault.Fault   // why the turn failed, as the agent or its driver tells
	Text      string         // of the answer
	Question  *event.Ask     // with which the turn ended
	Prompt    *prompt.Signal // at which it was found
	Denials   []event.Denial
	Tools     map[string]*ToolCall // by the id of the call
	Outcome   agent.Outcome
	Err       error // what kept it from beginning, or ended it: a clock, a cancellation
}

// ToolCall is a tool that was called.
type ToolCall struct {
	Number        int // 1 is the first
	Name          string
	Kind          event.ToolKind
	Command       string
	Path          string
	Ended, Failed bool
	ExitCode      *int
}

// ErrIdle is the cause of an end for want of a sign of life.
var ErrIdle = errors.New("there was no sign of life")

// errUnanswered is the cause of an end for want of an answer.
var errUnanswered = errors.New("nobody answered in time")

const (
	closing   = 10 * time.Second      // for an agent to end
	lookEvery = 50 * time.Millisecond // at the clocks
	stopped   = time.Second           // without a look at them we were stopped
)

// errand is one that is under way.
type errand struct {
	Errand
	ending  Ending
	talk    *conversation.Conversation
	waiting map[string]*event.Ask         // questions that are open
	asking  map[string]context.CancelFunc // a person, about those
	persons sync.WaitGroup
	give    context.CancelCauseFunc // ends the turn
	running map[string]bool         // calls that have not ended
	cut     bool                    // the events ended before the turn

	began   time.Time
	mu      sync.Mutex
	sign    time.Duration // uptime of the machine at the last sign of life
	limit   time.Duration // how long the next one may take; 0: any time
	waits   bool          // for the answer of a person
	telling bool          // See has not returned
}

// Do opens the conversation, sends the message, reads the turn to its end or to a question, and closes. Nothing that it
// started is alive when it returns.
func (e Errand) Do(ctx context.Context) Ending {
	w := errand{
		began:  time.Now(),
		Errand: e, waiting: map[string]*event.Ask{}, running: map[string]bool{},
		asking: map[string]context.CancelFunc{},
	}
	w.ending.Tools = map[string]*ToolCall{}
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
	if err == nil {
		w.ending.Turn, err = talk.Send(ctx, []event.Block{{Text: e.Prompt}})
	}
	if err == nil {
		if e.Sent != nil {
			e.Sent(w.ending.Turn)
		}
		life := w.watched(ctx)
		err = w.listen(life, events)
		w.give(nil)
		w.persons.Wait()
		w.Person = nil // the turn waits for nothing more
	}
	if errors.Is(err, errUnanswered) {
		for _, ask := range w.waiting {
			w.ending.Question, err = ask, nil
		}
	}
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	if w.ending.Turn > 0 && w.ending.End == nil { // events after this belong to the answer
		question := w.ending.Question
		w.ending.Question = nil
		talk.Interrupt(true)
		_ = w.listen(out, events)
		w.ending.Question = question
	}
	outcome, lost := talk.Close(out)
	if w.cut { // a journal that cannot be written ends the events, and with them the turn
		err = cmp.Or(lost, err)
	}
	w.ending.Outcome, w.ending.Err = outcome, cmp.Or(err, lost)
	var at *prompted
	if errors.As(err, &at) {
		w.ending.Prompt, w.ending.Err = at.signal, lost
	} else if err == nil && w.ending.Question == nil {
		w.ending.Prompt = w.prompted(true) // which the end of its input answered
	}
	w.ending.Facts, w.ending.Own, w.ending.Last = talk.Facts(), talk.Own(), talk.Last()
	w.evidence(outcome.Evidence)
	return w.ending
}

// prompted is the cause of an end at a prompt.
type prompted struct{ signal *prompt.Signal }

func (p *prompted) Error() string { return "it waits at a prompt: " + p.signal.Question }

func (w *errand) prompted(exited bool) *prompt.Signal {
	if w.Waits == nil {
		return nil
	}
	return w.Waits(exited)
}

// evidence adds what only the agent's own records tell.
func (w *errand) evidence(e agent.Evidence) {
	for _, d := range e.Denials {
		if !slices.ContainsFunc(w.ending.Denials, func(known event.Denial) bool {
			return known.CallID == d.CallID && (d.CallID != "" || known.Tool == d.Tool)
		}) {
			w.ending.Denials = append(w.ending.Denials, d)
		}
	}
}

// watched returns a context that ends with ErrIdle when the agent shows no sign of life for too long. Silence counts
// while the machine sleeps, too: connections do not survive that. It does not count while we are stopped, or while See
// blocks: then it is not the agent that is silent.
func (w *errand) watched(ctx context.Context) context.Context {
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
			if gap := time.Since(last); gap > stopped { // this clock stands while the machine sleeps
				w.sign += gap
			}
			silent, waits := w.limit > 0 && !w.telling && uptime(w.began)-w.sign >= w.limit, w.waits
			w.mu.Unlock()
			if found := w.prompted(false); found != nil {
				cancel(&prompted{found})
				return
			}
			switch {
			case !silent:
			case waits:
				cancel(errUnanswered)
				return
			case w.Alive != nil && w.Alive():
				w.alive()
			default: // a prompt explains the silence better
				if found := w.prompted(true); found != nil {
					cancel(&prompted{found})
				}
				cancel(ErrIdle)
				return
			}
		}
	}()
	return life
}

// alive notes a sign of life. While a question is open, only its answer is waited for.
func (w *errand) alive() {
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

// listen reads events up to the end of the turn, or to a question that nobody here answers.
func (w *errand) listen(ctx context.Context, events *conversation.Events) error {
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
		w.alive()
	}
	return nil
}

// tell tells an event, and waits until that is done.
func (w *errand) tell(e event.Event) {
	if w.See == nil {
		return
	}
	now := func(telling bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.telling = telling
	}
	now(true)
	defer now(false)
	w.See(e)
}

// take keeps what matters of an event. Of a sub-agent that is what it did.
func (w *errand) take(ctx context.Context, e event.Event) {
	switch e.Kind {
	case event.TurnBegan:
		w.ending.Began = true
	case event.Text:
		if e.Parent == "" && !e.Delta {
			w.ending.Text = e.Text
		}
	case event.ToolCall:
		c := e.Call
		w.ending.Tools[c.ID] = &ToolCall{
			Number: len(w.ending.Tools) + 1, Name: c.Name, Kind: c.Kind, Command: c.Command, Path: c.Path,
		}
		w.running[c.ID] = true
	case event.ToolResult:
		delete(w.running, e.Result.ID)
		if t := w.ending.Tools[e.Result.ID]; t != nil && !e.Synthetic {
			t.Ended, t.Failed, t.ExitCode = true, e.Result.Failed, e.Result.ExitCode
		}
	case event.Question:
		w.asked(ctx, e.Ask)
	case event.Replied:
		w.settled(e.Reply.Question)
	case event.Withdrawn:
		w.settled(e.Ask.ID)
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

func (w *errand) asked(ctx context.Context, ask *event.Ask) {
	reply, wait := w.Ask(*ask)
	switch {
	case reply != nil:
		reply.Question = ask.ID
		_, _ = w.talk.Answer(ctx, *reply) // too late: the question was withdrawn
	case wait:
		w.waiting[ask.ID] = ask
		if w.Person != nil {
			w.person(ctx, *ask)
		}
	default:
		w.ending.Question = ask
	}
}

// person asks a person, while the turn goes on.
func (w *errand) person(ctx context.Context, ask event.Ask) {
	ctx, settled := context.WithCancel(ctx)
	w.asking[ask.ID] = settled
	w.persons.Go(func() {
		reply, ok := w.Person(ctx, ask)
		switch {
		case ctx.Err() != nil:
		case ok:
			reply.Question = ask.ID
			_, _ = w.talk.Answer(ctx, reply) // too late: the question was withdrawn
		default:
			w.give(errUnanswered)
		}
	})
}

// settled closes a question.
func (w *errand) settled(id string) {
	delete(w.waiting, id)
	if settled := w.asking[id]; settled != nil {
		settled()
		delete(w.asking, id)
	}
}

// Touched reports whether the errand may have changed something outside of the conversation: true if a tool ran that
// can, nil if it is not known.
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

// Usage returns what the agent used; nil: it does not tell.
func (e Ending) Usage() *event.Usage {
	if e.End != nil && e.End.Usage != nil {
		return e.End.Usage
	}
	return e.Outcome.Evidence.Usage
}
