// Package engine is the native agent: it asks a model, does what the model asks for, tells the model what came of it, until there is an
// answer.
//
// It promises that every message gets exactly one end, whatever fails; that a call is told before its result and each call has one; that
// what the model is sent is always a whole conversation, also after an interruption; and that nothing which changes something runs without
// the word of its Policy. It refuses to know a vendor, a wire, a terminal or a file format: those are handed to it.
package engine

import (
	"context"
	"strings"
	"sync"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/guard"
	"omniagent/internal/model"
	"omniagent/internal/redact"
	"omniagent/internal/session"
	"omniagent/internal/setting"
	"omniagent/internal/tool"
)

// Options are what a conversation is made of.
type Options struct {
	ID      string // of the session
	Client  model.Client
	Retry   model.RetryOptions
	Tools   func(tool.Task) []tool.Tool // the tools, given the way to run a sub-agent; nil: none
	System  []string
	History []model.Message // what was said before, where no journal has it
	Mode    setting.Approval
	CanAsk  bool // somebody answers questions
	Rules   guard.Judge
	Walls   Walls
	Limits  Limits
	Search  bool        // the API's own web search may be used
	Todos   *tool.Todos // the list that TodoWrite keeps, so that the journal has it too; nil: none
	// Secrets are known by their value: nothing that is kept, told or sent has one. What tools answer is without other credentials, too.
	Secrets *redact.Values
	// Journal keeps the conversation, and has what was said before. An error of it ends the turn: what cannot be kept is not gone on with.
	// nil: nothing is kept.
	Journal *session.Session
	Hook    agent.Hook // the host's word at moments of the conversation; nil: nobody has one
	// Other is another model of the same provider, for a change in the middle and for helpers that name one; nil: there is none.
	Other   func(name string) (Model, error)
	Form    *Form          // of the answer; nil: words
	Helpers []agent.Helper // sub-agents beside the general one
}

// Model is who is asked, and how patiently.
type Model struct {
	Client model.Client
	Retry  model.RetryOptions
}

// Limits end a turn. Zero: no limit, but for Patience and Turns.
type Limits struct {
	Turns    int           // answers of the model; 0: 200
	Time     time.Duration //
	Tokens   int64         // all that the turn sends and gets
	CostUSD  float64       // all that the conversation costs from here on, where prices are known
	Patience time.Duration // for the answer to a question; 0: five minutes
}

// Session is a conversation; it is an agent.Session.
type Session struct {
	o      Options
	policy policy
	tools  []tool.Tool

	events *event.Queue // closed when the session is, and no turn runs

	mu        sync.Mutex
	model     Model           // without secrets
	models    int             // how many there were before it
	spent     float64         // USD, by our own account
	news      string          // what the model has to be told with what it hears next
	greeted   bool            // the hook has heard of the beginning
	waiting   [][]model.Block // messages whose turns have not begun
	dropped   int             // messages that an interruption took away: each has an end of its own, behind that of the turn that ran
	steering  []model.Block   // said while a turn runs, for that turn
	deaf      bool            // the turn that runs has given its last answer: what is said now is a message
	questions map[string]chan event.Reply
	interrupt context.CancelCauseFunc // ends the turn that runs; nil: none does
	closed    bool
	left      bool // somebody could be asked, and has gone
	hidden    bool // the model was shown a mask in place of a secret
	evidence  agent.Evidence
	running   sync.WaitGroup

	opening []model.Block // what the hook said at the beginning, until a message takes it along; the turn's
	talk    *conversation // nil until the first turn: what was said before may be long, and is not needed to be ready
}

var _ agent.Session = (*Session)(nil)

// mostWaiting is how many events may wait for a host before the agent waits for it.
const mostWaiting = 4096

// New begins a conversation, or goes on with one. Nothing is asked before the first Send.
func New(o Options) *Session {
	if o.Limits.Turns == 0 {
		o.Limits.Turns = 200
	}
	if o.Limits.Patience == 0 {
		o.Limits.Patience = 5 * time.Minute
	}
	if o.Rules.Memory == nil {
		o.Rules.Memory = &guard.Memory{}
	}
	s := &Session{o: o, events: event.NewQueue(mostWaiting), questions: map[string]chan event.Reply{}, policy: policy{o.Mode, o.Rules, o.Walls}}
	if o.Tools != nil {
		s.tools = o.Tools(s.task)
	}
	if o.Form != nil {
		s.tools = append(s.tools, o.Form.tool())
	}
	s.evidence = agent.Evidence{Session: o.ID, DenialsTold: true, Answered: agent.No}
	s.model = s.plain(Model{o.Client, o.Retry})
	return s
}

// ID is the id that the session was given.
func (s *Session) ID() string { return s.o.ID }

// Facts are what the engine knows of the conversation.
func (s *Session) Facts() event.Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := event.Facts{Mode: s.policy.mode}
	if s.model.Client != nil {
		known := s.model.Client.Profile()
		facts.Model, facts.Window = known.Model, known.Window
	}
	for _, t := range s.tools {
		if s.offers(t.Name) {
			facts.Tools = append(facts.Tools, t.Name)
		}
		if t.Name == tool.TaskName {
			facts.Helpers = append(facts.Helpers, tool.GeneralHelper)
			for _, h := range s.o.Helpers {
				facts.Helpers = append(facts.Helpers, h.Name)
			}
		}
	}
	return facts
}

// Next returns what happened, in order.
func (s *Session) Next(ctx context.Context) (event.Event, error) { return s.events.Next(ctx) }

// tell hands an event to the host. One that does not listen slows the agent down, until the session is closed.
func (s *Session) tell(e event.Event) {
	e = s.unveiled(e)
	if e.Denial != nil {
		s.mu.Lock()
		s.evidence.Denials = append(s.evidence.Denials, *e.Denial)
		s.mu.Unlock()
	}
	s.events.Put(e)
}

// Send hands over a message. Its turn begins when those before it have ended.
func (s *Session) Send(ctx context.Context, blocks []event.Block) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	said, err := s.message(blocks)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fault.New(fault.Internal, "the session is closed")
	}
	s.waiting = append(s.waiting, said)
	if s.interrupt == nil {
		s.begin()
	}
	return nil
}

// Steer says something to the turn that runs: the model hears it with the next results, or in place of the turn's end. Without such a turn it
// is a message, with an end of its own.
func (s *Session) Steer(ctx context.Context, blocks []event.Block) error {
	said, err := s.message(blocks)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.interrupt != nil && !s.closed && !s.deaf {
		defer s.mu.Unlock()
		s.steering = append(s.steering, said...)
		return nil
	}
	s.mu.Unlock()
	return s.Send(ctx, blocks)
}

func (s *Session) message(blocks []event.Block) ([]model.Block, error) {
	var said []model.Block
	for _, b := range blocks {
		switch {
		case strings.HasPrefix(b.Media, "image/"):
			said = append(said, model.Block{Kind: model.Image, Media: b.Media, Data: b.Data})
		case b.Media != "":
			said = append(said, model.Block{Kind: model.File, Media: b.Media, Data: b.Data, Name: b.Name})
		case strings.TrimSpace(b.Text) != "":
			said = append(said, model.Block{Kind: model.Text, Text: strings.ToValidUTF8(b.Text, "\uFFFD")})
		}
	}
	if len(said) == 0 {
		return nil, fault.New(fault.ArgError, "the message is empty").Hint("say what is to be done")
	}
	return veiledBlocks(s.o.Secrets, said), nil
}

// begin runs the turns that wait. It is called with the lock.
func (s *Session) begin() {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.interrupt, s.deaf = cancel, false
	s.running.Go(func() {
		for {
			s.endDropped()
			s.mu.Lock()
			if s.dropped > 0 {
				s.mu.Unlock()
				continue
			}
			if s.closed || len(s.waiting) == 0 {
				s.interrupt = nil
				if s.closed {
					s.events.Close()
				}
				s.mu.Unlock()
				cancel(nil)
				return
			}
			said := append(s.steering, s.waiting[0]...) // what a turn that failed did not come to hear is the beginning
			s.waiting, s.steering, s.deaf = s.waiting[1:], nil, false
			if ctx.Err() != nil { // the turn before was interrupted, this one is not
				ctx, cancel = context.WithCancelCause(context.Background())
				s.interrupt = cancel
			}
			turn := ctx
			s.mu.Unlock()
			s.turn(turn, said)
		}
	})
}

// endDropped tells the ends of messages whose turns will not begin.
func (s *Session) endDropped() {
	s.mu.Lock()
	n := s.dropped
	s.dropped = 0
	s.mu.Unlock()
	for range n {
		s.tell(event.Event{Kind: event.Ended, Session: s.o.ID, End: &event.End{Reason: Interrupted}})
	}
}

// Answer answers a question. One that is not open any more is not answered, which is no error.
func (s *Session) Answer(_ context.Context, question string, a event.Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits, open := s.questions[question]
	if !open {
		return fault.New(fault.NotFoundCode, "there is no open question %s", question)
	}
	delete(s.questions, question)
	waits <- a // it has room for one
	return nil
}

// interrupted is why a turn was ended by the host.
const interrupted = fault.Code("interrupted")

// Interrupt ends the turn that runs, and those that wait, and returns at once.
func (s *Session) Interrupt(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped += len(s.waiting)
	s.waiting, s.steering, s.deaf = nil, nil, true
	if s.interrupt != nil {
		s.interrupt(interrupted)
	}
	return nil
}

// Close ends the session: a turn that runs is interrupted, and has ended when Close returns, or when ctx ends.
func (s *Session) Close(ctx context.Context) (agent.Outcome, error) {
	s.mu.Lock()
	s.closed = true
	s.dropped += len(s.waiting)
	s.waiting = nil
	if s.interrupt != nil {
		s.interrupt(interrupted)
		s.events.Free()
	} else {
		s.events.Close()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.running.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
		return agent.Outcome{}, ctx.Err()
	}
	s.partWith(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return agent.Outcome{Evidence: s.evidence}, nil
}
