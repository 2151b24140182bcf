// Package engine is the native agent: it asks a model, runs the tools that the model calls, tells the model their
// results, and goes on until there is an answer.
//
// It promises that every turn gets exactly one end, whatever fails; that a call is told before its result and each call
// has one; that a change of mode or model is told before anything that it affects; that what the model is sent is
// always a whole conversation, also after an interruption; and that nothing which changes something runs without the
// word of its policy. It refuses to know a vendor, a wire, a terminal or a file format: those are handed to it. It
// keeps no queue of messages and no clock for questions: both belong to the conversation.
package engine

import (
	"context"
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

// Options are what a Mind is made of.
type Options struct {
	ID       string         // of the session
	Services agent.Services // Tell, CanAsk and Hook; nothing is carried to servers here
	Client   model.Client
	Retry    model.RetryOptions
	Tools    func(tool.Task) []tool.Tool // the tools, given the way to run a sub-agent; nil: none
	System   []string
	History  []model.Message // what was said before, where no journal has it
	Mode     setting.Approval
	Rules    guard.Judge
	Walls    Walls
	Limits   Limits
	Search   bool        // the API's own web search may be used
	Todos    *tool.Todos // the list that TodoWrite keeps, so that the journal has it too; nil: none
	// Secrets are known by their value: nothing that is kept, told or sent contains one. Results of tools are also
	// cleared of other credentials.
	Secrets *redact.Values
	// Journal gets the messages, and has those from before; the caller closes it. If it fails, the turn fails: the
	// engine does not go on with what cannot be kept. nil: nothing is kept.
	Journal *session.Session
	// Other returns another model of the same provider, for a change in the middle and for helpers that name one; nil:
	// there is none.
	Other   func(name string) (Model, error)
	Form    *Form          // of the answer; nil: words
	Helpers []agent.Helper // sub-agents beside the general one
}

// Model is who is asked, and how patiently.
type Model struct {
	Client model.Client
	Retry  model.RetryOptions
}

// Limits end a turn. Zero: no limit, except for Turns.
type Limits struct {
	Turns   int           // answers of the model; 0: 200
	Time    time.Duration //
	Tokens  int64         // all that the turn sends and gets
	CostUSD float64       // all that the conversation costs from here on, where prices are known
}

// Mind is the native agent's side of a conversation.
type Mind struct {
	o     Options
	tools []tool.Tool

	changing sync.Mutex // held from before a change of mode or model is told until it holds

	mu        sync.Mutex
	policy    policy
	model     Model                       // without secrets
	models    int                         // how many there were before it
	spent     float64                     // USD, by our own account
	news      string                      // what the model has to be told with the next message
	greeted   bool                        // the hook knows that the conversation began
	turn      *turn                       // nil: no turn runs
	steering  []model.Block               // said to a turn that has not heard it yet
	questions map[string]chan event.Reply // open ones
	closed    bool
	hidden    bool // the model was shown a mask in place of a secret
	evidence  agent.Evidence

	// Only the turn uses these.
	opening []model.Block // what the hook said at the beginning, until a message takes it along
	talk    *conversation // nil until the first turn: what was said before may be long
}

var _ agent.Mind = (*Mind)(nil)

// New makes a Mind. It asks nothing before the first Turn.
func New(o Options) *Mind {
	if o.Limits.Turns == 0 {
		o.Limits.Turns = 200
	}
	if o.Rules.Memory == nil {
		o.Rules.Memory = &guard.Memory{}
	}
	if o.Services.Tell == nil {
		o.Services.Tell = func(event.Event) {}
	}
	m := &Mind{o: o, questions: map[string]chan event.Reply{}, policy: policy{o.Mode, o.Rules, o.Walls}}
	if o.Tools != nil {
		m.tools = o.Tools(m.task)
	}
	if o.Form != nil {
		m.tools = append(m.tools, o.Form.tool())
	}
	m.evidence = agent.Evidence{Session: o.ID, DenialsTold: true, Answered: agent.No}
	m.model = m.plain(Model{o.Client, o.Retry})
	return m
}

// Abilities are what the engine can do.
func (m *Mind) Abilities() agent.Abilities {
	return agent.Abilities{
		Steer: true, Mode: true, Model: m.o.Other != nil, Images: true, Questions: true, Resume: m.o.Journal != nil,
	}
}

// Facts are what the engine knows of the conversation.
func (m *Mind) Facts() event.Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	facts := event.Facts{Mode: m.policy.mode, Tools: m.offeredIn(m.policy.mode)}
	if m.model.Client != nil {
		known := m.model.Client.Profile()
		facts.Model, facts.Window = known.Model, known.Window
	}
	for _, t := range m.tools {
		if t.Name == tool.TaskName {
			facts.Helpers = append(facts.Helpers, tool.GeneralHelper)
			for _, h := range m.o.Helpers {
				facts.Helpers = append(facts.Helpers, h.Name)
			}
		}
	}
	return facts
}

// tell passes an event on, without secrets.
func (m *Mind) tell(e event.Event) {
	e = m.unveiled(e)
	if e.Denial != nil {
		m.mu.Lock()
		m.evidence.Denials = append(m.evidence.Denials, *e.Denial)
		m.mu.Unlock()
	}
	m.o.Services.Tell(e)
}

// Answer answers an open question. It refuses an answer to any other.
func (m *Mind) Answer(r event.Reply) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, open := m.questions[r.Question]
	if !open {
		return fault.New(fault.NotFoundCode, "there is no open question %s", r.Question)
	}
	delete(m.questions, r.Question)
	answer <- r // it has room for one
	return nil
}

// afterKill is how long a killed turn has to tell its end.
const afterKill = time.Second

// Close interrupts the turn that runs, and kills it when ctx ends. After that the hook hears that the conversation is
// over.
func (m *Mind) Close(ctx context.Context) (agent.Outcome, error) {
	m.mu.Lock()
	m.closed = true
	t := m.turn
	m.mu.Unlock()
	if t != nil {
		m.interrupt(t)
		select {
		case <-t.over:
		case <-ctx.Done():
			m.kill(t)
			select {
			case <-t.over:
			case <-time.After(afterKill):
				return agent.Outcome{}, fault.New(fault.Internal, "the turn does not end, although it was killed")
			}
		}
	}
	m.partWith(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	return agent.Outcome{Evidence: m.evidence}, nil
}
