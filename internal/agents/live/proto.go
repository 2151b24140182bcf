package live

import (
	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// Proto implements the protocol of an agent whose process lasts for many turns. It does no I/O: it takes bytes, and
// returns events and bytes. So tests can replay a recorded conversation without a process, and split it at any byte. A
// Proto belongs to one process; the next process gets a new one. Its methods are not safe for concurrent use.
//
// It reports exactly one Ended that is not Unprompted for every message, as long as the agent follows its own protocol.
// End adds what is missing when the process is gone.
type Proto interface {
	// Begin returns the first step, for a process that has just started.
	Begin() Step
	// Feed takes the output of the agent, which may be split at any byte. Events may refer to it until the next call.
	Feed([]byte) Step
	// Ready reports whether the agent has answered the greeting.
	Ready() bool
	// Do translates a command to the wire. If it returns an error, which is a fault or agent.ErrRestart, nothing was
	// sent and nothing has changed.
	Do(Command) (Step, error)
	// End ends everything that is still open, and adds a synthetic Ended for a message without one.
	End(agent.Exit) []event.Event
	// AddFacts adds what the wire has learned about the conversation.
	AddFacts(*event.Facts)
}

// Step is the outcome of a call.
type Step struct {
	Events  []event.Event
	Lines   [][]byte        // for the agent, complete, in order
	Needs   []Need          // each needs a Command with a HostAnswer
	Results []CommandResult // commands with a Token that the agent has accepted or refused
}

// AddResult adds the agent's answer to a command.
func (s *Step) AddResult(token int, err error) {
	s.Results = append(s.Results, CommandResult{Token: token, Err: err})
}

// Take returns the collected step and resets s.
func (s *Step) Take() Step {
	step := *s
	*s = Step{}
	return step
}

// Rejected returns the events for a request that an agent refused. open means that this ends the turn of a message.
func Rejected(f *fault.Fault, session, why string, open bool) []event.Event {
	failed := event.Event{Kind: event.Failed, Fault: f, Terminal: open}
	if !open {
		return []event.Event{failed}
	}
	return []event.Event{failed, cli.Unfinished(session, why)}
}

// Command is a request of the conversation. One field is set, in addition to Token.
type Command struct {
	Message    []event.Block // starts a turn
	Steer      []event.Block // for the current turn
	Answer     *event.Reply
	Change     *agent.Change
	Interrupt  bool
	HostAnswer *HostAnswer

	Token int // for Steer and Change: CommandResult refers to it
}

// CommandResult is the agent's answer to a Steer or a Change. Each gets at most one.
type CommandResult struct {
	Token int
	Err   error // a fault, or nil if the change was made or the turn includes the message
}

// Need is a request that only the host of the conversation can answer.
type Need struct {
	ID      string
	Moment  *agent.Moment // the host may intervene here
	Chore   string        // or the host serves this request of the agent, with the parameters in Message
	Server  string        // else Message is for its MCP server of that name
	Message []byte
}

// HostAnswer answers a Need.
type HostAnswer struct {
	Need       string
	HookAnswer agent.HookAnswer
	Message    []byte
	Result     any // the result of a Chore
	Err        error
}
