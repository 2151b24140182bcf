package cli

import (
	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// Proto is both sides of the wire of an agent whose process stays for many turns, without I/O: bytes in, events and
// bytes out. So a recorded conversation can be replayed and cut anywhere, without a process. A Proto belongs to one
// process; the next process gets a new one. One goroutine at a time calls its methods.
//
// It promises exactly one Ended that is not Unasked for every message, as long as the agent keeps its own protocol. End
// adds what is missing when the process is gone.
type Proto interface {
	// Begin returns what to send to a process that has just started.
	Begin() Step
	// Feed takes the output of the agent. The bytes may be cut anywhere. Events may refer to them until the next call.
	Feed([]byte) Step
	// Ready reports whether the agent has answered the greeting.
	Ready() bool
	// Do translates a command to the wire. The error is a fault, or agent.ErrRestart; then nothing was sent and nothing
	// has changed.
	Do(Command) (Step, error)
	// End returns the end of everything that is still open, with a synthetic Ended for a message that has none.
	End(agent.Exit) []event.Event
	// Know adds what the wire has learned about the conversation.
	Know(*event.Facts)
}

// Step is the outcome of a call.
type Step struct {
	Events  []event.Event
	Lines   [][]byte  // for the agent, complete, in order
	Needs   []Need    // each needs a Command with Met as its answer
	Settled []Settled // commands with a Token that the agent has accepted, or not
}

// Settle adds the agent's answer to a command.
func (s *Step) Settle(token int, err error) {
	s.Settled = append(s.Settled, Settled{Token: token, Err: err})
}

// Take returns what has come together and resets s. After an error, it drops that.
func (s *Step) Take(err error) (Step, error) {
	step := *s
	*s = Step{}
	if err != nil {
		return Step{}, err
	}
	return step, nil
}

// Rejected returns the events about an agent that refused a request. open reports whether that ends the turn of a
// message.
func Rejected(f *fault.Fault, session, why string, open bool) []event.Event {
	failed := event.Event{Kind: event.Failed, Fault: f, Terminal: open}
	if !open {
		return []event.Event{failed}
	}
	return []event.Event{failed, Unfinished(session, why)}
}

// Command is a request of the conversation. One member is set, in addition to Token.
type Command struct {
	Message   []event.Block // begins a turn
	Steer     []event.Block // for the turn that runs
	Answer    *event.Reply
	Change    *agent.Change
	Interrupt bool
	Met       *Met

	Token int // for Steer and Change: Settled refers to it
}

// Settled is the agent's answer to a Steer or a Change. Each gets at most one.
type Settled struct {
	Token int
	Err   error // a fault; nil: the change was made, or the turn includes the message
}

// Need is a request that only the host of the conversation can answer.
type Need struct {
	ID      string
	Moment  *agent.Moment // the host may intervene here
	Chore   string        // or it carries this request of the agent out, with the parameters in Message
	Server  string        // else Message is for its MCP server of that name
	Message []byte
}

// Met answers a Need.
type Met struct {
	Need    string
	Word    agent.Word
	Message []byte
	Result  any // of a Chore
	Err     error
}
