// Package engine implements the native agent: it asks a model, runs the tools that the model calls, sends the results
// to the model, and repeats that until the model answers without a call.
//
//	message ─▶ fit into the context ─▶ ask the model ─┬─▶ answer ─▶ end of the turn
//	                 ▲                             └─▶ calls ─▶ policy ─▶ tools ─┐
//	                 └──────────────── results ◀───────────────────────────────┘
//
// It promises: each turn has exactly one end, whatever fails; each call has exactly one result, which comes after it; a
// change of mode or model is reported before anything that it affects; the model always gets a complete conversation,
// even after an interruption; and no call that changes something runs unless the policy permits it.
//
// It depends on no vendor, API, terminal or file format: the caller passes those in. It has no queue of messages and no
// clock for questions: both belong to the conversation.
package engine

import (
	"cmp"
	"context"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/redact"
	"omniagent/internal/talk/session"
	"omniagent/internal/walls/guard"
)

// Options configure a Mind.
type Options struct {
	ID          string         // id of the session
	Services    agent.Services // Tell, CanAsk and Hook; no tool servers here
	Client      model.Client
	Retry       model.RetryOptions
	Tools       func(tool.Task) []tool.Tool // the tools, given the function that runs a sub-agent; nil: none
	System      []string
	History     []model.Message // earlier messages, if no journal has them
	Mode        setting.Approval
	Rules       guard.Judge
	Walls       Walls
	Containment func() guard.Containment // of the running turn; nil: only the walls
	Limits      Limits
	Search      bool        // the API's own web search may be used
	Todos       *tool.Todos // the list of TodoWrite, which is also recorded in the journal; nil: none
	// Secrets are values that never appear in what is stored, reported or sent. Results of tools are also cleared of
	// other credentials.
	Secrets *redact.Values
	// Journal records the messages and has the earlier ones; the caller closes it. If writing fails, the turn fails.
	// nil: nothing is recorded.
	Journal *session.Session
	// Other returns another model of the same provider, for a change during the conversation and for helpers that name
	// one. nil: the model cannot change.
	Other   func(name string) (Model, error)
	Form    *Form          // of the answer; nil: free text
	Helpers []agent.Helper // sub-agents in addition to the general one
}

// Model is a model, and how often its requests are retried.
type Model struct {
	Client model.Client
	Retry  model.RetryOptions
}

// Limits end a turn. Zero: no limit, except for Turns.
type Limits struct {
	Turns   int     // requests to the model; 0: 200
	CostUSD float64 // cost of the conversation from here on, if prices are known
}

// Mind is the native agent in one conversation.
type Mind struct {
	o     Options
	tools []tool.Tool

	changing sync.Mutex // held while a change of mode or model is reported and made

	mu        sync.Mutex
	policy    policy
	model     Model                       // without secrets
	models    int                         // how many models came before it
	spent     float64                     // USD, by our own count
	news      string                      // for the model, sent with the next message
	hookBegun bool                        // the hook was called for the beginning of the conversation
	turn      *turn                       // nil: no turn runs
	steering  []model.Block               // for the running turn, not sent to the model yet
	questions map[string]chan event.Reply // by the id of the question
	closed    bool
	hidden    bool // the model has seen a mask in place of a secret
	evidence  agent.Evidence

	// Only the goroutine of the turn uses these.
	opening []model.Block // what the hook said at the beginning, until a message includes it
	talk    *conversation // nil until the first turn: the history may be long
}

var _ agent.Mind = (*Mind)(nil)

// New makes a Mind. It sends nothing before the first Turn.
func New(o Options) *Mind {
	o.Limits.Turns = cmp.Or(o.Limits.Turns, 200)
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
	m.evidence = agent.Evidence{Session: o.ID, DenialsKnown: true, Answered: agent.No}
	m.model = m.plain(Model{o.Client, o.Retry})
	return m
}

// Abilities returns what the engine can do.
func (m *Mind) Abilities() agent.Abilities {
	return agent.Abilities{
		Steer: true, Mode: true, Model: m.o.Other != nil, Images: true, Resume: m.o.Journal != nil,
	}
}

// Facts returns what the engine knows about the conversation.
func (m *Mind) Facts() event.Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	facts := event.Facts{
		Mode: m.policy.mode, Tools: m.offeredIn(m.policy.mode), Commands: []string{CompactCommand},
	}
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
		if t.Name == tool.DelegateName {
			facts.Helpers = append(facts.Helpers, tool.RunnerName)
		}
	}
	return facts
}

// tell reports an event, without secrets.
func (m *Mind) tell(e event.Event) {
	e = m.redacted(e)
	if e.Denial != nil {
		m.mu.Lock()
		m.evidence.Denials = append(m.evidence.Denials, *e.Denial)
		m.mu.Unlock()
	}
	m.o.Services.Tell(e)
}

// Answer answers an open question. It refuses any other answer.
func (m *Mind) Answer(r event.Reply) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, open := m.questions[r.Question]
	if !open {
		return fault.New(fault.NotFoundCode, "there is no open question %s", r.Question)
	}
	delete(m.questions, r.Question)
	answer <- r // the channel has room for one
	return nil
}

// afterKill is how long a killed turn may take to report its end.
const afterKill = time.Second

// Close interrupts the turn that runs, and kills it when ctx ends. Then it tells the hook that the conversation is
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
	m.endHook(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	return agent.Outcome{Evidence: m.evidence}, nil
}
